"""The dashboard of Watchroom."""
