"""Resumes the session of an agent whose process has ended, on any machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from watchroom.errors import SessionHasEnded, SessionInUse, SessionNotFound
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.sessions.rows import presence_of
from watchroom.features.sessions.runtime import AgentState, ChatAgent, ModelRuntime, RuntimeConfig
from watchroom.features.sessions.runtime.sessions import SessionHead
from watchroom.kernel.journal import Presence
from watchroom.model import CONTINUE, Row

if TYPE_CHECKING:
    from watchroom.features.tasks.rows import Task
    from watchroom.workspace import Workspace

_OVER: Final = frozenset({"done", "cancelled"})


def find_task(workspace: Workspace, name: str) -> Task | None:
    """Return the open task for ``name``, None if there is none. Raise `JournalError`.

    ``name``: the id of the task, or ``AGENT`` or ``AGENT/ID`` for the task of that agent.
    """
    agent = workspace.config.agents.get(name.partition("/")[0])
    wanted = agent.task if agent is not None else name
    return next(
        (each for each in workspace.tasks.list() if each.id == wanted and each.status == "open"), None
    )


def find_session(workspace: Workspace, name: str) -> SessionHead:
    """Return the session for ``name``, if it can be resumed.

    ``name``: ``AGENT/ID``, or ``AGENT`` for the agent's last active session that has not ended.

    Raise `SessionNotFound`, `SessionHasEnded`, `SessionInUse`, `JournalError`.
    """
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
    """Return the client that runs ``session``, empty if it runs in the runtime. Raise `JournalError`."""
    begun = workspace.journal.version("session", session.row.path, 1)
    client = begun.detail.get("client") if begun is not None else None
    return client if isinstance(client, str) else ""


async def resume_session(
    workspace: Workspace, session: SessionHead, model: ModelRuntime, on_taken: Callable[[], None]
) -> AgentState:
    """Resume a session and run it until it has ended. Return its last state.

    - ``workspace``, ``session``: the session. It uses the tools of its agent.
    - ``model``: the model.
    - ``on_taken``: called as soon as the session is taken over. From then on, steps of the old process are
      refused.

    Raise `SessionTaken`, `JournalError`.
    """
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
    """Return the live process that runs the session with the newest step ``last``, None if there is none."""
    journal = workspace.journal
    note = journal.last_note("session", last.path, last.actor, CONTINUE)
    lease = presence_of(note if note is not None and note.seq > last.seq else last)
    return next((each for each in journal.presence.all() if each.id == lease and each.is_alive), None)
