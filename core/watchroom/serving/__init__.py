"""Watchroom as a server of the Model Context Protocol: agents of other programs join through it."""
