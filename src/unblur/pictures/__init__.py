"""Pictures: segment grids, hierarchies and lattices, drawn with Altair as still images without scripts.

They show what they are given, as plain data, and compute nothing about releases. Only these modules import Altair; it
is not loaded before a picture is drawn.
"""
