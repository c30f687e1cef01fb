"""A machine that is frozen in the middle of a call: its session goes on on another one, and is never run twice."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from runtime.weather import Calls
from runtime.working import SAYS, chat
from watchroom import Workspace
from watchroom.rules.presence import presence_of
from watchroom.runtime import AgentState, ToolMessage

pytestmark = pytest.mark.postgres

TESTS: Final = Path(__file__).parent.parent
PATIENCE: Final = 60.0
RUN: Final = """
import asyncio, sys
from runtime.weather import call, calling
from runtime.working import chat
from watchroom import Workspace
from watchroom.errors import SessionTaken

def work(arguments):
    print("began", flush=True)
    sys.stdin.readline()
    return "finished"

async def main(url, checkout):
    with Workspace.open(url, create=False, checkout=checkout) as workspace:
        agent = chat(calling(call("work")), tools={"work": work})
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            try:
                await session.run()
            except SessionTaken as error:
                print(error.code, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def go_on(workspace: Workspace, tool: Calls) -> AgentState:
    """Resume the session with an agent that has ``tool``, and run it to its end."""
    async with workspace.sessions.resume("alice", "s1", chat(SAYS, tools={"work": tool})) as session:
        return await session.run()


def test_a_session_goes_on_elsewhere_and_its_frozen_process_is_refused(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    url = new_database()
    with (
        Workspace.open(url, ["alice"], checkout=tmp_path / "here") as here,
        subprocess.Popen(
            [sys.executable, "-c", RUN, url, str(tmp_path / "there")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=TESTS,
        ) as frozen,
    ):
        assert frozen.stdout is not None
        assert frozen.stdout.readline() == "began\n"
        frozen.send_signal(signal.SIGSTOP)
        work = Calls("ran")
        try:
            state = asyncio.run(go_on(here, work))
        finally:
            frozen.send_signal(signal.SIGCONT)
        assert state.status == "done"
        # Nobody knows what became of the call that was begun: it is not made again.
        assert work.given == []
        (told,) = [each for each in state.messages if isinstance(each, ToolMessage)]
        assert json.loads(told.content)["error"] == "tool_interrupted"
        steps = [row.seq for row in here.journal.history("session", "alice/s1")]
        assert frozen.communicate("go on\n", PATIENCE)[0] == "session_taken\n"
        rows = here.journal.history("session", "alice/s1")
        assert [row.seq for row in rows] == steps
        assert presence_of(rows[-1]) == here.journal.present()
        assert [row.outcome for row in here.journal.refused("session", "alice/s1")] == ["conflict"]
