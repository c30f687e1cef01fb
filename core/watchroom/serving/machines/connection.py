"""The near end: keeps a connection to each machine, and sends answers.

An answer of which the result is lost is never sent again. Its fate is asked after the next connection, and a
person can then answer again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
import uuid
from asyncio import StreamReader, StreamWriter, SubprocessTransport, WriteTransport
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from watchroom.serving.machines.address import Machine
from watchroom.serving.machines.messages import (
    ANSWER_SECONDS,
    BEAT_SECONDS,
    MAX_LINE,
    MAX_TIME,
    PROTOCOL,
    BadLineError,
    Beat,
    Check,
    FarAgent,
    FarAnswer,
    FarNeed,
    FarSummary,
    FromFar,
    Hello,
    NeedAnswer,
    Result,
    dump_line,
    parse_from_far,
)

SILENCE_SECONDS: Final = 10.0
"""Seconds without a line after which a connection is lost. Five signs of life are missing then."""
CONNECT_SECONDS: Final = 30.0
"""Seconds for ssh to connect, and for the program there to start."""
_RETRY_SECONDS: Final = (1.0, 30.0)
"""The first and the longest pause between two attempts to connect."""
_REFUSED_SECONDS: Final = 60.0
"""Seconds between two attempts with a machine that speaks another protocol."""
_MESSAGE_SECONDS: Final = 0.05
"""Seconds between two messages of one machine. A machine that sends more is slowed down."""
_FRAME_SECONDS: Final = 0.1
"""Minimum seconds between two reports of changes."""
_MAX_ERRORS: Final = 4096
"""Bytes of ssh's standard error that are kept."""
_MAX_REASON: Final = 300
_SECOND: Final = 1_000_000_000
_log = logging.getLogger("watchroom")

MachineState: TypeAlias = Literal["connecting", "connected", "lost", "refused"]
"""The state of a connection.

- ``lost``: there is no connection. Agents and needs are the last known ones.
- ``refused``: the other machine speaks another protocol.
"""
Fate: TypeAlias = Literal["accepted", "refused", "absent", "unknown", "unsent"]
"""The outcome of an answer.

- ``absent``: it did not arrive.
- ``unknown``: it is not known whether it arrived. Another fate follows after the next connection.
- ``unsent``: it was not sent, because there is no connection.
"""


class MachineView(NamedTuple):
    """A machine as people see it. All texts of the machine can contain any character.

    - ``since``: when the state began. For a lost connection, the time of the last sign of life. Nanoseconds
      since the epoch.
    - ``reason``: why there is no connection; empty if it is silent.
    - ``place``, ``version``: the workspace's name there, and the version of Watchroom.
    - ``more_agents``, ``more_needs``: how many the other machine left out.
    - ``ahead``: nanoseconds by which its clock is ahead.
    - ``sent``: the needs, by row, with an answer whose result is missing. True: it is not known whether the
      answer arrived.
    """

    name: str
    state: MachineState = "connecting"
    since: int = 0
    reason: str = ""
    place: str = ""
    version: str = ""
    agents: tuple[FarAgent, ...] = ()
    needs: tuple[FarNeed, ...] = ()
    more_agents: int = 0
    more_needs: int = 0
    ahead: int = 0
    sent: Mapping[int, bool] = MappingProxyType({})

    @property
    def is_connected(self) -> bool:
        return self.state == "connected"


class Outcome(NamedTuple):
    """The outcome of the answer to ``need`` of the machine ``name``. ``message``: the machine's own words."""

    name: str
    need: FarNeed
    fate: Fate
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Sent:
    """An answer without a result. ``until``: by the far clock. ``sent_at``: by the monotonic clock."""

    need: FarNeed
    until: int
    sent_at: float
    is_unknown: bool = False


