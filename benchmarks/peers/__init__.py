"""Watchroom and its peers at the same tasks, side by side in one run: ``python -m benchmarks peers``."""
