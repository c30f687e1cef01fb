"""Clients of agents, such as Claude Code and Codex: their configuration, and the hooks that they call."""
