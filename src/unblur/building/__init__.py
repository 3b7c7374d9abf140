"""Hierarchies for people who have none yet: built from a column of a table, or guessed from the labels of a release."""
