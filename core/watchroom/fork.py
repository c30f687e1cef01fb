"""A new workspace that begins at a past moment of another one, agents and tasks included.

Rows are copied, with their numbers and contents, not referred to: a journal is whole by itself. It can be
verified, moved to another machine and backed up without the one that it came from, which may go on or be
deleted, and no later row of which can be taken for one of the fork. What it costs is disk, once.

Logins, tokens and checkpoints are not copied. A fork has its own id and names its parent, so a decision that
is signed later in one of them does not count in the other. A fork is open. The settings that held, signed or
not, are in its config file. Nothing runs in a fork: leases of processes are no rows, leases on boards are
over, and commands without an end are interrupted. Sessions can be resumed. Tasks get their own folders, so
that nobody works in those of the original. Binary files in them whose bytes were not kept are gone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

from watchroom.checkout.layout import CONFIG_PATH, CONTROL, JOURNAL_NAME
from watchroom.disk import Folder
from watchroom.journal import Journal, open_journal
from watchroom.journal.moving import copy_blobs, open_move_side
from watchroom.journal.sqlite.exclusion import KeyedProcessLock
from watchroom.model import SYSTEM, Draft, Json, Note, Row, Write, Zone, is_of_journal, parse_object
from watchroom.platforms import detect_platform
from watchroom.queries.config import read_config
from watchroom.queries.rows import find_content
from watchroom.rules.config import render_config
from watchroom.rules.damage import find_damage
from watchroom.rules.effects import ID_PATH
from watchroom.rules.people import ID_ZONE
from watchroom.rules.row_files import find_row_flaw
from watchroom.rules.settings import PATH
from watchroom.rules.settings import ZONE as SETTINGS
from watchroom.rules.task_versions import blob_of, is_executable, is_text
from watchroom.validation import encode_text, sha256
from watchroom.workspace import Workspace
from watchroom.zones.commands import END
from watchroom.zones.leases import EXPIRED
from watchroom.zones.people import find_id, id_draft

FORK: Final = "fork_workspace"
"""The tool of the rows by which a fork begins."""
TASKS_SUFFIX: Final = "-tasks"
"""Of the folder beside a fork in which its tasks have theirs."""
MAX_UNREADABLE: Final = 1000
UNFINISHED: Final = ".unfinished"
"""Of the hidden folder beside a fork in which it is made; the next try deletes what a killed one left."""
_CLAIMS: Final = "claims"
_PLACING: Final = "placing"
"""The file that says which folder is about to become that of the tasks."""
_PARTS: Final = ("workspace", "tasks", "writing")
_NOT_COPIED: Final[frozenset[Zone]] = frozenset({"token", "person", SETTINGS})
_BATCH_ROWS: Final = 500
_BATCH_BYTES: Final = 8 * 1024 * 1024
"""So many rows, or contents of so many bytes, are copied in one transaction."""
_INTERRUPTED: Final = '{"interrupted": true}'
_PLACES: Final = ("workspacePath", "checkout", "machine")
"""What a task's content says of where its folder is."""


class Fork(NamedTuple):
    """A fork: its folder, the row of the original that it begins after, how many rows were copied, and the
    folder of its tasks, empty where no task has files. ``unreadable`` are the first rows, at most
    `MAX_UNREADABLE`, whose text cannot be read: they were copied without it."""

    root: str
    row: int
    rows: int
    tasks: str
    unreadable: tuple[int, ...] = ()


