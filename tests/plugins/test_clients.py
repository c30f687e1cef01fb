"""Clients of other packages are run as agents, through the Agent Client Protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugins.installing import Installed
from watchroom import Workspace
from watchroom_cli.main import OK, USAGE


@pytest.mark.sqlite("the command gets a folder")
def test_the_example_works_as_an_agent(installed: Installed, root: Path) -> None:
    installed.add_example("client")
    Workspace.open(root, agents=["alice"]).close()
    done = installed.run("run", "echo", str(root), "Hello", "--agent", "alice", "--once")
    assert (done.returncode, done.stdout, done.stderr) == (OK, "You said: Hello\n", "")
    with Workspace.open(root) as workspace:
        rows = [row for row in workspace.journal.rows(limit=1000) if row.zone == "session"]
        assert {(row.actor, row.path) for row in rows} == {("alice", "alice/echo-1")}
        assert workspace.verify() == []


def test_the_example_is_found_and_described(installed: Installed) -> None:
    installed.add_example("client")
    found = json.loads(installed.run("client", "search", "echo", "--json").stdout)["clients"]
    assert [(each["client"], each["can_start"]) for each in found] == [("echo", True)]
    shown = json.loads(installed.run("client", "show", "echo", "--json").stdout)
    assert shown["install"] == ["pip install watchroom-echo-client"]
    assert [each["command"] for each in shown["supervised"]] == ["watchroom run echo"]


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("extra", "CLIENT = 5", "int is no AcpSupport"),
        ("extra", "CLIENT = AcpSupport(())", "the command is not a tuple of texts"),
        ("claude", "CLIENT = AcpSupport(('other',))", "Watchroom has a client claude"),
        ("Extra", "CLIENT = AcpSupport(('other',))", "the name is invalid"),
    ],
)
def test_a_broken_client_is_named_and_replaces_nothing(
    installed: Installed, name: str, code: str, reason: str
) -> None:
    code = f"from watchroom.agents.clients.adapter import AcpSupport\n{code}"
    installed.add_module("extra", code, "watchroom.clients", {name: "extra:CLIENT"})
    done = installed.run("client", "search", "--json")
    names = [each["client"] for each in json.loads(done.stdout)["clients"]]
    assert names == ["claude", "codex", "opencode", "gemini"]
    assert f"the plug-in {name} of the package extra is left out: {reason}" in done.stderr


def test_an_unknown_client_is_refused(installed: Installed, root: Path) -> None:
    installed.add_example("client")
    done = installed.run("run", "other", str(root), "Hello", "--agent", "alice", "--once")
    assert done.returncode == USAGE
    assert "gemini, echo" in done.stderr
