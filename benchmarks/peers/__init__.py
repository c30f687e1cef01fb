"""Watchroom and others at the same tasks, side by side in one run: ``python -m benchmarks peers``."""
