"""A process that is frozen in the middle of a call: its session goes on in another one, and is never run
twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from elsewhere import session_elsewhere
from runtime.weather import Calls
from runtime.working import SAYS, chat
from watchroom import Workspace
from watchroom.features.sessions.rows import presence_of
from watchroom.features.sessions.runtime import AgentState, ToolMessage

PATIENCE: Final = 60.0


class Running:
    """A process in the middle of a call of a session, and the same ``workspace`` as this one has it."""

    def __init__(self, workspace: Workspace, process: subprocess.Popen[str]) -> None:
        self.workspace = workspace
        self.process = process

    def finish(self) -> str:
        """Have the call end; what the process says then."""
        return self.process.communicate("go on\n", PATIENCE)[0]


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.postgres)])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    checkout = ""
    if request.param == "folder":
        where = str(tmp_path / "team")
        opened = Workspace.open(where, ["alice"])
    else:
        new_database: Callable[[], str] = request.getfixturevalue("new_database")
        where, checkout = new_database(), str(tmp_path / "there")
        opened = Workspace.open(where, ["alice"], checkout=tmp_path / "here")
    with opened as workspace, session_elsewhere(where, checkout) as process:
        process.send_signal(signal.SIGSTOP)
        yield Running(workspace, process)


async def go_on(running: Running, tool: Calls, *, finish_first: bool = False) -> tuple[AgentState, str]:
    """Resume the session with an agent that has ``tool``, and run it to its end; what the frozen process says
    when it wakes, at the end, or once the session is taken over, before the first step."""
    said = ""
    program = chat(SAYS, tools={"work": tool})
    async with running.workspace.sessions.resume("alice", "s1", program) as session:
        if finish_first:
            running.process.send_signal(signal.SIGCONT)
            said = await asyncio.to_thread(running.finish)
        state = await session.run()
    if not finish_first:
        running.process.send_signal(signal.SIGCONT)
        said = await asyncio.to_thread(running.finish)
    return state, said


@pytest.mark.parametrize("finish_first", [False, True], ids=["wakes_late", "wakes_before_the_first_step"])
def test_a_session_goes_on_elsewhere_and_its_frozen_process_is_refused(
    running: Running, finish_first: bool
) -> None:
    journal, work = running.workspace.journal, Calls("ran")
    before = journal.history("session", "alice/s1")
    state, said = asyncio.run(go_on(running, work, finish_first=finish_first))
    assert said == "session_taken\n"
    assert state.status == "done"
    # Nobody knows what became of the call that was begun: it is not made again.
    assert work.given == []
    (told,) = [each for each in state.messages if isinstance(each, ToolMessage)]
    assert json.loads(told.content)["error"] == "tool_interrupted"
    assert [row.outcome for row in journal.refused("session", "alice/s1")] == ["conflict"]
    rows = journal.history("session", "alice/s1")
    assert {presence_of(row) for row in rows[len(before) :]} == {journal.presence.hold()}
    # What took the session over moved its number, and is no step.
    taken = rows[len(before)]
    assert taken.tool == "continue_session"
    counted = [row.detail["step"] for row in rows]
    assert counted == [*range(len(before)), len(before) - 1, *range(len(before), len(rows) - 1)]
