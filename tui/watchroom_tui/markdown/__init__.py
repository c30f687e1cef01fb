"""Draws Markdown as lines for a width: pure, a chunk at a time, and nothing in it is ever markup."""