def fork_workspace(
    journal: Journal,
    until: int,
    out: str | os.PathLike[str],
    told: Callable[[int, int], None] = lambda _, __: None,
) -> Fork:
    """Begin a workspace in the folder ``out``, which must not exist yet, with the rows of ``journal`` up to
    row ``until``; the folders of its tasks are in ``out`` + `TASKS_SUFFIX`. ``told`` is called with the last
    row that was copied and with ``until``, by their numbers. ``out`` appears when it is whole, or not at all:
    who is killed leaves a hidden folder with `UNFINISHED` in its name, and the next try begins anew.

    Raises FileExistsError where something stands there, also another try that still runs, `JournalError`,
    `WorkspaceLocked`, OSError.
    """
    root = os.path.abspath(out)
    tasks = root + TASKS_SUFFIX
    with _make_scratch(root, tasks) as scratch:
        built, built_tasks = os.path.join(scratch, "workspace"), os.path.join(scratch, "tasks")
        path = os.path.join(built, CONTROL, JOURNAL_NAME)
        os.makedirs(os.path.dirname(path), mode=0o700)
        unreadable: list[int] = []
        rows = _copy_rows(journal, until, path, tasks, told, unreadable)
        with closing(open_journal(path)) as fork:
            copy_blobs(journal, fork)
            fork.append(
                [
                    id_draft(fork, SYSTEM, {"parent": find_id(journal), "row": until}),
                    *_settings(journal, until),
                    *_endings(fork),
                    _fork_note(until),
                ]
            )
            _lay_out_tasks(fork, built_tasks, os.path.join(scratch, "writing"))
        with Workspace.open(built, create=False) as workspace:
            workspace.flush()
        has_tasks = os.path.isdir(built_tasks)
        if has_tasks:
            with open(os.path.join(scratch, _PLACING), "w", encoding="ascii") as placing:
                placing.write(_identity(built_tasks))
            os.rename(built_tasks, tasks)
        os.rename(built, root)
    return Fork(root, until, rows, tasks if has_tasks else "", tuple(unreadable))


def _settings(journal: Journal, until: int) -> Iterator[Draft]:
    """What puts the settings into the config file of a fork that held at row ``until``, where people had
    signed them: who they are stays behind."""
    if journal.head(SETTINGS, PATH, as_of=until) is not None:
        text = render_config(read_config(journal, as_of=until))
        yield Write(SYSTEM, FORK, "config", CONFIG_PATH, text)


@contextmanager
def _make_scratch(root: str, tasks: str) -> Iterator[str]:
    """The folder in which the workspace ``root`` is made, without what an earlier try left, there and at
    ``tasks``; deleted afterwards. Raises FileExistsError, OSError."""
    if os.path.lexists(root):
        raise FileExistsError(root)
    above, name = os.path.split(root)
    scratch = os.path.join(above, f".{name}{UNFINISHED}")
    if os.path.islink(scratch):
        raise FileExistsError(scratch)
    os.makedirs(os.path.join(scratch, _CLAIMS), mode=0o700, exist_ok=True)
    folder = _identity(scratch)
    # The claim shows whether another try still runs.
    with KeyedProcessLock(os.path.join(scratch, _CLAIMS), detect_platform()).claim(FORK) as is_ours:
        # Whoever had it before may have deleted it since.
        if not is_ours or not os.path.isdir(scratch) or _identity(scratch) != folder:
            raise FileExistsError(scratch)
        try:
            _delete_remains(root, tasks, scratch)
            for place in (root, tasks):
                if os.path.lexists(place):
                    raise FileExistsError(place)
            yield scratch
        finally:
            _delete_parts(scratch)
            shutil.rmtree(os.path.join(scratch, _CLAIMS))
            os.rmdir(scratch)


def _delete_remains(root: str, tasks: str, scratch: str) -> None:
    """Delete what a try that was killed left in ``scratch``, and at ``tasks`` if it had come that far."""
    placing = os.path.join(scratch, _PLACING)
    # The folder of the workspace is the last that moves: while it is here, there is no fork.
    if os.path.isfile(placing) and os.path.isdir(os.path.join(scratch, _PARTS[0])):
        with open(placing, encoding="ascii") as file:
            placed = file.read()
        if placed and os.path.isdir(tasks) and _identity(tasks) == placed and not os.path.lexists(root):
            shutil.rmtree(tasks)
    _delete_parts(scratch)


def _delete_parts(scratch: str) -> None:
    # The mark goes last: who is killed meanwhile goes on next time.
    for part in _PARTS:
        if os.path.lexists(os.path.join(scratch, part)):
            shutil.rmtree(os.path.join(scratch, part))
    if os.path.lexists(os.path.join(scratch, _PLACING)):
        os.unlink(os.path.join(scratch, _PLACING))


def _identity(folder: str) -> str:
    found = os.lstat(folder)
    return f"{found.st_dev}:{found.st_ino}"


