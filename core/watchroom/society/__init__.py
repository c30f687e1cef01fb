"""Agents that take a task on: they make others, write to each other, and each runs as a session (spec 2)."""

from watchroom.society.background_thread import Background
from watchroom.society.prompt import ROLES, system_prompt
from watchroom.society.society import Society

__all__ = ["ROLES", "Background", "Society", "system_prompt"]
