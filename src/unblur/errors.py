"""Everything that can go wrong through no fault of ours.

::

    UnblurError
     ├── ConfigError           the config file, or an option
     ├── HierarchyError        a hierarchy that is no tree over its domain
     ├── TableError            the table: columns, values, format
     ├── OutputError           the result could not be written
     ├── ProgramError          a program too large to be written down
     ├── ClusterError          machines that were to do the work have gone
     └── MissingExtraError     an optional dependency is not installed

The command line prints the message of an `UnblurError` in one line and exits with 2. Any other exception is a bug of
ours and keeps its traceback. A message names the place (file, column, row number) and what would be accepted; it never
repeats a value of a table.
"""

from __future__ import annotations


class UnblurError(Exception):
    """Something the user can mend."""


class ConfigError(UnblurError):
    """The config, or an option, does not say what is needed."""


class HierarchyError(UnblurError):
    """A hierarchy is not a tree of ever coarser nodes over its domain."""


class TableError(UnblurError):
    """A table cannot be read, or does not fit its config."""


class OutputError(UnblurError):
    """A result cannot be written where it was asked for."""


class ProgramError(UnblurError):
    """An integer program is too large to be written down."""


class ClusterError(UnblurError):
    """A cluster did not finish its work."""


class UnblurWarning(UserWarning):
    """Something the user should know, though the work went on."""


class MissingExtraError(UnblurError):
    """An optional part of unblur is not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an extra: pip install 'unblur[{extra}]'")
