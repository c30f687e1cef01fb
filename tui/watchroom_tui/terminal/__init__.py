"""The terminal: its detection, its driver, its input."""
