"""Data sets for experiments: synthetic ones made here, real ones that anyone may have, and a user's own files."""
