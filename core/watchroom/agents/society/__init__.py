"""Agents that work on a task together. They create other agents, and send messages. Each has a session."""

from watchroom.agents.society.background_thread import SocietyThread
from watchroom.agents.society.society import ROLES, Society, build_system_prompt

__all__ = ["ROLES", "Society", "SocietyThread", "build_system_prompt"]
