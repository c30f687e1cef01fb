"""What a client's own tool would change is shown to the person who is asked about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tui.driver import dashboard
from watchroom import Workspace
from watchroom.agents.clients.calls import call_difference
from watchroom.agents.clients.events import ClientInfo
from watchroom.agents.clients.session import ClientSession
from watchroom.features.requests.rows import DIFFERENCE, PendingCall, Request
from watchroom.model import Json


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"content": "one\nthree\n"}, ["-two", "+three"]),
        ({"old_string": "two", "new_string": "2"}, ["-two", "+2"]),
        (
            {"edits": [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]},
            ["-one", "-two", "+1", "+2"],
        ),
        ({"old_string": "nowhere", "new_string": "2"}, []),
    ],
)
def test_it_is_compared_with_the_file(tmp_path: Path, arguments: dict[str, Json], lines: list[str]) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    found = call_difference({"file_path": "a.txt", **arguments}, str(tmp_path)).splitlines()
    assert [each for each in found[2:] if each[:1] in "+-"] == lines


def test_a_new_file_is_all_new_and_what_is_no_file_is_none(tmp_path: Path) -> None:
    assert "+new" in call_difference({"file_path": "b.txt", "content": "new\n"}, str(tmp_path))
    assert call_difference({"file_path": ".", "content": "new\n"}, str(tmp_path)) == ""
    assert "+new" in call_difference({"file_path": "c\0.txt", "content": "new\n"}, str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert call_difference({"file_path": "pipe", "content": "new\n"}, str(tmp_path)) == ""
    assert call_difference({"command": "ls"}, str(tmp_path)) == ""


def test_what_would_become_too_large_is_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 100_000)
    bomb: dict[str, Json] = {"old_string": "a", "new_string": "b" * 1_000_000, "replace_all": True}
    assert call_difference({"file_path": "a.txt", **bomb}, str(tmp_path)) == ""
    assert call_difference({"file_path": "a.txt", "content": "b" * 2_000_000}, str(tmp_path)) == ""


async def test_the_requests_screen_shows_it(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    call = PendingCall("c1", "Edit", '{"file_path": "a.txt"}')
    told = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old \x1b[31mred\n+new\n"
    session.ask("c1", Request("approve", calls=(call,), metadata={DIFFERENCE: told}))
    async with dashboard(workspace) as user:
        await user.goes_to("7", "requests")
        await user.sees("-old", "+new")
        assert not any("\x1b" in line for line in user.lines())
