"""Why a client's commands are refused, besides the errors of tools."""

from __future__ import annotations

from watchroom.errors import DeniedError, WatchroomError


class AgentCannotAnswer(DeniedError):
    """A person's answer was given by a process beneath the client of an agent. Values: agent."""

    code = "agent_cannot_answer"


class NoAgentLeft(DeniedError):
    """Other clients work as all agents that are attached in a folder. Values: agents, client."""

    code = "no_agent_left"


class AgentNotFree(DeniedError):
    """A session or a client has an agent that this client cannot work as. Values: agent, client."""

    code = "agent_not_free"


class ClientNotStarted(WatchroomError):
    """A client could not be started, or does not speak the protocol. Values: command, reason."""

    code = "client_not_started"


class ClientDoesNotAsk(WatchroomError):
    """A client has no mode in which it asks before it acts. Values: command, mode, modes."""

    code = "client_does_not_ask"
