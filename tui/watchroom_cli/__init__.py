"""The command line: its commands, and the dashboard as lines of text."""
