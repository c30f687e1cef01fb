"""Commands that try to break Watchroom and count what was lost: ``python -m benchmarks NAME`` for each."""
