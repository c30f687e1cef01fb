"""Watchroom as a server of the Model Context Protocol: agents that nobody here wrote join through it."""
