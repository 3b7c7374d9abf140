"""Counting what is plausible: one problem, several engines that must agree."""
