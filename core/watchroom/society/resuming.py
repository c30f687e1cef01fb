"""Goes on with the session of an agent whose process is gone, on whatever machine it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from watchroom.errors import SessionNotFound
from watchroom.journal import Presence
from watchroom.model import CONTINUE, Row
from watchroom.rules.presence import presence_of
from watchroom.runtime import AgentState, ChatAgent, ModelRuntime, RuntimeConfig
from watchroom.runtime.sessions import SessionHead
from watchroom.society.errors import SessionHasEnded, SessionInUse
from watchroom.toolbox.agent_tools import agent_tools
from watchroom.toolbox.buffer_tools import BufferTools

if TYPE_CHECKING:
    from watchroom.workspace import Workspace
    from watchroom.zones import Task

_OVER: Final = frozenset({"done", "cancelled"})


def find_task(workspace: Workspace, name: str) -> Task | None:
    """The open task of ``workspace`` that ``name`` names: by its id, or as the one that an agent works on
    (``AGENT`` or ``AGENT/ID``). None where it names none. Raises `JournalError`."""
    agent = workspace.config.agents.get(name.partition("/")[0])
    wanted = agent.task if agent is not None else name
    return next(
        (each for each in workspace.tasks.list() if each.id == wanted and each.status == "open"), None
    )


def find_session(workspace: Workspace, name: str) -> SessionHead:
    """The session ``name`` of ``workspace`` that can be gone on with: ``AGENT/ID``, or ``AGENT`` for the one
    that acted last of those that have not ended. Raises `SessionNotFound`, `SessionHasEnded`, `SessionInUse`
    where the process that runs it is seen alive, `JournalError`."""
    agent, _, id_ = name.partition("/")
    found = sorted(
        (each for each in workspace.sessions.list(agent) if id_ in ("", each.id)),
        key=lambda each: (each.status not in _OVER, each.row.seq),
    )
    if not found:
        raise SessionNotFound(session=name)
    head = found[-1]
    if head.status in _OVER:
        raise SessionHasEnded(session=head.row.path, status=head.status)
    holder = _find_holder(workspace, head.row)
    if holder is not None:
        raise SessionInUse(
            session=head.row.path, machine=holder.machine or "-", process=holder.process or "-"
        )
    return head


def client_of(workspace: Workspace, session: SessionHead) -> str:
    """The client that runs ``session`` in ``workspace``, empty where the runtime does. Raises
    `JournalError`."""
    begun = workspace.journal.version("session", session.row.path, 1)
    client = begun.detail.get("client") if begun is not None else None
    return client if isinstance(client, str) else ""


async def resume_session(
    workspace: Workspace, session: SessionHead, model: ModelRuntime, on_taken: Callable[[], None]
) -> AgentState:
    """Go on with ``session`` of ``workspace`` until it has ended, with the tools of its agent and with
    ``model``; returns the last state. ``on_taken`` is called once the next step of its old process is
    refused. Raises `SessionTaken`, `JournalError`."""
    toolbox = workspace.tools(session.agent)
    language = workspace.config.language
    program = ChatAgent(
        agent_tools(toolbox),
        model_runtime=model,
        system=toolbox.system_prompt(),
        asks=True,
        live=BufferTools(toolbox),
        language=language,
    )
    config = RuntimeConfig(language=language)
    async with workspace.sessions.resume(session.agent, session.id, program, config) as resumed:
        on_taken()
        return await resumed.run()


def _find_holder(workspace: Workspace, last: Row) -> Presence | None:
    """The process that goes on with the session whose newest step is ``last``, if it is seen alive."""
    journal = workspace.journal
    note = journal.last_note("session", last.path, last.actor, CONTINUE)
    lease = presence_of(note if note is not None and note.seq > last.seq else last)
    return next((each for each in journal.presences() if each.id == lease and each.is_alive), None)