class _Lost(Exception):
    """There is no connection. ``reason``: empty for silence."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class _Ended(_Lost):
    """The output of ssh ended."""


class _OtherProtocol(Exception):
    """The other machine speaks another protocol."""


class Machines:
    """The connections to ``machines``, on one thread.

    - ``person``: the name of the person who answers. ``language``: of the machines' texts.
    - ``version``: of this Watchroom.
    - ``on_change``: gets all machines after a change. ``on_outcome``: gets the fate of an answer. Both are
      called on the thread.
    """

    def __init__(
        self,
        machines: Sequence[Machine],
        person: str,
        language: str,
        version: str,
        on_change: Callable[[tuple[MachineView, ...]], object],
        on_outcome: Callable[[Outcome], object],
    ) -> None:
        self._on_change = on_change
        hello = Hello(protocol=PROTOCOL, version=version)
        self._links = {
            each.name: _Link(each, each.command(person, language), hello, self._publish, on_outcome)
            for each in machines
        }
        self._is_due = False
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = Thread(target=self._run, name="watchroom-machines", daemon=True)

    @property
    def views(self) -> tuple[MachineView, ...]:
        """The machines, in their order."""
        return tuple(each.view for each in self._links.values())

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def close(self) -> None:
        """End all connections."""
        if self._thread.ident is not None:
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()
        else:
            self._loop.close()

    def answer(
        self, name: str, need: FarNeed, decision: FarAnswer, text: str = "", values: Sequence[str] = ()
    ) -> None:
        """Send an answer. `on_outcome` gets its fate. An answer to a need with another answer whose result is
        missing is not sent."""
        self._loop.call_soon_threadsafe(self._links[name].answer, need, decision, text, tuple(values))

    def _publish(self) -> None:
        """Report the machines, together with other changes of the next moment."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(_FRAME_SECONDS, self._report)

    def _report(self) -> None:
        self._is_due = False
        self._on_change(self.views)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        tasks = [asyncio.create_task(link.run()) for link in self._links.values()]
        await self._closing.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Link:
    """The connection to one machine. Used on one event loop."""

    def __init__(
        self,
        machine: Machine,
        command: Sequence[str],
        hello: Hello,
        on_change: Callable[[], object],
        on_outcome: Callable[[Outcome], object],
    ) -> None:
        self.view = MachineView(machine.name, since=time.time_ns())
        self._command = command
        self._hello = hello
        self._on_change = on_change
        self._on_outcome = on_outcome
        self._writer: StreamWriter | None = None
        self._sent: dict[str, _Sent] = {}
        self._heard = time.time_ns()

    async def run(self) -> None:
        """Keep the connection until this is cancelled."""
        first, longest = _RETRY_SECONDS
        delay = first
        while True:
            try:
                await self._connect()
            except _Lost as lost:
                if self.view.is_connected:
                    delay = first
                self._lose("lost", lost.reason)
            except _OtherProtocol:
                self._lose("refused", "")
                delay = _REFUSED_SECONDS
            except Exception as error:  # noqa: BLE001  # a defect must not leave a state that looks alive
                _log.exception("the connection to %s failed", self.view.name)
                self._lose("lost", str(error))
            await asyncio.sleep(delay)
            delay = min(2 * delay, longest)

    def answer(self, need: FarNeed, decision: FarAnswer, text: str, values: tuple[str, ...]) -> None:
        """Send an answer to ``need``."""
        is_pending = any(each.need.row == need.row for each in self._sent.values())
        if self._writer is None or not self.view.is_connected or is_pending:
            self._on_outcome(Outcome(self.view.name, need, "unknown" if is_pending else "unsent"))
            return
        key = uuid.uuid4().hex
        # The other machine's clock can be anything.
        until = min(MAX_TIME, max(0, time.time_ns() + self.view.ahead + int(ANSWER_SECONDS * _SECOND)))
        try:
            answer = NeedAnswer(
                key=key,
                row=need.row,
                shown=need.shown,
                decision=decision,
                text=text,
                values=values,
                until=until,
            )
        except ValidationError as error:
            # The text is too long, or no text at all.
            self._on_outcome(Outcome(self.view.name, need, "refused", error.errors()[0]["msg"]))
            return
        self._sent[key] = _Sent(need, until, time.monotonic())
        self._write(answer)
        self._show()

    async def _connect(self) -> None:
        """Connect, and follow the machine until the connection ends. Raise `_Lost`, `_OtherProtocol`."""
        starting = asyncio.ensure_future(_start(self._command))
        try:
            transport, process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # asyncio does not close the pipes of a start that is cancelled.
            with suppress(OSError):
                await _end(*await starting)
            raise
        except OSError as error:
            raise _Lost(f"ssh: {error.strerror or error}") from error
        errors = bytearray()
        reading = asyncio.create_task(_keep_errors(process.stderr, errors))
        beating: asyncio.Task[None] | None = None
        try:
            self._writer = process.stdin
            self._write(self._hello)
            await self._greet(process)
            beating = asyncio.create_task(self._beat())
            while True:
                self._take(await self._read(process.stdout, SILENCE_SECONDS))
                await asyncio.sleep(_MESSAGE_SECONDS)
        except _Ended as ended:
            raise _Lost(await _describe_end(process, reading, errors)) from ended
        finally:
            self._writer = None
            for task in (reading, beating):
                if task is not None:
                    task.cancel()
            await _end(transport, process)

    async def _greet(self, process: Process) -> None:
        hello = await self._read(process.stdout, CONNECT_SECONDS)
        if not isinstance(hello, Hello):
            raise _Lost(hello.type)
        self.view = self.view._replace(version=hello.version, place=hello.place)
        if hello.protocol != PROTOCOL:
            raise _OtherProtocol

    async def _read(self, stream: StreamReader | None, seconds: float) -> FromFar:
        """Return the next message. Raise `_Lost`."""
        if stream is None:
            raise _Ended
        try:
            async with asyncio.timeout(seconds):
                line = await stream.readuntil(b"\n")
        except TimeoutError as error:
            raise _Lost from error
        except asyncio.IncompleteReadError as error:
            raise _Ended from error
        except (asyncio.LimitOverrunError, OSError) as error:
            raise _Lost(str(error)) from error
        self._heard = time.time_ns()
        try:
            return parse_from_far(line)
        except BadLineError as error:
            # Such as a message of the login shell.
            raise _Lost(line[:_MAX_REASON].decode(errors="replace").strip()) from error

    def _take(self, message: FromFar) -> None:
        if isinstance(message, Result):
            self._settle(message)
            return
        if isinstance(message, Hello):
            return
        ahead = message.time - time.time_ns()
        if isinstance(message, FarSummary):
            is_new = not self.view.is_connected
            self.view = self.view._replace(
                state="connected",
                since=time.time_ns() if is_new else self.view.since,
                reason="",
                agents=message.agents,
                needs=message.needs,
                more_agents=message.more_agents,
                more_needs=message.more_needs,
                ahead=ahead,
            )
            self._show()
        else:
            self.view = self.view._replace(ahead=ahead)

    def _settle(self, result: Result) -> None:
        sent = self._sent.pop(result.key, None)
        if sent is not None:
            self._on_outcome(Outcome(self.view.name, sent.need, result.state, result.message))
            self._show()

    async def _beat(self) -> None:
        """Send signs of life, and ask for the outcomes of answers without a result."""
        while True:
            self._write(Beat(time=time.time_ns()))
            if self.view.is_connected:
                self._doubt(sent_before=time.monotonic() - ANSWER_SECONDS)
                for key, sent in self._sent.items():
                    if sent.is_unknown:
                        self._write(Check(key=key, until=sent.until))
            await asyncio.sleep(BEAT_SECONDS)

    def _doubt(self, sent_before: float) -> None:
        """Report answers without a result as of unknown fate, once. ``sent_before``: by the monotonic
        clock."""
        known = [(key, sent) for key, sent in self._sent.items() if not sent.is_unknown]
        doubted = [(key, sent) for key, sent in known if sent.sent_at <= sent_before]
        for key, sent in doubted:
            self._sent[key] = replace(sent, is_unknown=True)
            self._on_outcome(Outcome(self.view.name, sent.need, "unknown"))
        if doubted:
            self._show()

    def _lose(self, state: MachineState, reason: str) -> None:
        self._doubt(sent_before=time.monotonic())
        since = self._heard if self.view.state in ("connected", "connecting") else self.view.since
        self.view = self.view._replace(state=state, since=since, reason=reason[:_MAX_REASON])
        self._show()

    def _show(self) -> None:
        self.view = self.view._replace(sent={each.need.row: each.is_unknown for each in self._sent.values()})
        self._on_change()

    def _write(self, message: Hello | Beat | NeedAnswer | Check) -> None:
        # Nothing waits for the other end to read: if it does not, the connection is lost in seconds.
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(dump_line(message))


