"""Commands that show what happens now, and answer agents."""
