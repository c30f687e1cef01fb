"""Commands that show the present state, and answer agents."""
