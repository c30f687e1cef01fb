"""Why a client's commands are refused, besides the errors of tools."""

from __future__ import annotations

from typing import ClassVar

from watchroom.errors import WatchroomError
from watchroom.model import Outcome


class AgentCannotAnswer(WatchroomError):
    """A person's answer was given by a process beneath the client of an agent. Values: agent."""

    code = "agent_cannot_answer"
    outcome: ClassVar[Outcome] = "denied"
