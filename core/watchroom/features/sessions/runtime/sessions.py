"""Begins, lists and resumes the sessions of a workspace."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

from pydantic import JsonValue

from watchroom import validation
from watchroom.features.budgets.service import BudgetControl
from watchroom.features.requests.rows import ends_request
from watchroom.features.requests.service import Requests
from watchroom.features.sessions.runtime.agent import AgentProgram, RuntimeConfig
from watchroom.features.sessions.runtime.approvals import replay
from watchroom.features.sessions.runtime.messages import AssistantMessage, Message
from watchroom.features.sessions.runtime.session import Session
from watchroom.features.sessions.runtime.state import AgentState, create_initial_state
from watchroom.features.sessions.runtime.step_rows import (
    encode_initial_state,
    parse_processed_rows,
    step_detail,
)
from watchroom.features.sessions.runtime.threads import INLINE, call_soon_threadsafe, run_to_completion
from watchroom.features.sessions.service import SessionRecord, SessionRecords, session_path, split_session
from watchroom.kernel.background import Background
from watchroom.model import ENDED, Row, SessionStatus

_THREADS: Final = 32
"""Maximum number of rows that are written concurrently. Concurrent writes share one sync of the disk."""


class SessionHead(NamedTuple):
    """A session ``id`` of ``agent``, its ``status``, and the ``row`` of its newest step."""

    agent: str
    id: str
    status: SessionStatus
    row: Row


class Sessions:
    """The sessions of a workspace (`Workspace.sessions`).

    `list` and `state` are usable from any thread. Sessions run on an event loop. ``background`` delivers new
    rows.
    """

    def __init__(
        self, zone: SessionRecords, requests: Requests, budgets: BudgetControl, background: Background
    ) -> None:
        self._zone = zone
        self._requests = requests
        self._budgets = budgets
        self._background = background
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="watchroom-session")

    @asynccontextmanager
    async def begin(
        self,
        agent_id: str,
        agent: AgentProgram,
        config: RuntimeConfig | None = None,
        *,
        messages: Sequence[Message | Mapping[str, object]] = (),
        session_id: str | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> AsyncIterator[Session]:
        """Begin a session of the registered agent ``agent_id``, which runs within the context.

        - ``agent``: decides each step.
        - ``messages``: the first messages (`Message`, or mappings with ``role`` and ``content``).
        - ``session_id``: default a new id.
        - ``metadata``: kept in the state.

        Raise `InvalidAgentId`, `UnknownAgent`, `InvalidSession`, `SessionExists`, and the errors of
        `create_initial_state`.
        """
        now = self._zone.now()
        number = new_session_id(now) if session_id is None else validation.check_session_id(session_id)
        state = create_initial_state(session_id=number, messages=messages, metadata=metadata, now=now)
        said = next((message.content for message in state.messages if message.role == "user"), "")
        first = said.strip().split("\n", 1)[0][:200]
        row = await run_to_completion(self._threads_of(config), self._write_first_row, agent_id, state, first)
        async with self._connected(agent_id, agent, config, state, row, row) as session:
            yield session

    def _write_first_row(self, agent_id: str, state: AgentState, title: str) -> Row:
        """Write the first row. Messages that the agent's last session did not receive go to this session.

        The first session of an agent gets the messages since the agent was created.
        """
        last = self._zone.newest_step(validation.check_agent_id(agent_id))
        heard = self._zone.first_message_after(agent_id) if last is None else None
        if last is not None and parse_status(last) in ENDED:
            heard = self._zone.handed_over_until(agent_id)
        detail = step_detail(state, last_processed=heard)
        return self._zone.begin(agent_id, state.session_id, encode_initial_state(state), title, detail)

    @asynccontextmanager
    async def resume(
        self, agent_id: str, session_id: str, agent: AgentProgram, config: RuntimeConfig | None = None
    ) -> AsyncIterator[Session]:
        """Continue a session after its last row, within the context. Parameters as for `begin`.

        Finished tool calls do not run again. Messages and instructions from the meantime are processed. A
        session that was stopped by an error tries again. If a person resumed it or wrote to it since, the
        count of steps restarts. Any other process that still runs the session can no longer write steps.
        Raise `SessionNotFound`, `InvalidAgentId`, `InvalidSession`. Raise `SessionTaken` if another process
        takes the next step first.
        """
        path = _path(agent_id, session_id)
        threads = self._threads_of(config)
        rows = await run_to_completion(threads, self._zone.history, path)
        state, since = _replay(rows)
        last = rows[-1].row
        async with self._connected(agent_id, agent, config, state, rows[0].row, last) as session:
            until = None
            if state.status in ENDED:
                await run_to_completion(threads, self._zone.record_takeover, last)
            elif (taken := await session.take_over(last)) is not last:
                # From here, starts of calls by the former process are refused.
                until = taken.seq
            answered = await session.load_approvals(rows)
            since = since if answered is None else min(since, answered)
            calls = await run_to_completion(threads, self._zone.started_calls, path, since, until)
            waiting = await run_to_completion(threads, self._zone.records, parse_processed_rows(last)[1])
            session.restore(calls, waiting)
            if state.status == "error":
                await session.retry()
            yield session

    async def has_controls(self, session: Session) -> bool:
        """Return whether messages or instructions to ``session`` are waiting."""
        after = session.last_processed
        return bool(await run_to_completion(self._threads, self._find_controls, session, after))

    def _find_controls(self, session: Session, after: int) -> Sequence[SessionRecord]:
        """Return the messages and instructions to ``session`` after row ``after``, without messages that a
        client received."""
        return [each for each in self._zone.controls(session.path, after) if self._is_for(session, each.row)]

    def _is_for(self, session: Session, row: Row) -> bool:
        """Return whether ``row``, which was sent to the agent, is for ``session`` and was not handed over to
        a client."""
        return session.is_for_session(row) and not self._zone.is_handed_over(row)

    def list(self, agent_id: str = "") -> list[SessionHead]:
        """Return all sessions of ``agent_id``, or of all agents, sorted by path."""
        return [
            SessionHead(*split_session(row.path), parse_status(row), row)
            for row in self._zone.heads(agent_id)
        ]

    def state(self, agent_id: str, session_id: str) -> AgentState:
        """Return the state of a session after its last row. Raise `SessionNotFound`, `InvalidAgentId`,
        `InvalidSession`."""
        return _replay(self._zone.history(_path(agent_id, session_id)))[0]

    def close(self) -> None:
        """Wait for the running calls in threads, and end the threads."""
        self._threads.shutdown()

    def _threads_of(self, config: RuntimeConfig | None) -> Executor:
        """Return the thread pool in which a session with ``config`` writes its rows."""
        return INLINE if config is not None and config.inline else self._threads

    @asynccontextmanager
    async def _connected(
        self,
        agent_id: str,
        agent: AgentProgram,
        config: RuntimeConfig | None,
        state: AgentState,
        first: Row,
        last: Row,
    ) -> AsyncIterator[Session]:
        """Create the session, and deliver messages and instructions to it.

        ``first``: the session's first row. Of the rows before it, only messages are delivered.
        """
        path = session_path(agent_id, state.session_id)
        threads = self._threads_of(config)
        used = config or RuntimeConfig()
        session = Session(
            *(self._zone, self._requests, self._budgets, threads), agent_id, agent, used, state, last
        )
        session.first_row = first.seq
        loop = asyncio.get_running_loop()
        session.watch_request = partial(self._watch_request, loop)

        def take(row: Row) -> None:
            # The background may still deliver rows from before this session began.
            if self._is_for(session, row) and self._zone.counts(row):
                call_soon_threadsafe(loop, partial(session.deliver, self._zone.record(row)))

        end = self._background.subscribe((agent_id, path), take)
        try:
            # Deliver the rows from before the subscription.
            after = parse_processed_rows(last)[0]
            for control in await run_to_completion(threads, self._find_controls, session, after):
                session.deliver(control)
            yield session
        finally:
            end()

    def _watch_request(
        self, loop: asyncio.AbstractEventLoop, path: str, notify: Callable[[], None]
    ) -> Callable[[], None]:
        def take(row: Row) -> None:
            if row.path == path and ends_request(row):
                call_soon_threadsafe(loop, notify)

        return self._background.subscribe((path.rpartition("/")[0],), take)


def parse_status(row: Row) -> SessionStatus:
    """Return the status of a session after the step ``row``."""
    return row.detail["status"]  # type: ignore[return-value]  # as `step_detail` wrote it


def new_session_id(now: int) -> str:
    """Return a unique id for a session that begins at ``now`` (nanoseconds since the epoch). Ids sort by
    time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now // 1_000_000_000))}-{os.urandom(4).hex()}"


def _path(agent_id: str, session_id: str) -> str:
    return session_path(validation.check_agent_id(agent_id), validation.check_session_id(session_id))


def _replay(rows: Sequence[SessionRecord]) -> tuple[AgentState, int]:
    """Return the state after ``rows``, and the row with the newest answer of a model."""
    steps = replay(rows)
    first, state = next(steps)
    since = first.row.seq
    for recorded, after in steps:
        new = after.messages[len(state.messages) :]
        if any(isinstance(message, AssistantMessage) for message in new):
            since = recorded.row.seq
        state = after
    return state, since
