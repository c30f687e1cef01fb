"""Creates a new workspace from a past moment of another workspace, with its agents and tasks.

Rows are copied with their numbers and contents, so the journal of a fork is complete. It can be verified,
moved and backed up without the original. The original may continue or be deleted.

- Not copied: logins, tokens, enrolments, seals and routines.
- A fork has its own id, and records its parent's id. A decision that is signed in the fork does not
  count in the original, and vice versa.
- A fork is open. Its config file has the settings that were in effect, signed or not.
- No process runs in a fork. Board locks are released, unfinished commands are recorded as interrupted, and
  sessions can be resumed.
- Grants end, because people gave them to the agents of the original.
- Tasks get their own folders. Binary files whose bytes were not kept are deleted.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

from watchroom.features.boards.rows import EXPIRED
from watchroom.features.config.rows import SETTINGS_PATH, SETTINGS_ZONE, dump_config
from watchroom.features.needs.damage import find_damage
from watchroom.features.overview.reads import read_config
from watchroom.features.people.rows import ID_ZONE
from watchroom.features.people.rules import ID_PATH, ROUTINE_PREFIX
from watchroom.features.people.service import find_id, id_draft
from watchroom.features.policy.grants import ZONE as GRANT_ZONE
from watchroom.features.policy.reads import read_grants
from watchroom.features.tasks.rows import END
from watchroom.kernel.checkout.layout import CONTROL, JOURNAL_NAME
from watchroom.kernel.journal import Journal, open_journal
from watchroom.kernel.journal.moving import copy_blobs, open_move_side
from watchroom.kernel.journal.sqlite.exclusion import KeyedProcessLock
from watchroom.kernel.reads import find_content
from watchroom.kernel.rules.file_versions import blob_of, is_executable, is_text
from watchroom.kernel.rules.row_files import CONFIG_PATH, find_row_flaw
from watchroom.model import (
    REVOKE_GRANT,
    SYSTEM,
    Draft,
    Json,
    Note,
    Row,
    Write,
    Zone,
    is_of_journal,
    parse_object,
)
from watchroom.platform import detect_platform
from watchroom.platform.disk import Folder
from watchroom.validation import encode_text, sha256

FORK: Final = "fork_workspace"
"""The tool of the rows that a fork adds."""
TASKS_SUFFIX: Final = "-tasks"
"""The suffix of the folder for the folders of tasks, next to a fork."""
MAX_UNREADABLE: Final = 1000
UNFINISHED: Final = ".unfinished"
"""The suffix of the hidden folder in which a fork is built. The next attempt deletes remains of earlier
attempts."""
_CLAIMS: Final = "claims"
_PLACING: Final = "placing"
"""The file with the identity of the folder that will become the folder of the tasks."""
_PARTS: Final = ("workspace", "tasks", "writing")
_NOT_COPIED: Final[frozenset[Zone]] = frozenset({"token", "person", SETTINGS_ZONE})
_BATCH_ROWS: Final = 500
_BATCH_BYTES: Final = 8 * 1024 * 1024
"""Maximum rows, and maximum bytes of contents, that are copied in one transaction."""
_INTERRUPTED: Final = '{"interrupted": true}'
_PLACES: Final = ("workspacePath", "checkout", "machine")
"""The keys of a task's content with the place of its folder."""


class Fork(NamedTuple):
    """A new fork.

    - ``root``: its folder.
    - ``row``: the last copied row of the original.
    - ``rows``: the number of rows that were copied.
    - ``tasks``: the folder of its tasks, empty if no task has files.
    - ``unreadable``: the rows that were copied without their text, only the first `MAX_UNREADABLE`.
    """

    root: str
    row: int
    rows: int
    tasks: str
    unreadable: tuple[int, ...] = ()


def fork_workspace(
    journal: Journal,
    until: int,
    out: str | os.PathLike[str],
    write_files: Callable[[str], None],
    on_progress: Callable[[int, int], None] = lambda _, __: None,
) -> Fork:
    """Create a workspace in the folder ``out`` from the rows of ``journal`` up to row ``until``.

    The folders of its tasks are in ``out`` + `TASKS_SUFFIX`. ``out`` appears atomically: a killed process
    leaves a hidden folder with `UNFINISHED` in its name, which the next attempt deletes.

    - ``write_files``: called with the folder of the new workspace once its journal is complete; it writes
      the files of the workspace there.
    - ``on_progress``: called after each batch with the number of the last copied row, and ``until``.

    Raise FileExistsError if ``out`` exists or another attempt is running, `JournalError`,
    `WorkspaceLocked`, OSError.
    """
    root = os.path.abspath(out)
    tasks = root + TASKS_SUFFIX
    with _make_scratch(root, tasks) as scratch:
        built, built_tasks = os.path.join(scratch, "workspace"), os.path.join(scratch, "tasks")
        path = os.path.join(built, CONTROL, JOURNAL_NAME)
        os.makedirs(os.path.dirname(path), mode=0o700)
        unreadable: list[int] = []
        rows = _copy_rows(journal, until, path, tasks, on_progress, unreadable)
        with closing(open_journal(path)) as fork:
            copy_blobs(journal, fork)
            fork.append(
                [
                    id_draft(fork, SYSTEM, {"parent": find_id(journal), "row": until}),
                    *_draft_settings(journal, until),
                    *_draft_endings(fork),
                    Note(SYSTEM, FORK, "workspace", "", detail={"row": until}),
                ]
            )
            _write_task_folders(fork, built_tasks, os.path.join(scratch, "writing"))
        write_files(built)
        has_tasks = os.path.isdir(built_tasks)
        if has_tasks:
            with open(os.path.join(scratch, _PLACING), "w", encoding="ascii") as placing:
                placing.write(_identity(built_tasks))
            os.rename(built_tasks, tasks)
        os.rename(built, root)
    return Fork(root, until, rows, tasks if has_tasks else "", tuple(unreadable))


