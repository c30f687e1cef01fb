"""A running session: it takes steps of its agent, commits each step as a row, and obeys people's
instructions.

The version of each row ensures that only one process runs a session. After a crash, `Sessions.resume`
continues from the last row.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Final, ParamSpec, TypeVar

from watchroom.errors import JournalError, OutcomeUnknown, TooManyRequests
from watchroom.features.budgets.rows import USED, usage_detail
from watchroom.features.budgets.service import BudgetControl
from watchroom.features.policy.rules import PolicyDecision
from watchroom.features.requests.rows import Request, parse_arguments
from watchroom.features.requests.service import Requests
from watchroom.features.sessions.rows import PARKED, Parking, is_leave, parking_detail, parking_of
from watchroom.features.sessions.runtime import transitions
from watchroom.features.sessions.runtime.agent import AgentProgram, AgentTool, RuntimeConfig, Tool
from watchroom.features.sessions.runtime.approvals import Approvals, has_approvals, request_path
from watchroom.features.sessions.runtime.events import LlmStream
from watchroom.features.sessions.runtime.messages import AssistantMessage, ToolCall
from watchroom.features.sessions.runtime.runtime import AgentRuntime
from watchroom.features.sessions.runtime.state import AgentState, Event, StepResult, call_key
from watchroom.features.sessions.runtime.step_rows import (
    encode_step,
    parse_processed_rows,
    step_detail,
    summarize_step,
    used_in_step,
)
from watchroom.features.sessions.runtime.threads import run_to_completion
from watchroom.features.sessions.runtime.waiting import expiry
from watchroom.features.sessions.service import SessionRecord, SessionRecords, session_path
from watchroom.kernel.call_context import CallContext
from watchroom.model import (
    ANSWER,
    CANCEL,
    CONTINUE,
    ENDED,
    MESSAGE,
    PAUSE,
    RESUME,
    WITHDRAW,
    Json,
    Row,
    timestamp,
)

P = ParamSpec("P")
T = TypeVar("T")
_STREAM_SECONDS: Final = 0.2
"""Minimum seconds between notes with streamed text."""


class Session:
    """A session of one agent, made by `Sessions.begin` or `Sessions.resume`.

    Not thread-safe: use it on the event loop that runs it.

    - ``threads``: the thread pool for blocking calls.
    - ``agent_id``: the registered agent. ``agent`` decides its steps.
    - ``state``: the state after the row ``last``.

    Example::

        async with workspace.sessions.begin("alice", agent, messages=messages) as session:
            state = await session.run()
        print(state.status, state.messages[-1].content)
    """

    def __init__(
        self,
        zone: SessionRecords,
        requests: Requests,
        budgets: BudgetControl,
        threads: Executor,
        agent_id: str,
        agent: AgentProgram,
        config: RuntimeConfig,
        state: AgentState,
        last: Row,
    ) -> None:
        self.agent_id = agent_id
        self.path = session_path(agent_id, state.session_id)
        self._zone = zone
        self._requests = requests
        self._budgets = budgets
        self._threads = threads
        self._event_listener = config.on_event
        own = replace(
            config,
            on_event=self._on_event,
            ledger=self,
            gate=self,
            decide_policy=self._decide_policy,
            clock=zone.now,
        )
        self._runtime = AgentRuntime(agent, own)
        self._state = state
        self._approvals = Approvals(requests, self.path, config.language)
        self._version = last.version or 0
        self._resumed_at = 0
        parking = parking_of(last)
        self._parked_since = parking.since if parking is not None else 0
        """The version of the step that parked the session, if it is parked."""
        self._started_calls: set[str] = set()
        self._uncertain_calls: frozenset[str] = frozenset()
        self._last_processed, _ = parse_processed_rows(last)
        self._inbox: list[SessionRecord] = []
        self._messages: deque[SessionRecord] = deque()
        self.first_row = 0
        """The first row of the session. Instructions to the agent before this row are not for this
        session."""
        self._paused_at = 0
        """The row of the pause that the session obeyed before the row was delivered. Earlier instructions to
        resume do not end it."""
        self._end_row: Row | None = None
        self._answers_at_end = 0
        self.on_waiting: Callable[[], None] | None = None
        """Called when the session begins to wait for a person."""
        self.watch_request: Callable[[str, Callable[[], None]], Callable[[], None]] | None = None
        """Subscribes to the end of another session's request at a path; returns an unsubscribe function."""
        self._signal = asyncio.Event()
        self._in_tool = False
        self._streamed: list[str] = []
        self._stream_timer: asyncio.TimerHandle | None = None

    def is_for_session(self, row: Row) -> bool:
        """Return whether ``row``, which was sent to the agent, is for this session. Rows from before the
        start of the session are for it only if they are messages."""
        return row.seq > self.first_row or row.tool == MESSAGE

    @property
    def last_processed(self) -> int:
        """The newest row to the session that it has processed."""
        return self._last_processed

    @property
    def state(self) -> AgentState:
        """The state as of the last row."""
        return self._state

    async def run(self, *, stay: bool = False) -> AgentState:
        """Run until the session has ended (done, cancelled, or stopped by an error), and return the state.

        ``stay``: when the session is done, wait for further messages. Waits for people have no timeout. Raise
        `SessionTaken` if another process took the session over.
        """
        await self._obey_earlier_pause()
        while True:
            await self._process_controls()
            status = self._state.status
            if status in ("waiting_for_human_input", "paused", "parked") and self.on_waiting is not None:
                self.on_waiting()
            if status == "waiting_for_human_input":
                await self._wait_for_answer()
            elif status == "parked":
                await self._wait_for_reset()
            elif status == "cancelled" or (status in ENDED and (self._end_row is not None or not stay)):
                return self._state
            elif status in ENDED or status == "paused":
                await self._wait_for_signal()
            else:
                await self._run_step()

    async def wait_for_control(self) -> None:
        """Wait until a message or an instruction arrives."""
        await self._signal.wait()

    async def step(self) -> StepResult:
        """Take one step, commit it as a row, and return its result. Messages and instructions are left to
        `run`. Raise `SessionTaken`."""
        await self._drop_unconfirmed()
        try:
            result = await self._runtime.step(self._state)
        finally:
            self._cancel_stream_timer()
        if result.new_state is not self._state:
            await self._commit_step(result)
        return result

    def deliver(self, control: SessionRecord) -> None:
        """Accept ``control``: a message, an instruction, or an answer to the session's request.

        Duplicates are ignored, and the order of delivery does not matter.
        """
        seq = control.row.seq
        if seq > self._last_processed and all(each.row.seq != seq for each in self._inbox):
            insort(self._inbox, control, key=lambda each: each.row.seq)
            self._signal.set()

    def end_agent(self, row: Row) -> None:
        """Cancel the session, because ``row`` ended its agent. If the agent ended itself, its model gives one
        more answer. The calls in that answer are not run."""
        self._end_row = row
        self._answers_at_end = self._count_answers()
        self._signal.set()

    async def take_over(self, last: Row) -> Row:
        """Take over the session whose newest step is ``last``, so that no other process can continue it.

        Return the newest step. Raise `SessionTaken` if another process was first.
        """
        heard, waiting = parse_processed_rows(last)
        detail = step_detail(self._state, last_processed=heard, waiting=waiting)
        detail |= self._parking_detail(self._state)
        record = encode_step(self._state, self._state)
        row = await self._in_pool(self._zone.take_over, last, record, detail)
        self._version = row.version or 0
        return row

    def restore(self, begun: Iterable[str], waiting: Iterable[SessionRecord]) -> None:
        """Continue a session of another process.

        ``begun``: the keys of the calls that were started. ``waiting``: the messages that were not delivered.
        """
        self._resumed_at = self._version
        self._started_calls.update(begun)
        self._uncertain_calls = frozenset(call_key(self._state, call) for call in self._state.open_calls)
        self._messages.extend(waiting)

    async def load_approvals(self, records: Sequence[SessionRecord]) -> int | None:
        """Take approvals from valid answers only, as `Approvals.load` does.

        ``records``: all records of the session. Return the row of the answer, None if nothing is approved.
        Raise `SessionTaken`.
        """
        if not has_approvals(self._state):
            return None
        since = await self._in_pool(self._approvals.load, records)
        await self._drop_unconfirmed()
        return since

    async def _drop_unconfirmed(self) -> None:
        """Drop the approvals that no person gave, and record this in a step."""
        if not has_approvals(self._state):
            return
        kept = await self._in_pool(self._approvals.keep_confirmed, self._state)
        if kept != self._state:
            await self._commit_transition(StepResult(events=(), new_state=kept, instruction=CONTINUE))

    async def retry(self) -> None:
        """Continue after an error, on behalf of the person who resumed the session or wrote to it since.

        Only a person's instruction restarts the count of steps. An unverified message does not.
        """
        words = (each.row for each in self._inbox if each.row.tool in (RESUME, MESSAGE) and each.is_verified)
        by = next((row.actor for row in words if row.kind == "human"), self.agent_id)
        await self._commit_transition(transitions.resume(self._state, by))

    async def record_start(self, call: ToolCall, key: str, tool: Tool) -> bool:
        """Record that ``call`` of ``tool`` starts under ``key`` (`CallLedger`).

        Return whether it may have run before, in any process. Raise `SessionTaken` if another process took
        the session over.
        """
        self._in_tool = True
        again = key in self._started_calls
        self._started_calls.add(key)
        if not again and not (isinstance(tool, AgentTool) and tool.policy is not None):
            await self._in_pool(self._record_policy_test, call)
        if isinstance(tool, AgentTool) and (tool.recovers or tool.repeatable):
            return again or key in self._uncertain_calls or self._resumed_at == self._version
        if not again:
            name = call.function.name
            try:
                await self._in_pool(self._zone.record_tool_start, self.path, self._version, key, name)
            except OutcomeUnknown:
                raise
            except JournalError:
                # The next attempt is the first one.
                self._started_calls.discard(key)
                raise
        return again

    def _decide_policy(self, tool: str, arguments: Mapping[str, Json]) -> PolicyDecision:
        return self._zone.policy.decide(self.agent_id, tool, arguments)

    def _record_policy_test(self, call: ToolCall) -> None:
        """Record the decision of a rule under test on ``call``, for a tool without its own ``policy``."""
        name, arguments = call.function.name, parse_arguments(call.function.arguments)
        self._zone.policy.record_test(
            CallContext(self.agent_id), name, arguments, self._decide_policy(name, arguments)
        )

    async def hold_call(self, state: AgentState) -> Request | None:
        """Return the request that people must answer before the next call in ``state`` (`BudgetGate`)."""
        return await self._in_pool(self._budgets.hold_call, self.agent_id, self.path, state.granted_from)

    def _on_event(self, event: Event) -> None:
        """Report an event of the running step, and collect streamed text for a note."""
        if self._event_listener is not None:
            self._event_listener(event)
        if not isinstance(event, LlmStream) or not event.chunk.content:
            return
        self._streamed.append(event.chunk.content)
        if len(self._streamed) == 1:
            self._stream_timer = asyncio.get_running_loop().call_later(_STREAM_SECONDS, self._flush_stream)

    def _flush_stream(self) -> None:
        """Record the text that the model has streamed since the last note."""
        self._zone.record_stream(self.path, "".join(self._streamed))
        self._streamed.clear()

    def _cancel_stream_timer(self) -> None:
        if self._stream_timer is not None:
            self._stream_timer.cancel()
            self._stream_timer = None
        self._streamed.clear()

    async def _run_step(self) -> None:
        self._in_tool = False
        await self._drop_unconfirmed()
        step = asyncio.create_task(self._runtime.step(self._state))
        try:
            while not step.done() and not self._must_interrupt():
                called = asyncio.create_task(self._signal.wait())
                try:
                    await asyncio.wait({step, called}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    called.cancel()
                self._signal.clear()
        finally:
            if not step.done():
                step.cancel()
                await asyncio.wait({step})
            self._cancel_stream_timer()
            if not step.cancelled():
                await self._commit_step(step.result())

    def _must_interrupt(self) -> bool:
        """Return whether to cancel the running step.

        A pause, a cancellation or the end of the agent interrupts a model's answer. Only a second
        cancellation interrupts a tool, because a tool may hang.
        """
        said = [control.row.tool for control in self._inbox]
        if self._in_tool:
            return said.count(CANCEL) > 1
        return PAUSE in said or CANCEL in said or self._is_ended_by_others()

    def _is_ended_by_others(self) -> bool:
        if self._end_row is None or self._state.status in ENDED:
            return False
        return self._end_row.actor != self.agent_id

    def _exceeds_final_answer(self) -> bool:
        """Return whether the agent ended itself, and the next step would go beyond its final answer."""
        if self._end_row is None or self._state.status in ENDED:
            return False
        waits = self._state.status in ("waiting_for_human_input", "paused", "parked")
        if waits or self._state.incomplete_answers:
            # An incomplete answer also counts as the final answer.
            return True
        return self._count_answers() > self._answers_at_end and bool(self._state.open_calls)

    def _count_answers(self) -> int:
        return sum(isinstance(message, AssistantMessage) for message in self._state.messages)

    async def _process_controls(self) -> None:
        """Process the inbox in order. Messages wait until the calls before them have their results. If the
        journal refuses a step, its instruction or message stays for the next attempt."""
        self._signal.clear()
        while self._inbox:
            before, self._last_processed = self._last_processed, self._inbox[0].row.seq
            try:
                await self._process_control(self._inbox[0])
            except JournalError:
                self._last_processed = before
                raise
            del self._inbox[0]
        if self._end_row is not None and (self._is_ended_by_others() or self._exceeds_final_answer()):
            await self._cancel(self._end_row, self._end_row.message)
        if self._state.status != "cancelled":
            while self._messages and transitions.accepts_message(self._state):
                await self._add_message(self._messages.popleft())

    async def _process_control(self, control: SessionRecord) -> None:
        row = control.row
        if row.tool == MESSAGE:
            self._messages.append(control)
        elif row.tool == PAUSE and self._state.status not in (*ENDED, "paused"):
            await self._commit_transition(transitions.pause(self._state, row.actor), row)
        elif is_leave(row):
            # `_wait_for_reset` reads it from the journal, because another process may have received it.
            return
        elif row.tool == RESUME and row.seq < self._paused_at:
            return
        elif row.tool == RESUME and self._state.status in ("paused", "parked", "error"):
            await self._commit_transition(transitions.resume(self._state, row.actor), row)
        elif row.tool == CANCEL and self._state.status != "cancelled":
            await self._cancel(row, control.text)
        elif row.tool in (ANSWER, WITHDRAW) and self._state.asked is not None:
            await self._apply_answer()

    async def _obey_earlier_pause(self) -> None:
        """Pause the session if its agent was paused before it began, or while it had ended."""
        if self._state.status in (*ENDED, "paused"):
            return
        row = (await self._in_pool(self._zone.find_steering, self.path)).pause
        if row is not None:
            self._paused_at = row.seq
            await self._commit_transition(transitions.pause(self._state, row.actor), row)

    async def _add_message(self, control: SessionRecord) -> None:
        step = transitions.add_message(
            self._state, control.text, control.row.actor, is_verified=control.is_verified
        )
        had_ended = self._state.status in ENDED
        try:
            await self._commit_transition(step, control.row)
        except JournalError:
            self._messages.appendleft(control)
            raise
        if had_ended:
            await self._obey_earlier_pause()

    async def _cancel(self, row: Row, reason: str) -> None:
        if self._state.asked is not None and self._is_own_request():
            # A request that cannot be opened needs no withdrawal.
            with suppress(TooManyRequests):
                await self._in_pool(self._requests.withdraw, await self._open_request(), row.actor)
        language = self._runtime.config.language
        await self._commit_transition(transitions.cancel(self._state, row.actor, reason, language), row)

    async def _wait_for_answer(self) -> None:
        """Wait until the request is answered or expires, or a message or an instruction arrives."""
        try:
            await self._open_request()
        except TooManyRequests as error:
            language = self._runtime.config.language
            await self._commit_transition(transitions.apply_refused_request(self._state, error, language))
            return
        if await self._apply_answer():
            return
        asked = self._state.asked
        expires = asked.expires if asked is not None else None
        if self._is_own_request() or self.watch_request is None:
            has_come = await self._wait_for_signal(expires)
        else:
            unwatch = self.watch_request(self._request_path(), self._signal.set)
            try:
                # The request may have ended before the subscription.
                if await self._apply_answer():
                    return
                has_come = await self._wait_for_signal(expires)
            finally:
                unwatch()
        if not has_come:
            await self._in_pool(self._requests.expire, self._request_path())
            await self._apply_answer()

    async def _wait_for_reset(self) -> None:
        """Wait until a message or an instruction arrives for the parked session. With a person's leave,
        resume it once when its limit resets."""
        limit = self._state.limit
        leave = await self._in_pool(self._zone.find_leave, self.path)
        resets = limit.resets if limit is not None and leave is not None else None
        has_come = await self._wait_for_signal(resets)
        if not has_come and leave is not None:
            await self._commit_transition(transitions.resume(self._state, leave.actor), leave)

    async def _open_request(self) -> str:
        """Open the request of the state if it is not open, and return its path. Raise `TooManyRequests`."""
        asked = self._state.asked
        if asked is not None:
            await self._in_pool(self._requests.ask, CallContext(self.agent_id), self._request_path(), asked)
        return self._request_path()

    def _request_path(self) -> str:
        return request_path(self.path, self._state)

    def _is_own_request(self) -> bool:
        """Return whether this session made the request. Sessions that share a budget share one request."""
        return self._request_path().startswith(f"{self.path}/")

    async def _apply_answer(self) -> bool:
        """Continue after the request of the state has ended. Return False while it is open."""
        asked = self._state.asked
        if asked is None:
            return False
        ended = await self._in_pool(self._requests.ended, self._request_path(), asked)
        if ended is None:
            return False
        language = self._runtime.config.language
        if ended.answer is None:
            result = transitions.apply_withdrawal(self._state, ended.row.actor, language)
        elif ended.answer.expired:
            result = transitions.apply_expiry(self._state, language)
        else:
            self._approvals.remember(self._state)
            result = transitions.apply_answer(self._state, ended.answer, ended.row.actor, language)
        await self._commit_transition(result)
        return True

    async def _wait_for_signal(self, expires: int | None = None) -> bool:
        """Wait until a message or an instruction arrives. Return False if none arrives before ``expires``.

        ``expires``: nanoseconds since the epoch, None for no limit.
        """
        # `asyncio.wait_for` of Python 3.11 loses a cancellation that arrives together with the result.
        with suppress(TimeoutError):
            async with expiry(expires, self._zone.now):
                await self._signal.wait()
        return self._signal.is_set()

    async def _in_pool(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_to_completion(self._threads, function, *args, **kwargs)

    def _parking_detail(self, state: AgentState) -> dict[str, Json]:
        """Return the fields of a step's detail for the limit that parks ``state``, none if it is not
        parked."""
        if state.status != "parked" or state.limit is None:
            return {}
        parking = Parking(self._parked_since, state.limit.resets, state.limit.text)
        return {PARKED: parking_detail(parking)}

    async def _commit_transition(self, result: StepResult, control: Row | None = None) -> None:
        """Commit the transition ``result``, caused by the row ``control``, with the current time."""
        state = result.new_state.with_changes(last_modified=timestamp(self._zone.now()))
        await self._commit_step(result.model_copy(update={"new_state": state}), control)

    async def _commit_step(self, result: StepResult, control: Row | None = None) -> None:
        """Commit the step as a row."""
        await self._in_pool(self._write_step, result, control)

    def _write_step(self, result: StepResult, control: Row | None) -> None:
        before, after = self._state, result.new_state
        detail = step_detail(
            after,
            control=control.seq if control else None,
            last_processed=self._last_processed,
            waiting=[each.row.seq for each in self._messages],
        )
        if after.status == "parked" and before.status != "parked":
            self._parked_since = self._version + 1
        detail |= self._parking_detail(after)
        used = used_in_step(before, result)
        if used is not None:
            detail[USED] = usage_detail(used)
        record, message = encode_step(before, after), summarize_step(before, result)
        row = self._zone.step(self.path, self._version, result.instruction, record, message, detail)
        self._version = row.version or 0
        self._state = after
