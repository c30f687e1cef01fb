"""Why a client's commands are refused, besides the errors of tools."""

from __future__ import annotations

from watchroom.errors import DeniedError


class AgentCannotAnswer(DeniedError):
    """A person's answer was given by a process beneath the client of an agent. Values: agent."""

    code = "agent_cannot_answer"
