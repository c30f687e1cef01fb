"""Limits as real clients reported them: each parks the agent, with the reset if the client gave it.

``limits.json`` has the hooks and the lines of transcripts, by client, with the version that was recorded.
``$NOW`` is the time of the report, and ``$CLOCK``, ``$DATE`` and ``$SECONDS`` are resets.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from clients.attached import SESSION, told
from clients.test_attached_parking import parking
from clients.test_parking import needs
from watchroom import Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.model import timestamp

pytestmark = pytest.mark.sqlite("A server has its own clock.")
RECORDED: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "limits.json").read_text())
CASES: Final = [(client, case) for client, each in RECORDED.items() for case in each["cases"]]
WITH_RESET: Final = {"five hours", "month", "without hooks", "plan with windows", "tokens a minute"}


def reports(workspace: Workspace, client: str, case: str) -> list[dict[str, Any]]:
    now = workspace.journal.now()
    later = datetime.fromtimestamp(now / 1e9, UTC) + timedelta(hours=3)
    text = json.dumps(RECORDED[client]["cases"][case])
    for name, value in (
        ("$NOW", timestamp(now)),
        ("$CLOCK", f"{later:%I:%M%p}".lower()),
        ("$DATE", f"{later + timedelta(days=3):%Y-%m-%d}"),
    ):
        text = text.replace(name, value)
    return list(json.loads(text.replace('"$SECONDS"', str(int(later.timestamp())))))


async def play(workspace: Workspace, client: str, case: str) -> Attachment:
    """Play a turn that ends as recorded."""
    attached = Attachment(workspace, "alice", client)
    await attached.handle(told("UserPromptSubmit", prompt="Go", turn_id="turn1"))
    for each in reports(workspace, client, case):
        if "hook" in each:
            await attached.handle({**told(""), **each["hook"]})
        else:
            assert not attached.shows_activity(each["line"])
            await attached.record_line(attached.sessions[SESSION], each["line"])
    return attached


@pytest.mark.parametrize(("client", "case"), CASES)
async def test_a_recorded_limit_parks_the_agent(workspace: Workspace, client: str, case: str) -> None:
    await play(workspace, client, case)
    found = parking(workspace)
    assert found is not None
    assert (found.resets is not None) == (case in WITH_RESET), found
    assert [each.kind for each in needs(workspace)] == ["parked"]


async def test_the_reset_of_codex_is_that_of_the_used_up_window(workspace: Workspace) -> None:
    await play(workspace, "codex", "plan with windows")
    found = parking(workspace)
    assert found is not None
    assert found.resets is not None
    assert 10_790 * 10**9 < found.resets - workspace.journal.now() <= 10_800 * 10**9


async def test_another_error_of_codex_ends_the_turn(workspace: Workspace) -> None:
    """Codex runs no hook at the end of such a turn."""
    attached = Attachment(workspace, "alice", "codex")
    await attached.handle(told("UserPromptSubmit", prompt="Go", turn_id="turn1"))
    error: dict[str, Any] = {
        "message": "unexpected status 500 Internal Server Error",
        "codex_error_info": "other",
    }
    payload: dict[str, Any] = {"type": "task_complete", "turn_id": "turn1", "error": error}
    line: dict[str, Any] = {"type": "event_msg", "timestamp": timestamp(workspace.journal.now())}
    await attached.record_line(attached.sessions[SESSION], {**line, "payload": payload})
    assert parking(workspace) is None
    assert workspace.sessions.state("alice", SESSION).status == "idle"
