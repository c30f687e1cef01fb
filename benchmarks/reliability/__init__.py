"""Commands that try to break Watchroom and count losses: ``python -m benchmarks NAME`` for each."""