def _copy_rows(
    journal: Journal,
    until: int,
    path: str,
    tasks: str,
    told: Callable[[int, int], None],
    unreadable: list[int],
) -> int:
    """Copy the rows into the file at ``path``. Return how many; append the numbers of those whose text cannot
    be read to ``unreadable``."""
    count = 0
    with closing(open_move_side(path)) as target:
        for batch in _batches(journal, until, tasks, unreadable):
            target.write(batch)
            count += len(batch)
            told(batch[-1][0].seq, until)
    return count


def _batches(
    journal: Journal, until: int, tasks: str, unreadable: list[int]
) -> Iterator[list[tuple[Row, str | None]]]:
    batch: list[tuple[Row, str | None]] = []
    size = after = 0
    while rows := journal.rows(after, until=until, limit=_BATCH_ROWS):
        after = rows[-1].seq
        for row in rows:
            if row.zone in _NOT_COPIED or is_of_journal(row) or (row.zone, row.path) == (ID_ZONE, ID_PATH):
                continue
            content = find_content(journal, row) if row.sha256 is not None else None
            if content is None and row.sha256 is not None and row.version is not None:
                unreadable += [row.seq][: MAX_UNREADABLE - len(unreadable)]
            batch.append(_moved_task(row, content, tasks) if row.zone == "task" else (row, content))
            size += row.size or 0
            if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _moved_task(row: Row, content: str | None, tasks: str) -> tuple[Row, str | None]:
    """The row that began a task, with a folder of its own in ``tasks``, where it has one; any other as it is.
    Of all rows only these say something else in a fork."""
    begun = _parse_object(content) if row.version == 1 and find_row_flaw(row) is None else {}
    if not begun.get("workspacePath"):
        return row, content
    folder = os.path.join(tasks, row.path)
    kept = {name: value for name, value in begun.items() if name not in _PLACES}
    text = json.dumps({**kept, "workspacePath": folder}, ensure_ascii=False, indent=2) + "\n"
    data = encode_text(text)
    detail = json.dumps({**row.detail, "folder": folder}, ensure_ascii=False)
    return row._replace(sha256=sha256(data), size=len(data), detail_json=detail), text


def _parse_object(content: str | None) -> Mapping[str, Json]:
    return parse_object(content or "") or {}


def _endings(fork: Journal) -> list[Draft]:
    """The rows by which what cannot go on in a fork ends there."""
    return [
        *(
            Write(SYSTEM, EXPIRED, "lease", head.path, None, expected=head.version or 0)
            for head in fork.heads("lease")
            if not head.deleted and find_row_flaw(head) is None and find_damage(head) is None
        ),
        *(
            Write(SYSTEM, END, "command", begun.path, _INTERRUPTED, begun.message, 1, {"interrupted": True})
            for task in fork.heads("task")
            for begun in fork.open_items("command", task.path)
        ),
        *(
            Write(SYSTEM, FORK, "file", head.path, None, expected=head.version or 0)
            for head in fork.heads("file")
            if not head.deleted and find_row_flaw(head) is None and _file_of(fork, head) is None
        ),
    ]


def _fork_note(until: int) -> Note:
    return Note(SYSTEM, FORK, "workspace", "", detail={"row": until})


def _lay_out_tasks(fork: Journal, target: str, scratch: str) -> None:
    """Make a folder in ``target`` for each task that has one, with its files as ``fork`` has them."""
    for task in fork.heads("task"):
        begun = fork.version("task", task.path, 1)
        if find_row_flaw(task) is not None:
            continue
        if begun is None or "folder" not in begun.detail:
            continue
        with closing(Folder(os.path.join(target, task.path), scratch)) as folder:
            for head in fork.heads("file", f"{task.path}/"):
                is_there = not head.deleted and find_row_flaw(head) is None
                data = _file_of(fork, head) if is_there else None
                if data is not None:
                    parts = tuple(head.path.split("/")[1:])
                    folder.write(parts, data, executable=is_executable(head))


def _file_of(fork: Journal, head: Row) -> bytes | None:
    """The bytes of the task's file with the newest version ``head``, None where they are not kept."""
    if is_text(head):
        content = find_content(fork, head)
        return None if content is None else content.encode()
    blob = blob_of(head)
    return fork.blob(blob.sha256) if blob is not None else None
