"""Rows that name paths outside their zone: shown and named by ``verify``, and no file is touched for them.

The rows are written with SQL, which anyone with the journal's file or the database's owner can do.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

import pytest
from cli.running import Captured, run
from hostile.rows import HostileRow, hostile_paths, insert_into_file, insert_into_server
from hostile.world import (
    PLANTED,
    SENTINEL,
    World,
    make_world,
    planted,
    texts_of,
    use_commands,
    use_everything,
)
from watchroom import Workspace
from watchroom.errors import JournalError
from watchroom.kernel.checkout.location import find_journal
from watchroom.kernel.rules.row_files import ZONES_WITH_FILES, find_flaw
from watchroom.model import REVERT

BOTH: Final = pytest.mark.parametrize(
    "journal_name", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
MAY_REFUSE: Final = ("verify", "git", "revert", "fork", "export")
"""The commands that may end with another status than 0: they say what is wrong."""


@pytest.fixture
def world(tmp_path: Path, root: Path) -> World:
    return make_world(tmp_path, root)


def insert(world: World, rows: list[HostileRow]) -> None:
    address = find_journal(world.root) or ""
    taken = (
        insert_into_server(address, rows)
        if address.startswith("postgres")
        else insert_into_file(world.root, rows)
    )
    assert taken == len(rows)


def bad_paths(world: World, zone: str) -> list[str]:
    """The hostile paths, those of a zone with owners or tasks below a valid one, too."""
    paths = hostile_paths(world.outside)
    if zone == "file":
        paths = [*paths, *(f"{world.task}/{path}" for path in paths)]
    if zone == "config":
        paths = [*paths, "checkout-id", "journal.db", "lock", "search.db", "derived.db", "journal.db-wal"]
    return [path for path in dict.fromkeys(paths) if find_flaw(zone, path) is not None]


def copies(folder: Path, text: str) -> list[str]:
    """The files beneath ``folder`` that hold just ``text``."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and path.read_bytes() == text.encode()]


@BOTH
@pytest.mark.parametrize("zone", ZONES_WITH_FILES)
def test_rows_that_break_their_zone_s_rules_touch_no_file(zone: str, world: World, capsys: Captured) -> None:
    with Workspace.open(world.root) as workspace:
        last = workspace.journal.last_seq()
    paths = bad_paths(world, zone)
    before = world.surroundings()
    rows = [planted(last + number, zone, path) for number, path in enumerate(paths, start=1)]
    insert(world, rows)
    for command, status, errors in use_everything(world, capsys):
        assert status == 0 or command.startswith(MAY_REFUSE), (command, errors)
        assert world.surroundings() == before, command
    # Later versions that delete the files.
    last += len(rows) + 1000
    gone = [
        planted(last + number, zone, path, version=2, content=None)
        for number, path in enumerate(paths, start=1)
    ]
    insert(world, gone)
    with Workspace.open(world.root) as workspace:
        workspace.scan()
        workspace.repair()
        named = {(each.zone, each.path) for each in workspace.verify() if each.kind == "path"}
        # A server lists no head with an empty path.
        assert named | {(zone, "")} == {(zone, path) for path in paths} | {(zone, "")}
        assert not any(SENTINEL in text for text in texts_of(workspace.journal))
    assert world.surroundings() == before
    assert copies(world.folder, PLANTED) == []
    assert set(world.made.iterdir()) <= {world.made / name for name in MADE}


MADE: Final = ("export", "export-then", "fork", "fork-tasks", "team.git", "sessions.git")


@BOTH
def test_an_edit_that_a_person_took_back_elsewhere_removes_no_file_outside(
    world: World, capsys: Captured
) -> None:
    """The row of an edit and the row that takes it back are both forged, with the checksum of a file outside."""
    with Workspace.open(world.root) as workspace:
        last = workspace.journal.last_seq()
    before = world.surroundings()
    rows = []
    sha256 = hashlib.sha256(SENTINEL.encode()).hexdigest()
    for zone in ("collab", "private", "handoff", "board", "config"):
        for path in bad_paths(world, zone):
            last += 2
            edit = {
                "actor": "outside",
                "tool": "outside_edit",
                "outcome": "conflict",
                "error": "outside_edit",
            }
            taken = json.dumps({"conflict": last - 1, "checkout": "elsewhere"}).encode()
            rows += [
                planted(last - 1, zone, path, version=None, **edit)._replace(sha256=sha256),
                planted(
                    last,
                    zone,
                    path,
                    version=None,
                    content=None,
                    tool=REVERT,
                    actor="human:dana",
                    detail=taken,
                ),
            ]
    insert(world, rows)
    for command, _, _ in use_everything(world, capsys):
        assert world.surroundings() == before, command


@BOTH
def test_an_agent_s_row_in_another_agent_s_folder_makes_no_file(world: World, capsys: Captured) -> None:
    with Workspace.open(world.root) as workspace:
        last = workspace.journal.last_seq()
    insert(
        world,
        [
            planted(last + 1, "private", "bob/.bashrc", actor="alice"),
            planted(last + 2, "handoff", "bob_to_alice/orders.md", actor="alice"),
        ],
    )
    with Workspace.open(world.root) as workspace:
        assert [(each.kind, each.path) for each in workspace.verify()] == [
            ("path", "bob/.bashrc"),
            ("path", "bob_to_alice/orders.md"),
        ]
    assert copies(world.root, PLANTED) == []
    status, out, errors = run(capsys, "verify", str(world.root))
    assert status == 1
    assert "in the folder of another agent" in out
    assert "Rows without a file, because their paths break the rules: 2." in errors