def _draft_settings(journal: Journal, until: int) -> Iterator[Draft]:
    """Yield the draft that writes the signed settings at row ``until`` into the config file of the fork. The
    fork does not have the people who signed them."""
    if journal.head(SETTINGS_ZONE, SETTINGS_PATH, as_of=until) is not None:
        text = dump_config(read_config(journal, as_of=until))
        yield Write(SYSTEM, FORK, "config", CONFIG_PATH, text)


@contextmanager
def _make_scratch(root: str, tasks: str) -> Iterator[str]:
    """Yield an empty folder in which to build the workspace ``root``, and delete it afterwards.

    First delete the remains of an earlier attempt, there and at ``tasks``. Raise FileExistsError, OSError.
    """
    if os.path.lexists(root):
        raise FileExistsError(root)
    above, name = os.path.split(root)
    scratch = os.path.join(above, f".{name}{UNFINISHED}")
    if os.path.islink(scratch):
        raise FileExistsError(scratch)
    os.makedirs(os.path.join(scratch, _CLAIMS), mode=0o700, exist_ok=True)
    folder = _identity(scratch)
    # The claim shows whether another attempt is running.
    with KeyedProcessLock(os.path.join(scratch, _CLAIMS), detect_platform()).claim(FORK) as is_ours:
        # The attempt that held the claim before may have deleted the folder.
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
    """Delete the remains of a killed attempt in ``scratch``, and at ``tasks`` if it had already moved that
    folder."""
    placing = os.path.join(scratch, _PLACING)
    # The folder of the workspace is moved last: while it is still here, there is no fork.
    if os.path.isfile(placing) and os.path.isdir(os.path.join(scratch, _PARTS[0])):
        with open(placing, encoding="ascii") as file:
            placed = file.read()
        if placed and os.path.isdir(tasks) and _identity(tasks) == placed and not os.path.lexists(root):
            shutil.rmtree(tasks)
    _delete_parts(scratch)


def _delete_parts(scratch: str) -> None:
    # The mark is deleted last, so that the next attempt can continue if this attempt is killed.
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
    on_progress: Callable[[int, int], None],
    unreadable: list[int],
) -> int:
    """Copy the rows into the file at ``path``. Return their number.

    Append the numbers of the first rows with unreadable text to ``unreadable``.
    """
    count = 0
    with closing(open_move_side(path)) as target:
        for batch in _batches(journal, until, tasks, unreadable):
            target.write(batch)
            count += len(batch)
            on_progress(batch[-1][0].seq, until)
    return count


def _batches(
    journal: Journal, until: int, tasks: str, unreadable: list[int]
) -> Iterator[list[tuple[Row, str | None]]]:
    batch: list[tuple[Row, str | None]] = []
    size = after = 0
    while rows := journal.rows(after, until=until, limit=_BATCH_ROWS):
        after = rows[-1].seq
        for row in rows:
            if row.zone in _NOT_COPIED or is_of_journal(row) or _is_of_original(row):
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


def _is_of_original(row: Row) -> bool:
    """Return whether ``row`` is the workspace's id, or about a routine, which only the original runs."""
    return row.zone == ID_ZONE and (row.path == ID_PATH or row.path.startswith(ROUTINE_PREFIX))


def _moved_task(row: Row, content: str | None, tasks: str) -> tuple[Row, str | None]:
    """Return ``row`` with a new folder in ``tasks`` if it begins a task with a folder, else unchanged. Only
    these rows differ from the original."""
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


def _draft_endings(fork: Journal) -> list[Draft]:
    """Return drafts that end items that cannot continue in a fork: board locks, commands, grants, and lost
    task files."""
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
            Write(SYSTEM, REVOKE_GRANT, GRANT_ZONE, each.head.path, None, expected=each.head.version or 0)
            for each in read_grants(fork)
        ),
        *(
            Write(SYSTEM, FORK, "file", head.path, None, expected=head.version or 0)
            for head in fork.heads("file")
            if not head.deleted and find_row_flaw(head) is None and _file_of(fork, head) is None
        ),
    ]


def _write_task_folders(fork: Journal, target: str, scratch: str) -> None:
    """Write the files of each task with a folder to a folder in ``target``."""
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
    """Return the bytes of the task file whose newest version is ``head``, None if they are not kept."""
    if is_text(head):
        content = find_content(fork, head)
        return None if content is None else content.encode()
    blob = blob_of(head)
    return fork.blobs.find(blob.sha256) if blob is not None else None
