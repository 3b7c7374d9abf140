"""A small synthetic clinic, made by `tools/make-demo-data`: nobody in it ever lived."""
