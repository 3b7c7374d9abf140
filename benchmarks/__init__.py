"""What unblur costs, measured against a named alternative in the same run: `python -m benchmarks [NAME...]`."""
