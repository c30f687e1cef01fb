"""An agent's process that is killed at a random moment: no finished call runs twice, none is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import IO

from crash import session_runner
from crash.session_runner import DEAD, EFFECTS, LANES, PLAIN, TURNS, WRITING
from effort import rounds
from evidence import all_rows, outside_rows
from watchroom import Workspace
from watchroom.features.requests.rows import decide_all
from watchroom.features.sessions.runtime import AgentState, AssistantMessage, ToolMessage
from watchroom.kernel.call_context import CallContext

KILLS = rounds(20, 50)
MOST_EVENTS = 60
SEED = int(os.environ.get("WATCHROOM_SEED", "4"))


class Runners:
    """Starts processes, one at a time, and kills them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._orders: IO[str] = process.stdin
        self._lines: IO[str] = process.stdout

    def kill(self, after: int) -> list[str]:
        """Have sessions run until so many events have happened, kill their process; returns all events."""
        child = self._begin("work")
        events = [self._event() for _ in range(after)]
        os.kill(child, signal.SIGKILL)
        return events + self._rest()

    def finish(self) -> list[str]:
        self._begin("finish")
        return self._rest()

    def _begin(self, order: str) -> int:
        self._orders.write(f"{order}\n")
        self._orders.flush()
        return int(self._lines.readline())

    def _rest(self) -> list[str]:
        return list(iter(self._line, DEAD))

    def _event(self) -> str:
        line = self._line()
        assert line != DEAD, "the process ended by itself"
        return line

    def _line(self) -> str:
        line = self._lines.readline()
        assert line, "the processes are gone"
        return line.strip()


@contextmanager
def runners(root: Path) -> Iterator[Runners]:
    command = [sys.executable, session_runner.__file__, str(root)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Runners(process)
    finally:
        process.communicate()


@contextmanager
def a_person(workspace: Workspace) -> Iterator[None]:
    """Someone in this process who approves of all that is asked."""
    over, news = Event(), Event()

    def approve() -> None:
        seen = 0
        while not over.is_set():
            for row in all_rows(workspace.journal, seen):
                seen = row.seq
                if row.zone == "request" and row.version == 1:
                    answer = decide_all(workspace.requests.find(row.seq), approved=True)
                    workspace.requests.answer(CallContext("human:dana"), row.seq, answer)
            news.wait(0.002)

    thread = Thread(target=approve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_killed_again_and_again_every_call_has_run_once(root: Path) -> None:
    print(f"WATCHROOM_SEED={SEED}")
    chance = random.Random(SEED)
    effects = root.parent / EFFECTS
    effects.touch()
    seen: Counter[str] = Counter()
    with (
        Workspace.open(root, agents=("alice", "bob")) as workspace,
        a_person(workspace),
        runners(root) as processes,
    ):
        last = workspace.journal.last_seq()
        for _ in range(KILLS):
            events = processes.kill(after=chance.randint(0, MOST_EVENTS))
            seen.update(events[-1:])
            with Workspace.open(root) as reopened:
                assert reopened.verify() == []
                assert outside_rows(reopened, after=last) == []
                last = reopened.journal.last_seq()
        processes.finish()
        heads = workspace.sessions.list("alice")
        assert {head.status for head in heads} == {"done"}
        states = [workspace.sessions.state("alice", head.id) for head in heads]
        rows = all_rows(workspace.journal)
        assert workspace.verify() == []
    # At several kinds of moments, that is; how many depends on what else the machine does.
    assert len(seen) > 1, seen
    assert len(states) >= LANES

    lines = Counter(effects.read_text().splitlines())
    for state in states:
        check(state, lines)
    assert set(lines.values()) == {1}

    calls = Counter(str(row.detail["call"]) for row in rows if row.version and "call" in row.detail)
    assert set(calls.values()) == {1}
    assert len(calls) == len(states) * TURNS * len(WRITING)


def check(state: AgentState, lines: Counter[str]) -> None:
    """Each call has one result, which is true."""
    open_calls: dict[str, tuple[str, str]] = {}
    turns = 0
    for message in state.messages:
        if isinstance(message, ToolMessage):
            name, arguments = open_calls.pop(message.tool_call_id)
            result = json.loads(message.content)
            if name not in PLAIN:
                assert result["success"], result
            elif result == "appended":
                assert lines[json.loads(arguments)["line"]] == 1
            else:
                assert result["error"] == "tool_interrupted"
                assert lines[json.loads(arguments)["line"]] <= 1
        else:
            assert open_calls == {}
        if isinstance(message, AssistantMessage) and message.tool_calls:
            turns += 1
            open_calls = {
                call.id: (call.function.name, call.function.arguments) for call in message.tool_calls
            }
    assert (open_calls, turns) == ({}, TURNS)
