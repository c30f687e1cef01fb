"""A running session: takes its agent step by step, commits each step as a row, and obeys what people send it.

One process runs a session at a time, which the version of each row decides. After a crash `Sessions.resume`
continues from the last row."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Final, ParamSpec, TypeVar

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
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.requests import Request, parse_arguments
from watchroom.rules.usage import USED, usage_detail
from watchroom.runtime import transitions
from watchroom.runtime.agent import AgentProgram, AgentTool, RuntimeConfig, Tool
from watchroom.runtime.approvals import Approvals, has_approvals, request_path
from watchroom.runtime.events import LlmStream
from watchroom.runtime.messages import AssistantMessage, ToolCall
from watchroom.runtime.request_waiting import expiry
from watchroom.runtime.runtime import AgentRuntime
from watchroom.runtime.state import AgentState, Event, StepResult, call_key
from watchroom.runtime.step_encoding import encode_step
from watchroom.runtime.step_summary import parse_processed_rows, step_detail, summarize_step, used_in_step
from watchroom.runtime.threads import run_to_completion
from watchroom.zones.budgets import BudgetZone
from watchroom.zones.requests import RequestZone
from watchroom.zones.sessions import SessionRecord, SessionZone, session_path

P = ParamSpec("P")
T = TypeVar("T")
_STREAM_SECONDS: Final = 0.2
"""So often, at most, what a model has said so far is noted."""


class Session:
    """A session of one agent, made by `Sessions.begin` or `Sessions.resume`. All methods belong to the event
    loop that it runs on.

    ``zone``, ``requests`` and ``budgets`` are those of the workspace, ``threads`` is the pool for blocking
    calls. ``agent_id`` is the registered agent, ``agent`` decides its steps as ``config`` says. ``state`` is
    the session's state as of its row ``last``.

        async with workspace.sessions.begin("alice", agent, messages=messages) as session:
            state = await session.run()
        print(state.status, state.messages[-1].content)
    """

    def __init__(
        self,
        zone: SessionZone,
        requests: RequestZone,
        budgets: BudgetZone,
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
        self._started_calls: set[str] = set()
        self._uncertain_calls: frozenset[str] = frozenset()
        self._last_processed, _ = parse_processed_rows(last)
        self._inbox: list[SessionRecord] = []
        self._messages: deque[SessionRecord] = deque()
        self.first_row = 0
        """Its first row: who held or ended the agent before it, did not mean this session."""
        self._end_row: Row | None = None
        self._answers_at_end = 0
        self.on_waiting: Callable[[], None] | None = None
        """Called whenever it begins to wait for a person."""
        self.watch_request: Callable[[str, Callable[[], None]], Callable[[], None]] | None = None
        """Has a function called when a request at a path ends, which another session asked; returns the call
        that ends it."""
        self._signal = asyncio.Event()
        self._in_tool = False
        self._streamed: list[str] = []
        self._stream_timer: asyncio.TimerHandle | None = None

    def is_for_session(self, row: Row) -> bool:
        """Whether ``row``, sent to the agent, is meant for this session: of what is older than its first row
        only messages are."""
        return row.seq > self.first_row or row.tool == MESSAGE

    @property
    def last_processed(self) -> int:
        """The newest row sent to it that it has acted on."""
        return self._last_processed

    @property
    def state(self) -> AgentState:
        """The state as of the last row."""
        return self._state

    async def run(self, *, stay: bool = False) -> AgentState:
        """Run until the session has ended (done, cancelled, or stopped by an error); returns the last state.

        It waits for people as long as it takes. With ``stay`` it also waits for messages when it is done.
        Raises `SessionTaken` if another process continued it."""
        while True:
            await self._process_controls()
            status = self._state.status
            if status in ("waiting_for_human_input", "paused") and self.on_waiting is not None:
                self.on_waiting()
            if status == "waiting_for_human_input":
                await self._wait_for_answer()
            elif status == "cancelled" or (status in ENDED and (self._end_row is not None or not stay)):
                return self._state
            elif status in ENDED or status == "paused":
                await self._wait_for_signal()
            else:
                await self._run_step()

    async def wait_for_control(self) -> None:
        """Wait until something is sent to it that it has not acted on yet."""
        await self._signal.wait()

    async def step(self) -> StepResult:
        """Take one step and commit it as a row; returns its result. What people send is left to `run`. Raises
        `SessionTaken`."""
        await self._drop_unconfirmed()
        try:
            result = await self._runtime.step(self._state)
        finally:
            self._cancel_stream_timer()
        if result.new_state is not self._state:
            await self._commit_step(result)
        return result

    def deliver(self, control: SessionRecord) -> None:
        """Accept ``control``: a message, an instruction, or an answer to the session's request. It may come
        again, and in another order than that of the rows, before the session runs."""
        seq = control.row.seq
        if seq > self._last_processed and all(each.row.seq != seq for each in self._inbox):
            insort(self._inbox, control, key=lambda each: each.row.seq)
            self._signal.set()

    def end_agent(self, row: Row) -> None:
        """End the session, because its agent was ended by ``row``: what it does is cancelled. If the agent
        ended itself, its model gets one more answer, whose calls are not run."""
        self._end_row = row
        self._answers_at_end = self._count_answers()
        self._signal.set()

    async def take_over(self, last: Row) -> Row:
        """Go on with the session whose newest step is ``last``, so that no other process can; returns the row
        from which it goes on. Raises `SessionTaken` where another one was first."""
        heard, waiting = parse_processed_rows(last)
        detail = step_detail(self._state, last_processed=heard, waiting=waiting)
        record = encode_step(self._state, self._state)
        row = await self._in_pool(self._zone.take_over, last, record, detail)
        self._version = row.version or 0
        return row

    def restore(self, begun: Iterable[str], waiting: Iterable[SessionRecord]) -> None:
        """Continue a session that another process left: ``begun`` are the keys of the calls that were
        started, ``waiting`` the messages that were not delivered."""
        self._resumed_at = self._version
        self._started_calls.update(begun)
        self._uncertain_calls = frozenset(call_key(self._state, call) for call in self._state.open_calls)
        self._messages.extend(waiting)

    async def load_approvals(self, records: Sequence[SessionRecord]) -> int | None:
        """Take approvals only from answers that count, as `Approvals.load` does with all ``records`` of the
        session. Return the row of the answer, None if nothing is approved. Raise `SessionTaken`."""
        if not has_approvals(self._state):
            return None
        since = await self._in_pool(self._approvals.load, records)
        await self._drop_unconfirmed()
        return since

    async def _drop_unconfirmed(self) -> None:
        """Drop the approvals in the state that no person gave, and commit that as a step."""
        if not has_approvals(self._state):
            return
        kept = await self._in_pool(self._approvals.keep_confirmed, self._state)
        if kept != self._state:
            await self._commit_transition(StepResult(events=(), new_state=kept, instruction=CONTINUE))

    async def pause(self, row: Row) -> None:
        """Pause it before it runs, by the ``row`` with which a person paused its agent earlier. Raises
        `SessionTaken`."""
        await self._commit_step(transitions.pause(self._state, row.actor), row)

    async def retry(self) -> None:
        """Continue after an error, in the name of the person who resumed the session or wrote to it since.

        Only people grant it more steps. An unverified message grants none.
        """
        words = (each.row for each in self._inbox if each.row.tool in (RESUME, MESSAGE) and each.is_verified)
        by = next((row.actor for row in words if row.kind == "human"), self.agent_id)
        await self._commit_transition(transitions.resume(self._state, by))

    async def record_start(self, call: ToolCall, key: str, tool: Tool) -> bool:
        """The runtime's `CallLedger`: record that ``call`` of ``tool`` starts under ``key``; returns whether
        it may have run before, here or in another process. Raises `SessionTaken` if another process continued
        the session."""
        self._in_tool = True
        again = key in self._started_calls
        self._started_calls.add(key)
        if not again and not (isinstance(tool, AgentTool) and tool.policy is not None):
            await self._in_pool(self._record_policy_test, call)
        if isinstance(tool, AgentTool) and (tool.recovers or tool.repeatable):
            return again or key in self._uncertain_calls or self._resumed_at == self._version
        if not again:
            name = call.function.name
            await self._in_pool(self._zone.record_tool_start, self.path, self._version, key, name)
        return again

    def _decide_policy(self, tool: str, arguments: Mapping[str, Json]) -> PolicyDecision:
        return self._zone.policy.decide(self.agent_id, tool, arguments)

    def _record_policy_test(self, call: ToolCall) -> None:
        """Of a call of a tool that does not do so itself."""
        name, arguments = call.function.name, parse_arguments(call.function.arguments)
        self._zone.policy.record_test(self.agent_id, name, arguments, self._decide_policy(name, arguments))

    async def hold_call(self, state: AgentState) -> Request | None:
        """The runtime's `BudgetGate`: what people have to decide before the next call in ``state``."""
        return await self._in_pool(self._budgets.hold_call, self.agent_id, self.path, state.granted_from)

    def _on_event(self, event: Event) -> None:
        """An event of the step that is being taken."""
        if self._event_listener is not None:
            self._event_listener(event)
        if not isinstance(event, LlmStream) or not event.chunk.content:
            return
        self._streamed.append(event.chunk.content)
        if len(self._streamed) == 1:
            self._stream_timer = asyncio.get_running_loop().call_later(_STREAM_SECONDS, self._flush_stream)

    def _flush_stream(self) -> None:
        """Note what the model has said since the last time."""
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
        """Whether the step has to be cancelled: a model's answer by a pause or an end; a tool's work only if
        a person cancels a second time, because a tool may hang."""
        said = [control.row.tool for control in self._inbox]
        if self._in_tool:
            return said.count(CANCEL) > 1
        return PAUSE in said or CANCEL in said or self._is_ended_by_others()

    def _is_ended_by_others(self) -> bool:
        if self._end_row is None or self._state.status in ENDED:
            return False
        return self._end_row.actor != self.agent_id

    def _exceeds_final_answer(self) -> bool:
        """Whether the agent ended itself, and the session would do more than its final answer, or wait for a
        person."""
        if self._end_row is None or self._state.status in ENDED:
            return False
        waits = self._state.status in ("waiting_for_human_input", "paused")
        if waits or self._state.incomplete_answers:
            # Its last word need not be whole.
            return True
        return self._count_answers() > self._answers_at_end and bool(self._state.open_calls)

    def _count_answers(self) -> int:
        return sum(isinstance(message, AssistantMessage) for message in self._state.messages)

    async def _process_controls(self) -> None:
        """Carry out what was sent, in order. Messages wait until the calls before them have their results."""
        self._signal.clear()
        while self._inbox:
            control = self._inbox.pop(0)
            row = control.row
            self._last_processed = row.seq
            if row.tool == MESSAGE:
                self._messages.append(control)
            elif row.tool == PAUSE and self._state.status not in (*ENDED, "paused"):
                await self._commit_transition(transitions.pause(self._state, row.actor), row)
            elif row.tool == RESUME and self._state.status in ("paused", "error"):
                await self._commit_transition(transitions.resume(self._state, row.actor), row)
            elif row.tool == CANCEL and self._state.status != "cancelled":
                await self._cancel(row, control.text)
            elif row.tool in (ANSWER, WITHDRAW) and self._state.asked is not None:
                await self._apply_answer()
        if self._end_row is not None and (self._is_ended_by_others() or self._exceeds_final_answer()):
            await self._cancel(self._end_row, self._end_row.message)
        if self._state.status != "cancelled":
            while self._messages and transitions.accepts_message(self._state):
                control = self._messages.popleft()
                step = transitions.add_message(
                    self._state, control.text, control.row.actor, is_verified=control.is_verified
                )
                await self._commit_transition(step, control.row)

    async def _cancel(self, row: Row, reason: str) -> None:
        if self._state.asked is not None and self._is_own_request():
            await self._in_pool(self._requests.withdraw, await self._open_request(), row.actor)
        language = self._runtime.config.language
        await self._commit_transition(transitions.cancel(self._state, row.actor, reason, language), row)

    async def _wait_for_answer(self) -> None:
        """Wait until the request is answered or expires, or something else is sent."""
        await self._open_request()
        if await self._apply_answer():
            return
        asked = self._state.asked
        expires = asked.expires if asked is not None else None
        if self._is_own_request() or self.watch_request is None:
            has_come = await self._wait_for_signal(expires)
        else:
            unwatch = self.watch_request(self._request_path(), self._signal.set)
            try:
                # It may have ended just before.
                if await self._apply_answer():
                    return
                has_come = await self._wait_for_signal(expires)
            finally:
                unwatch()
        if not has_come:
            await self._in_pool(self._requests.expire, self._request_path())
            await self._apply_answer()

    async def _open_request(self) -> str:
        """The path of the request, which is opened if it was not."""
        asked = self._state.asked
        if asked is not None:
            await self._in_pool(self._requests.ask, self.agent_id, self._request_path(), asked)
        return self._request_path()

    def _request_path(self) -> str:
        return request_path(self.path, self._state)

    def _is_own_request(self) -> bool:
        """Whether it asked itself: of a budget that many share, one asks for all."""
        return self._request_path().startswith(f"{self.path}/")

    async def _apply_answer(self) -> bool:
        """Go on after the request of the state has ended. Return False while it is open."""
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
        """Wait until something is sent. Return False if nothing was sent before ``expires`` (nanoseconds
        since the epoch, None: no limit)."""
        # `wait_for` of Python 3.11 takes a cancellation for a result where both come at once.
        with suppress(TimeoutError):
            async with expiry(expires, self._zone.now):
                await self._signal.wait()
        return self._signal.is_set()

    async def _in_pool(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_to_completion(self._threads, function, *args, **kwargs)

    async def _commit_transition(self, result: StepResult, control: Row | None = None) -> None:
        """Commit ``result``, a transition, as the step that the row ``control`` caused. It happens now."""
        state = result.new_state.with_changes(last_modified=timestamp(self._zone.now()))
        await self._commit_step(result.model_copy(update={"new_state": state}), control)

    async def _commit_step(self, result: StepResult, control: Row | None = None) -> None:
        """Commit the step as a row; from then on it has happened."""
        await self._in_pool(self._write_step, result, control)

    def _write_step(self, result: StepResult, control: Row | None) -> None:
        before, after = self._state, result.new_state
        detail = step_detail(
            after,
            control=control.seq if control else None,
            last_processed=self._last_processed,
            waiting=[each.row.seq for each in self._messages],
        )
        used = used_in_step(before, result)
        if used is not None:
            detail[USED] = usage_detail(used)
        record, message = encode_step(before, after), summarize_step(before, result)
        row = self._zone.step(self.path, self._version, result.instruction, record, message, detail)
        self._version = row.version or 0
        self._state = after
