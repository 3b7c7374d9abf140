"""The paper's evaluation: what it printed, what it claims, and the same made anew on data that anyone may have."""
