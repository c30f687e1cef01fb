"""Clients that agents run in, such as Claude Code and Codex: what they ask before and after their own tools,
and how they are set up."""
