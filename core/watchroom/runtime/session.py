"""A session at work: takes its agent step by step, makes each step a row, and heeds what people say.

One process runs a session at a time; that it is the one, each row's version decides. Whatever ends the
process, `Sessions.resume` goes on from the last row.
"""

from __future__ import annotations

import asyncio
import time
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import Final

from watchroom.model import ANSWER, CANCEL, ENDED, MESSAGE, PAUSE, RESUME, Row
from watchroom.runtime import answering
from watchroom.runtime.agent import Agent, AgentTool, RuntimeConfig, Tool
from watchroom.runtime.describing import detail_of, heard_in, message_of
from watchroom.runtime.events import Event, LlmStream
from watchroom.runtime.messages import AssistantMessage, ToolCall
from watchroom.runtime.record import step_record
from watchroom.runtime.runtime import AgentRuntime
from watchroom.runtime.state import AgentState, StepResult, call_key
from watchroom.runtime.threads import finished
from watchroom.zones.requests import RequestZone
from watchroom.zones.sessions import SessionRecord, SessionZone, session_path

_STREAM_SECONDS: Final = 0.2
"""So often, at most, what a model has said so far is noted."""


class Session:
    """Made by `Sessions`. Its methods belong to the event loop that it runs on."""

    def __init__(
        self,
        zone: SessionZone,
        requests: RequestZone,
        threads: Executor,
        agent_id: str,
        agent: Agent,
        config: RuntimeConfig,
        state: AgentState,
        last: Row,
    ) -> None:
        self.agent_id = agent_id
        self.path = session_path(agent_id, state.session_id)
        self._zone = zone
        self._requests = requests
        self._threads = threads
        self._also_hears = config.on_event
        self._runtime = AgentRuntime(agent, replace(config, on_event=self._hears, ledger=self))
        self._state = state
        self._version = last.version or 0
        self._resumed_at = 0
        self._begun: set[str] = set()
        self._doubtful: frozenset[str] = frozenset()
        self._heard, _ = heard_in(last)
        self._mail: list[SessionRecord] = []
        self._messages: deque[SessionRecord] = deque()
        self.begun = 0
        """Its first row: who held or ended the agent before it, did not mean this session."""
        self._last_word: Row | None = None
        self._spoke_last = 0
        self.on_standstill: Callable[[], None] | None = None
        """Called whenever it begins to wait for a person."""
        self._called = asyncio.Event()
        self._in_tool = False
        self._streamed: list[str] = []
        self._telling: asyncio.TimerHandle | None = None

    def is_meant(self, row: Row) -> bool:
        """Whether what was said by ``row`` is for this session: of what came before it only messages are."""
        return row.seq > self.begun or row.tool == MESSAGE

    @property
    def heard(self) -> int:
        """The newest row of what was said to it that it has acted on."""
        return self._heard

    @property
    def state(self) -> AgentState:
        """As of the last row."""
        return self._state

    async def run(self, *, stay: bool = False) -> AgentState:
        """Go on until the session has ended: done, cancelled, or stopped by an error; gives the last state.

        It waits for people as long as it takes. With ``stay`` it waits for messages, too, when it has ended.
        Raises `SessionTaken` if another process went on with it.
        """
        while True:
            await self._heed()
            status = self._state.status
            if status in ("waiting_for_human_input", "paused") and self.on_standstill is not None:
                self.on_standstill()
            if status == "waiting_for_human_input":
                await self._wait_for_answer()
            elif status == "cancelled" or (status in ENDED and (self._last_word is not None or not stay)):
                return self._state
            elif status in ENDED or status == "paused":
                await self._wait()
            else:
                await self._step()

    async def listen(self) -> None:
        """Wait until something is said to it that it has not acted on yet."""
        await self._called.wait()

    async def step(self) -> StepResult:
        """Take one step and make it a row. What people say is left to `run`. Raises `SessionTaken`."""
        try:
            result = await self._runtime.step(self._state)
        finally:
            self._stop_telling()
        if result.new_state is not self._state:
            await self._keep(result)
        return result

    def takes(self, mail: SessionRecord) -> None:
        """Somebody said something to this session, or answered its request. It may be told again, and in
        another order than that of the rows, until the session runs."""
        seq = mail.row.seq
        if seq > self._heard and all(each.row.seq != seq for each in self._mail):
            insort(self._mail, mail, key=lambda each: each.row.seq)
            self._called.set()

    def is_over(self, word: Row) -> None:
        """The agent has ended, says this row: it is cancelled at what it does. If it said so itself, its
        model has one more word, with which nothing is done."""
        self._last_word = word
        self._spoke_last = self._times_spoken()
        self._called.set()

    def was_resumed(self, begun: Iterable[str], waiting: Iterable[SessionRecord]) -> None:
        """The session was left by another process, when these calls had begun and these messages waited."""
        self._resumed_at = self._version
        self._begun.update(begun)
        self._doubtful = frozenset(call_key(self._state, call) for call in self._state.open_calls)
        self._messages.extend(waiting)

    async def try_again(self) -> None:
        """Go on from an error."""
        await self._keep(answering.resumed(self._state, self.agent_id))

    async def begins(self, call: ToolCall, key: str, tool: Tool) -> bool:
        """The ledger of the runtime: whether the call may have run before, here or in another process.
        Raises `SessionTaken` if one has gone on."""
        self._in_tool = True
        again = key in self._begun
        self._begun.add(key)
        if isinstance(tool, AgentTool) and (tool.recovers or tool.repeatable):
            return again or key in self._doubtful or self._resumed_at == self._version
        if not again:
            name = call.function.name
            await finished(self._threads, self._zone.record_tool_start, self.path, self._version, key, name)
        return again

    def _hears(self, event: Event) -> None:
        """An event of the step that is being taken."""
        if self._also_hears is not None:
            self._also_hears(event)
        if not isinstance(event, LlmStream) or not event.chunk.content:
            return
        self._streamed.append(event.chunk.content)
        if len(self._streamed) == 1:
            self._telling = asyncio.get_running_loop().call_later(_STREAM_SECONDS, self._tell)

    def _tell(self) -> None:
        """Note what the model has said since the last time."""
        self._zone.record_stream(self.path, "".join(self._streamed))
        self._streamed.clear()

    def _stop_telling(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        self._streamed.clear()

    async def _step(self) -> None:
        self._in_tool = False
        step = asyncio.create_task(self._runtime.step(self._state))
        try:
            while not step.done() and not self._is_cut_short():
                called = asyncio.create_task(self._called.wait())
                try:
                    await asyncio.wait({step, called}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    called.cancel()
                self._called.clear()
        finally:
            if not step.done():
                step.cancel()
                await asyncio.wait({step})
            self._stop_telling()
            if not step.cancelled():
                await self._keep(step.result())

    def _is_cut_short(self) -> bool:
        """What a model says is cut short by a pause or an end. A tool's work is not, unless a person wants
        the end once more: a tool may hang."""
        said = [mail.row.tool for mail in self._mail]
        if self._in_tool:
            return said.count(CANCEL) > 1
        return PAUSE in said or CANCEL in said or self._is_ended_by_others()

    def _is_ended_by_others(self) -> bool:
        if self._last_word is None or self._state.status in ENDED:
            return False
        return self._last_word.actor != self.agent_id

    def _goes_too_far(self) -> bool:
        """Whether it has ended by its own word, and would do something more, or wait for somebody."""
        if self._last_word is None or self._state.status in ENDED:
            return False
        waits = self._state.status in ("waiting_for_human_input", "paused")
        if waits or self._state.incomplete_answers:
            # Its last word need not be whole.
            return True
        return self._times_spoken() > self._spoke_last and bool(self._state.open_calls)

    def _times_spoken(self) -> int:
        return sum(isinstance(message, AssistantMessage) for message in self._state.messages)

    async def _heed(self) -> None:
        """Act on what was said, in order. Messages wait until the calls before them have their results."""
        self._called.clear()
        while self._mail:
            mail = self._mail.pop(0)
            row = mail.row
            self._heard = row.seq
            if row.tool == MESSAGE:
                self._messages.append(mail)
            elif row.tool == PAUSE and self._state.status not in (*ENDED, "paused"):
                await self._keep(answering.paused(self._state, row.actor), row)
            elif row.tool == RESUME and self._state.status in ("paused", "error"):
                await self._keep(answering.resumed(self._state, row.actor), row)
            elif row.tool == CANCEL and self._state.status != "cancelled":
                await self._cancel(row, mail.text)
            elif row.tool == ANSWER and self._state.asked is not None:
                await self._take_answer()
        if self._last_word is not None and (self._is_ended_by_others() or self._goes_too_far()):
            await self._cancel(self._last_word, self._last_word.message)
        if self._state.status != "cancelled":
            while self._messages and answering.can_be_told(self._state):
                mail = self._messages.popleft()
                await self._keep(answering.told(self._state, mail.text, mail.row.actor), mail.row)

    async def _cancel(self, row: Row, reason: str) -> None:
        if self._state.asked is not None:
            await finished(self._threads, self._requests.withdraw, await self._asked(), row.actor)
        language = self._runtime.config.language
        await self._keep(answering.cancelled(self._state, row.actor, reason, language), row)

    async def _wait_for_answer(self) -> None:
        """Until somebody answers, the time is over, or something else is said."""
        await self._asked()
        if await self._take_answer():
            return
        asked = self._state.asked
        expires = asked.expires if asked is not None else None
        seconds = None if expires is None else max(0.0, (expires - time.time_ns()) / 1e9)
        if not await self._wait(seconds):
            await finished(self._threads, self._requests.expire, self._request_path())
            await self._take_answer()

    async def _asked(self) -> str:
        """Where the request stands, which is opened if it was not."""
        asked = self._state.asked
        if asked is not None:
            await finished(self._threads, self._requests.ask, self.agent_id, self._request_path(), asked)
        return self._request_path()

    def _request_path(self) -> str:
        return f"{self.path}/{self._state.step_count}"

    async def _take_answer(self) -> bool:
        ended = await finished(self._threads, self._requests.ended, self._request_path())
        if ended is None or ended.answer is None:
            return False
        language = self._runtime.config.language
        if ended.answer.expired:
            result = answering.expired(self._state, language)
        else:
            result = answering.answered(self._state, ended.answer, ended.row.actor, language)
        await self._keep(result)
        return True

    async def _wait(self, seconds: float | None = None) -> bool:
        """Until something is said; False if nothing was for so long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._called.wait(), seconds)
        return self._called.is_set()

    async def _keep(self, result: StepResult, mail: Row | None = None) -> None:
        """Make the step a row; from then on it has happened."""
        await finished(self._threads, self._write, result, mail)

    def _write(self, result: StepResult, mail: Row | None) -> None:
        before, after = self._state, result.new_state
        detail = detail_of(
            after,
            mail=mail.seq if mail else None,
            heard=self._heard,
            waiting=[each.row.seq for each in self._messages],
        )
        record, message = step_record(before, after), message_of(before, result)
        row = self._zone.step(self.path, self._version, result.instruction, record, message, detail)
        self._version = row.version or 0
        self._state = after
