"""The terminal: whether there is one, its driver, its input."""