def test_verify_names_the_rule_in_the_workspace_s_language(tmp_path: Path, capsys: Captured) -> None:
    root = tmp_path / "team"
    with Workspace.open(root, agents=["alice"], language="zh") as workspace:
        last = workspace.journal.last_seq()
    insert_into_file(root, [planted(last + 1, "collab", "../x")])
    status, out, _ = run(capsys, "verify", str(root))
    assert (status, "'.' 或 '..'" in out) == (1, True)


def test_a_row_with_a_task_s_git_hook_makes_no_hook(world: World, capsys: Captured) -> None:
    """Git would run it."""
    with Workspace.open(world.root) as workspace:
        last = workspace.journal.last_seq()
    hook = f"{world.task}/.git/hooks/post-checkout"
    detail = json.dumps({"executable": True, "revert": "r1", "before": None}).encode()
    insert(
        world,
        [
            planted(last + 1, "file", hook, tool="revert_work", detail=detail),
            planted(last + 2, "revert", "r1", actor="human:dana", content=revert_of("file", hook)),
        ],
    )
    for _ in use_everything(world, capsys):
        pass
    assert not (world.project / ".git").exists()
    assert copies(world.folder, PLANTED) == []


def revert_of(zone: str, path: str) -> bytes:
    """The record of a revert that wrote version 1 of ``path``."""
    record = {
        "written": [[zone, path, 1]],
        "conflicts": [],
        "could_not": [],
        "not_reverted": {},
        "agents": [],
        "until": 1,
    }
    return json.dumps(record).encode()


@pytest.mark.parametrize("folder", ["/etc", "~", "", "made/../outside/none", "ROOT", "ROOT/.watchroom", "\0"])
def test_a_row_with_a_task_binds_no_protected_folder_and_makes_none(
    folder: str, world: World, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agents' files are read and written there."""
    monkeypatch.setenv("HOME", str(world.outside))
    with Workspace.open(world.root) as workspace:
        last = workspace.journal.last_seq()
    before = world.surroundings()
    path = str(world.folder / folder.replace("ROOT", str(world.root)).replace("~", str(world.outside)))
    content = {"taskId": "t1", "workspacePath": path, "requirement": "x", "limits": {}, "model": ""}
    insert(
        world,
        [
            planted(last + 1, "task", "t1", actor="human:dana", content=json.dumps(content).encode()),
            planted(last + 2, "file", "t1/a.txt"),
        ],
    )
    for command, status, errors in use_everything(world, capsys):
        assert status == 0 or command.startswith(MAY_REFUSE), (command, errors)
        assert world.surroundings() == before, command
    with Workspace.open(world.root) as workspace:
        workspace.task_files.record_all()
        assert not any(SENTINEL in text for text in texts_of(workspace.journal))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "journal.lock",
            "lock",
            "behind.lock",
            "journal.db",
            "journal.db-wal",
            "blobs.db",
            "derived.db",
            "search.db",
        ),
        *("checkout-id", "journal.url", "journal.url.new", "tmp", "presence", "quarantine", ""),
    ],
)
def test_a_link_in_the_control_folder_leads_nowhere(name: str, tmp_path: Path, capsys: Captured) -> None:
    """A folder that came from elsewhere may hold any link."""
    world = make_world(tmp_path, tmp_path / "team")
    before = world.surroundings()
    place = world.root / ".watchroom" / name
    if place.exists():
        place.rename(world.made / "aside")
    place.symlink_to(world.outside / "secret.txt" if "." in name or name == "lock" else world.outside)
    for command in (["verify"], ["log"], ["show"], ["export"], ["report"]):
        more = {"show": ["agents"], "export": [str(world.made / "out")]}.get(command[0], [])
        status, _, errors = run(capsys, *command, str(world.root), *more)
        assert status == 1, command
        assert "symbolic link" in errors, command
    with pytest.raises(JournalError, match="symbolic link"):
        Workspace.open(world.root)
    assert world.surroundings() == before


@pytest.mark.parametrize(
    "above", ["collaborative", "collaborative/current", "collaborative/current/docs", "agents/alice"]
)
def test_a_folder_that_became_a_link_leads_no_reader_out(above: str, world: World, capsys: Captured) -> None:
    with Workspace.open(world.root) as workspace:
        alice = workspace.tools("alice")
        for tool, argument in (("collab_write", "filepath"), ("save_to_my_workspace", "filename")):
            more = {"message": "m"} if tool == "collab_write" else {}
            arguments = {argument: "docs/secret.txt", "content": "one", **more}
            assert alice.dispatch_tool_call(tool, arguments)["success"]
        last = workspace.journal.last_seq()
    before = world.surroundings()
    folder = world.root / above
    folder.rename(world.made / "aside")
    folder.symlink_to(world.outside)
    insert(
        world,
        [
            planted(last + 1, "collab", "docs/secret.txt", version=2),
            planted(last + 2, "private", "alice/secret.txt"),
            planted(last + 3, "collab", "secret.txt"),
        ],
    )
    try:
        with Workspace.open(world.root) as workspace:
            assert not any(SENTINEL in text for text in texts_of(workspace.journal))
    except OSError:
        # The folder of a zone has to be one.
        pass
    for command, _, _ in use_commands(world, capsys, last):
        assert world.surroundings() == before, command
