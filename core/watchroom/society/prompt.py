"""The system prompts of a task's agents: the files under ``prompts``, by language and role."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import Final

from watchroom.model import USER
from watchroom.rules.members import Member
from watchroom.texts import Language

ROLES: Final = ("root", "architect", "programmer")
"""The roles that have a prompt of their own; any other agent has its instructions alone."""


def build_system_prompt(member: Member, language: Language) -> str:
    """The system prompt of ``member`` in ``language``: what holds for all agents, then what its role is
    for."""
    values = {
        "agent": member.id,
        "role": member.role,
        "task": member.task,
        "parent": member.parent or USER,
    }
    common = Template(_read("common", language)).substitute(values)
    has_own = member.role in ROLES and (member.role != "root" or not member.parent)
    return f"{common}\n{_read(member.role, language)}" if has_own else common


def _read(name: str, language: Language) -> str:
    return (files("watchroom.society") / "prompts" / language / f"{name}.md").read_text(encoding="utf-8")
