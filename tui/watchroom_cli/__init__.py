"""The command line: the commands, and the dashboard as lines of text."""
