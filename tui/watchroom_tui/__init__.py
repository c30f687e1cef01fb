"""The dashboard and the command line of Watchroom."""
