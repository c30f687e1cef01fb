"""Agents that work on a task together: they create others, send messages, and each has a session."""

from watchroom.agents.society.background_thread import SocietyThread
from watchroom.agents.society.society import ROLES, Society, build_system_prompt

__all__ = ["ROLES", "Society", "SocietyThread", "build_system_prompt"]
