"""Entry points are read when something of their kind is needed, and by no hook."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from plugins.installing import Installed
from watchroom import Workspace

GROUPS = ("tools", "alerts", "clients", "zones", "screens")
EVENT = {"hook_event_name": "UserPromptSubmit", "session_id": "1" * 8, "cwd": "/project", "prompt": "Go on."}


@pytest.fixture
def broken(installed: Installed) -> Installed:
    """A package of each kind whose import is an error, which is reported when its group is loaded."""
    for group in GROUPS:
        code = "raise OSError('imported')"
        installed.add_module(f"extra_{group}", code, f"watchroom.{group}", {"extra": f"extra_{group}:it"})
    return installed


@pytest.mark.sqlite("the commands get a folder")
@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        ("--version", ()),
        ("--help", ()),
        ("log {}", ()),
        ("show {} agents", ()),
        ("hook {} --agent alice", ()),
        ("call {} alice collab_list {{}}", ("tools",)),
        ("client show claude", ()),
        ("client show echo", ("clients",)),
    ],
    ids=lambda each: each.partition(" ")[0] if isinstance(each, str) else "",
)
def test_a_command_loads_only_the_plug_ins_that_it_needs(
    broken: Installed, root: Path, arguments: str, loaded: tuple[str, ...]
) -> None:
    Workspace.open(root, agents=["alice"]).close()
    done = subprocess.run(
        broken.command(*arguments.format(root).split()),
        env=broken.variables,
        input=json.dumps(EVENT),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert [each for each in GROUPS if f"watchroom.{each}: the plug-in extra" in done.stderr] == [*loaded]
