"""Zones of other packages: their rules hold for all writers, and their files are shared files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plugins.installing import Installed
from watchroom import Workspace
from watchroom_cli.main import OK

pytestmark = pytest.mark.sqlite("the commands get a folder")

PROPOSAL = {"subject": "Use one harbour", "content": "It is cheaper."}
TEXT = "# Use one harbour\n\nStatus: proposed\n\nIt is cheaper.\n"
PATH = "decisions/0001.md"
SILENT = "class Silent(Exception):\n    def __str__(self): raise self\n"


@pytest.fixture
def team(root: Path) -> Path:
    Workspace.open(root, agents=["alice", "bob"]).close()
    return root


def call(installed: Installed, team: Path, agent: str, tool: str, **arguments: Any) -> dict[str, Any]:
    done = installed.run("call", str(team), agent, tool, json.dumps(arguments))
    assert "Traceback" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def write(
    installed: Installed, team: Path, path: str, text: str, agent: str = "bob", expected: int = 0
) -> dict[str, Any]:
    given = {"filepath": path, "content": text, "message": "m", "expected_version": expected}
    return call(installed, team, agent, "collab_write", **given)


def test_the_tool_of_the_example_writes_a_version_that_is_a_shared_file(
    installed: Installed, team: Path
) -> None:
    installed.add_example("zone")
    assert call(installed, team, "alice", "propose_decision", **PROPOSAL)["filepath"] == PATH
    assert call(installed, team, "bob", "propose_decision", **PROPOSAL)["filepath"] == "decisions/0002.md"
    with Workspace.open(team) as workspace:
        head = workspace.journal.head("collab", PATH)
        assert head is not None
        assert (head.actor, head.tool, head.version) == ("alice", "propose_decision", 1)
        assert workspace.journal.content(head.seq) == TEXT
        assert (team / "collaborative/current" / PATH).read_text("utf-8") == TEXT
        assert workspace.verify() == []
    found = installed.run("search", str(team), "cheaper", "--json").stdout
    assert PATH in found


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("decisions/first.md", TEXT, "the name of a decision is a number such as 0007.md"),
        ("decisions/0002.md", "No.\n", "it must begin with '# TITLE'"),
        (PATH, TEXT.replace("proposed", "accepted"), "only people accept a decision"),
    ],
)
def test_a_write_against_the_rule_is_refused_and_kept(
    installed: Installed, team: Path, path: str, text: str, reason: str
) -> None:
    installed.add_example("zone")
    call(installed, team, "alice", "propose_decision", **PROPOSAL)
    refused = write(installed, team, path, text, expected=int(path == PATH))
    assert (refused["success"], refused["error"]) == (False, "zone_refused")
    assert reason in refused["message"]
    with Workspace.open(team) as workspace:
        (row,) = (row for row in workspace.journal.rows(limit=100) if row.actor == "bob")
        assert (row.path, row.outcome, row.error) == (path, "denied", "zone_refused")
        assert workspace.journal.content(row.seq) == text


def test_a_stale_write_is_a_conflict_and_other_folders_have_no_rule(installed: Installed, team: Path) -> None:
    installed.add_example("zone")
    call(installed, team, "alice", "propose_decision", **PROPOSAL)
    assert write(installed, team, PATH, TEXT)["error"] == "version_conflict"
    assert write(installed, team, "other/first.md", "No.\n")["success"]
    assert write(installed, team, "decisions", "No.\n")["error"] == "path_blocked"


def test_a_flushed_buffer_is_checked_as_well(installed: Installed, team: Path) -> None:
    installed.add_example("zone")
    call(installed, team, "alice", "propose_decision", **PROPOSAL)
    call(installed, team, "alice", "collab_read", filepath=PATH)
    opened = call(installed, team, "alice", "open_buffer", source="collab", path=PATH, name="plan")
    assert opened["success"]
    changed = {"old_text": "proposed", "new_text": "accepted"}
    assert call(installed, team, "alice", "plan_replace", **changed)["success"]
    refused = call(installed, team, "alice", "plan_flush")
    assert not refused["success"]
    assert "only people accept a decision" in refused["message"]


def test_the_files_stay_shared_files_without_the_package(installed: Installed, team: Path) -> None:
    installed.add_example("zone")
    call(installed, team, "alice", "propose_decision", **PROPOSAL)
    with Workspace.open(team, create=False) as workspace:
        bob = workspace.tools("bob")
        assert bob.dispatch_tool_call("collab_read", {"filepath": PATH})["content"] == TEXT
        given = {"filepath": PATH, "content": "No.\n", "message": "m"}
        assert bob.dispatch_tool_call("collab_write", given)["version"] == 2


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("plans", "raise OSError('no disk')", "extra: OSError: no disk"),
        ("plans", "check = 5", "extra: int cannot be called"),
        ("plans", "raise SystemExit(3)", "extra: SystemExit: 3"),
        ("plans", SILENT + "raise Silent", "extra: Silent: ?"),
        ("plans", "raise OSError('\\udc80')", "extra: OSError: \\udc80"),
    ],
)
def test_nothing_is_written_to_a_zone_whose_rule_is_unknown(
    installed: Installed, team: Path, name: str, code: str, reason: str
) -> None:
    installed.add_module("extra", code, "watchroom.zones", {name: "extra:check"})
    refused = write(installed, team, f"{name}/a.md", "text\n")
    assert refused["error"] == "zone_refused"
    assert reason in refused["message"]
    assert write(installed, team, "other/a.md", "text\n")["success"]


def test_no_zone_of_watchroom_is_replaced(installed: Installed, team: Path) -> None:
    code = "def check(write): raise ValueError('never')"
    installed.add_module("extra", code, "watchroom.zones", {"private": "extra:check"})
    done = installed.run(
        "call", str(team), "bob", "save_to_my_workspace", '{"filename": "a/b", "content": ""}'
    )
    assert done.returncode == OK
    assert write(installed, team, "private/a.md", "text\n")["error"] == "zone_refused"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise KeyError('line')", "KeyError: 'line'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise Silent", "Silent: ?"),
        ("raise ValueError('\\udc80\\0')", "\\udc80\\x00"),
        ("raise UnicodeError('No.')", "No."),
    ],
)
def test_a_rule_that_fails_refuses_the_write(
    installed: Installed, team: Path, code: str, reason: str
) -> None:
    rule = f"{SILENT}def check(write):\n    {code}\n"
    installed.add_module("extra", rule, "watchroom.zones", {"plans": "extra:check"})
    given = json.dumps({"filepath": "plans/a.md", "content": "text\n", "message": "m"})
    refused = json.loads(installed.run("call", str(team), "bob", "collab_write", given).stdout)
    assert refused["error"] == "zone_refused"
    assert reason in refused["message"]
    with Workspace.open(team) as workspace:
        assert workspace.journal.head("collab", "plans/a.md") is None


def test_no_package_replaces_the_rule_of_another(installed: Installed, team: Path) -> None:
    installed.add_module(
        "strict", "def check(write): raise ValueError('never')", "watchroom.zones", {"plans": "strict:check"}
    )
    installed.add_module("lax", "def check(write): pass", "watchroom.zones", {"plans": "lax:check"})
    refused = write(installed, team, "plans/a.md", "text\n")
    assert refused["error"] == "zone_refused"
    assert "strict: an earlier plug-in has this name" in refused["message"]


def test_a_package_without_a_name_stops_nothing(installed: Installed, team: Path) -> None:
    for package in ("extra", "other"):
        installed.add_module(
            package, "def check(write): pass", "watchroom.zones", {package: f"{package}:check"}
        )
    (installed.folder / "extra-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\n", "utf-8")
    assert write(installed, team, "other/a.md", "text\n")["success"]


@pytest.mark.parametrize(
    "path",
    [
        "plans/",
        "./plans/a.md",
        "x/../plans/a.md",
        "plans//a.md",
        "/plans/a.md",
        "plans\\a.md",
        "pla\u200bns/a",
    ],
)
def test_no_spelling_of_a_path_avoids_the_rule(installed: Installed, team: Path, path: str) -> None:
    code = "def check(write): raise ValueError('never')"
    installed.add_module("extra", code, "watchroom.zones", {"plans": "extra:check"})
    assert write(installed, team, path, "text\n")["error"] == "invalid_path"
