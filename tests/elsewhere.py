"""A process that runs a session, and is in the middle of a call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_TESTS: Final = Path(__file__).parent
_RUN: Final = """
import asyncio, sys
from runtime.weather import call, calling
from runtime.working import chat
from watchroom import Workspace
from watchroom.errors import SessionTaken

def work(arguments):
    print("began", flush=True)
    sys.stdin.readline()
    return "finished"

async def main(where, checkout):
    with Workspace.open(where, create=False, checkout=checkout or None) as workspace:
        agent = chat(calling(call("work")), tools={"work": work})
        async with workspace.sessions.begin("alice", agent, session_id="s1") as session:
            try:
                await session.run()
            except SessionTaken as error:
                print(error.code, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def session_elsewhere(where: str, checkout: str = "") -> Iterator[subprocess.Popen[str]]:
    """Yield a process with the workspace at ``where``, in a call of alice's session ``s1``. A line on its
    standard input ends the call."""
    with subprocess.Popen(
        [sys.executable, "-c", _RUN, where, checkout],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_TESTS,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "began\n"
            yield process
        finally:
            process.kill()