async def _start(command: Sequence[str]) -> tuple[SubprocessTransport, Process]:
    """Start ``command``. Raise OSError."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=MAX_LINE, loop=loop),
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    return transport, Process(transport, protocol, loop)


async def _end(transport: SubprocessTransport, process: Process) -> None:
    """End ssh, and the programs through which it may connect."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # asyncio waits for the end of each pipe. A pipe with unread data never ends, nor one that another process
    # has inherited.
    for number in range(3):
        pipe = transport.get_pipe_transport(number)
        if pipe is None or pipe.is_closing():
            continue
        if isinstance(pipe, WriteTransport):
            pipe.abort()
        else:
            pipe.close()
    await process.wait()


async def _keep_errors(stream: StreamReader | None, kept: bytearray) -> None:
    """Keep the end of ``stream``, the standard error of ssh."""
    while stream is not None and (piece := await stream.read(_MAX_ERRORS)):
        kept += piece
        del kept[:-_MAX_ERRORS]


async def _describe_end(process: Process, reading: asyncio.Task[None], errors: bytearray) -> str:
    """Return why ssh ended: the last line of its standard error, or its exit status."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            await reading
    lines = errors.decode(errors="replace").strip().splitlines()
    if lines:
        return lines[-1]
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            return f"ssh: {await process.wait()}"
    return "ssh"
