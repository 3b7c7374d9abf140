"""`python -m unblur` is the command `unblur`."""

from unblur.cli import main

main()
