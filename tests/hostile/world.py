"""A folder with a workspace and files around it that nobody may touch, and everything that reads the workspace."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from cli.running import Captured, run
from evidence import snapshot
from hostile.rows import HostileRow
from watchroom import Agent, Json, Workspace
from watchroom.errors import JournalDamaged
from watchroom.kernel.journal import Journal

SENTINEL: Final = "nobody may read or change this"
PLANTED: Final = "planted by a row\n"
SCHEMA: Final = '{"schema": {"body": "rga"}}'
VIEWS: Final = (
    *(
        "agents",
        "needs",
        "handoffs",
        "files",
        "documents",
        "boards",
        "requests",
        "sessions",
        "tasks",
        "messages",
    ),
    *("commands", "buffers"),
)


class World(NamedTuple):
    """``outside`` has sentinel files, ``root`` is the workspace, ``project`` the folder of its task ``task``, and
    ``made`` is where commands write."""

    folder: Path
    outside: Path
    root: Path
    project: Path
    made: Path
    task: str

    def surroundings(self) -> dict[str, bytes | str]:
        """Everything but the workspace, its task's folder, and what commands made on purpose."""
        found = snapshot(self.folder, [each.name for each in (self.root, self.project, self.made)])
        # The snapshot leaves control folders out: there is one in the workspace and nowhere else.
        return found | dict.fromkeys(self._control_folders(), "control")

    def _control_folders(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.folder):
            if folder == str(self.folder):
                folders[:] = [each for each in folders if each not in (self.made.name, self.project.name)]
            if folder != str(self.root) and ".watchroom" in (*folders, *files):
                yield f"{folder}/.watchroom"


def make_world(folder: Path, root: Path) -> World:
    """Make the world in ``folder``, with the workspace at ``root`` in it."""
    outside = folder / "outside"
    for name in ("secret.txt", ".netrc", "v1.txt", "secret.txt/../x.md", "b.crdt.json"):
        file = Path(os.path.normpath(outside / name))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SENTINEL)
    project, made = folder / "project", folder / "made"
    made.mkdir()
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", project).id
        workspace.register([Agent("alice", task=task)])
        calls: tuple[tuple[str, dict[str, Json]], ...] = (
            ("collab_write", {"filepath": "plan.md", "content": "plan", "message": "m"}),
            ("save_to_my_workspace", {"filename": "notes.md", "content": "mine"}),
            ("handoff_file", {"to_agent": "bob", "filename": "data.csv", "content": "1,2", "message": "m"}),
            ("realtime_create_document", {"doc_id": "doc", "schema": {"body": "rga"}}),
            ("write_file", {"path": "a.txt", "content": "a"}),
        )
        for tool, arguments in calls:
            assert workspace.tools("alice").dispatch_tool_call(tool, arguments)["success"], tool
    return World(folder, outside, root, project, made, task)


def planted(seq: int, zone: str, path: str, **changes: Any) -> HostileRow:
    """Row ``seq``: the first version of ``path`` in ``zone``, by whom the zone takes versions from."""
    text = SCHEMA if zone == "realtime" else PLANTED
    content = changes.pop("content", text.encode())
    actor = {"private": "outside", "config": "system"}.get(zone, "alice")
    sha256 = None if content is None else hashlib.sha256(content).hexdigest()
    size = None if content is None else len(content)
    row = HostileRow(seq, 1, actor, "t", zone, path, 1, 0, "ok", "", "", sha256, size, b"", content)
    return row._replace(**changes)


def use_everything(world: World, capsys: Captured) -> Iterator[tuple[str, int, str]]:
    """Do with the workspace all that reads it or makes files of it; yields each command, its status and errors."""
    with Workspace.open(world.root) as workspace:
        workspace.scan()
        workspace.flush()
        workspace.repair()
        last = workspace.journal.last_seq()
        for file in (path for path in world.root.rglob("*") if ".watchroom" not in path.parts):
            workspace.check([file])
    yield from use_commands(world, capsys, last)


def use_commands(world: World, capsys: Captured, last: int) -> Iterator[tuple[str, int, str]]:
    """Run the commands that read the workspace, whose newest row was ``last``; yields as `use_everything`."""
    team, made = str(world.root), world.made
    commands = [
        ["verify", team],
        ["verify", team, "--repair"],
        ["export", team, str(made / "export")],
        ["export", team, "--at", str(last), str(made / "export-then")],
        ["fork", team, str(made / "fork")],
        ["verify", str(made / "fork")],
        ["git", team, "--export", str(made / "team.git")],
        ["git", team, "--export", str(made / "sessions.git"), "--per", "session"],
        ["git", team, "--branch", "made", "--task", world.task, "--repository", str(made / "team.git")],
        ["report", team],
        ["diff", team, "--from", "1", "--to", str(last), "--patch"],
        ["log", team, "--json"],
        ["events", team, "--json"],
        ["search", team, "planted"],
        ["usage", team],
        ["traces", team, "--json"],
        ["revert", team, "--agent", "alice", "--since", "1", "--as", "dana"],
        *(["show", team, view] for view in VIEWS),
        *(["show", team, view, "--at", str(last), "--json"] for view in VIEWS),
    ]
    for command in commands:
        try:
            status, _, errors = run(capsys, *command)
        except BaseException as error:  # noqa: BLE001  # whatever ends a command is a failure of it
            pytest.fail(f"{command} ended with {error!r}")
        yield " ".join(each.replace(team, "TEAM") for each in command), status, errors


def texts_of(journal: Journal) -> Iterator[str]:
    """The details of all rows, and the contents of those that tell what was found on disk."""
    after = 0
    while rows := journal.rows(after, limit=1000):
        for row in rows:
            yield row.detail_json
            if row.sha256 is not None and row.actor == "outside":
                # What Watchroom found on disk and kept can be read.
                with suppress(JournalDamaged):
                    yield journal.content(row.seq) or ""
        after = rows[-1].seq
