"""Agents that work on a task together: they make others, write to each other, and each has a session (spec
2)."""

from watchroom.society.background_thread import SocietyThread
from watchroom.society.prompt import ROLES, build_system_prompt
from watchroom.society.society import Society

__all__ = ["ROLES", "Society", "SocietyThread", "build_system_prompt"]
