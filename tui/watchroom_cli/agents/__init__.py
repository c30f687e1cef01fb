"""Commands for the agents and their tools."""
