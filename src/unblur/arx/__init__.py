"""The file formats of ARX."""
