"""The page on editing in buffers, tried as it is written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from calls import ok, refused
from cli.running import Captured, printed_json
from watchroom import Toolbox, Workspace
from watchroom.algorithms.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS
from watchroom.features.buffers.service import MAX_OPEN

PAGE = (Path(__file__).parents[2] / "docs/editing.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    watchroom call team/ (.*)$", PAGE, flags=re.MULTILINE)
"""What follows the folder."""


def test_the_commands_do_what_the_page_says(capsys: Captured, tmp_path: Path) -> None:
    root = tmp_path / "team"
    with Workspace.open(root, agents=["alice"]) as workspace:
        plan = {"filepath": "plan.md", "content": "It grows by 12 %.\n", "message": "m"}
        ok(workspace.tools("alice"), "collab_write", **plan)
    assert len(COMMANDS) == 4
    for command in COMMANDS:
        assert printed_json(capsys, "call", str(root), *shlex.split(command))["success"] is True, command
    with Workspace.open(root) as workspace:
        found = ok(workspace.tools("alice"), "collab_read", filepath="plan.md")
        assert (found["content"], found["message"]) == ("It grows by 12.4 %.\n", "The exact figure.")
        assert workspace.buffers.open_names("alice") == []


def test_the_page_names_every_tool_and_source() -> None:
    named = set(re.findall(r"`_(\w+)`", PAGE))
    assert named == {*EDIT_TOOLS, *SYNC_TOOLS}
    assert re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE) == [
        "source",
        "private",
        "collab",
        "board",
        "file",
    ]


def test_the_table_of_states_is_what_is_offered(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    rows = dict(re.findall(r"^\| ([^|`]+?) \| ((?:also )?`_.*?) \|$", PAGE, flags=re.MULTILINE))
    told = {state: set(re.findall(r"_(\w+)", tools)) for state, tools in rows.items()}

    def has() -> set[str]:
        names = [str(each["name"]) for each in alice.get_tool_definitions(toolsets=["buffer"])]
        return {name.removeprefix("plan_") for name in names} - {"open_buffer", "close_buffer"}

    ok(alice, "collab_write", filepath="plan.md", content="a a\n", message="m")
    ok(alice, "open_buffer", source="collab", path="plan.md")
    assert has() == told["no choice is pending"]
    refused(alice, "plan_replace", old_text="a", new_text="b")
    assert has() == told["a text was found in several places"]
    ok(alice, "plan_replace_selection", selection_id=1)
    assert has() - told["no choice is pending"] == told["it has unflushed changes"]
    ok(bob, "collab_write", filepath="plan.md", content="c\n", message="m", expected_version=1)
    assert has() - told["no choice is pending"] == told["its source has changed"]


def test_the_page_says_how_many_may_be_open() -> None:
    assert MAX_OPEN == 8
    assert "eight buffers open" in PAGE
