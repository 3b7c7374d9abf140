"""All classes of a release seen together: the data sets that could have produced it, and no others."""
