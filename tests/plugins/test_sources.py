"""A package that offers sources for buffers wrongly stops no buffer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok
from plugins.installing import Installed
from watchroom import Workspace

_OPEN = {"source": "board", "path": "bottom-layer-alice"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("board", "other:open_it", "an earlier plug-in has this name"),
        ("private", "other:open_it", "Watchroom opens the files of the zone private itself"),
        ("plan", "other:NUMBER", "int cannot be called"),
        ("plan", "other:missing", "AttributeError"),
    ],
)
def test_a_wrong_source_is_left_out_and_named(
    installed: Installed, tmp_path: Path, name: str, value: str, reason: str
) -> None:
    installed.add_module(
        "other", "NUMBER = 1\ndef open_it(*given): ...\n", "watchroom.sources", {name: value}
    )
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        board = {"board": "bottom-layer-alice", "content": "text\n", "message": "m"}
        ok(workspace.tools("alice"), "whiteboard_write", **board, expected_version=0)
    done = installed.run("call", str(tmp_path / "team"), "alice", "open_buffer", json.dumps(_OPEN))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["success"] is True
    assert "package other" in done.stderr
    assert reason in done.stderr
