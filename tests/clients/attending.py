"""A client whose attendant runs in this process: the client is this process itself."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from watchroom import Workspace
from watchroom.agents.clients.attendant import Attendant
from watchroom.agents.clients.hook_answers import HookAnswer
from watchroom.agents.clients.processes import ClientProcess


@asynccontextmanager
async def attending(workspace: Workspace, client: str = "claude") -> AsyncIterator[Attendant]:
    """The attendant of a ``client`` that works as alice."""
    pid = os.getpid()
    process = ClientProcess(pid, workspace.platform.process_start(pid), workspace.platform)
    served = Attendant(workspace, ["alice"], client, process)
    served.begin()
    try:
        yield served
    finally:
        await served.close()


async def report(workspace: Workspace, served: Attendant, event: Mapping[str, Any]) -> HookAnswer | None:
    """The answer to the hook of ``event``."""
    with workspace.messages.hand_over() as handover:
        return await served.answer(event, handover)


def write_lines(transcript: Path, *lines: Mapping[str, Any]) -> None:
    """Add lines to a transcript."""
    with transcript.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in lines)
