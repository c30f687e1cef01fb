"""Tasks as rows: what was asked for, by whom, and the folder that it is bound to (TASKS-society)."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.checkout.location import is_workspace
from watchroom.errors import JournalDamaged
from watchroom.model import END_TASK, Json, Row, Write, parse_object
from watchroom.rules.details import get_int, get_object, get_text, task_end_status
from watchroom.rules.row_files import find_row_flaw
from watchroom.sandbox.errors import InvalidWorkspace, TaskNotFound
from watchroom.sandbox.repositories import is_git_folder
from watchroom.sandbox.system_folders import is_system_folder
from watchroom.zones.people import PeopleReader
from watchroom.zones.store import Store
from watchroom.zones.task_errors import OtherMachine, TaskInUse

ZONE: Final = "task"
_LONGEST_TITLE: Final = 120
SUBMIT: Final = "submit_requirement"

TaskStatus: TypeAlias = Literal["open", "done", "failed", "cancelled"]


class TaskLimits(NamedTuple):
    """How far a task's agents may go: so many layers beneath the first one, so many agents at a time, so many
    steps each."""

    depth: int = 4
    agents: int = 12
    steps: int = 300


class Task(NamedTuple):
    """A task as it stands. ``folder`` is the absolute path that it is bound to, empty if to none;
    ``created`` nanoseconds since the epoch, UTC."""

    id: str
    text: str
    folder: str
    by: str
    created: int
    status: TaskStatus
    limits: TaskLimits = TaskLimits()
    model: str = ""
    """The model that its agents think with, empty if that is not for others to know."""
    checkout: str = ""
    """The id of the checkout on whose machine its folder is, empty where there is one machine only."""
    machine: str = ""
    """The name of that machine."""


class Tasks:
    """The tasks of the workspace at ``root``, in ``store``; ``people`` says who may say that one is done."""

    def __init__(self, store: Store, root: str, people: PeopleReader) -> None:
        self._store = store
        self._people = people
        self._root = os.path.realpath(root)
        self._known: dict[str, Task] = {}

    def submit(
        self,
        actor: str,
        text: str,
        workspace_path: str | os.PathLike[str] | None = None,
        limits: TaskLimits = TaskLimits(),  # noqa: B008  # immutable
        model: str = "",
    ) -> Task:
        """Begin a task for ``actor`` who asks for ``text``, in the folder ``workspace_path``, which is made
        if it is missing. Its agents keep to ``limits`` and think with ``model``. Raises `NotText`, and
        `InvalidWorkspace` as `checked_folder` does, and where another task that is open has files there."""
        validation.encode_text(text)
        folder = "" if workspace_path is None else checked_folder(workspace_path, self._root)
        task = uuid.uuid4().hex[:12]
        with self._store.journal.exclusive("tasks"):
            if folder:
                self._check_folder_free(folder)
                _make_folder(folder)
            content: dict[str, Json] = {
                "taskId": task,
                "workspacePath": folder,
                "requirement": text,
                "limits": limits._asdict(),
                "model": model,
            }
            host = self._store.host
            if host.id:
                content |= {"checkout": host.id, "machine": host.machine}
            detail = {"folder": folder} if folder else None
            title = validation.extract_first_line(text, _LONGEST_TITLE)
            draft = Write(actor, SUBMIT, ZONE, task, _render(content), title, 0, detail)
            row = self._store.commits.commit(draft).row
        machine = host.machine if host.id else ""
        return Task(task, text, folder, actor, row.time, "open", limits, model, host.id, machine)

    def find_here(self, task: str) -> Task:
        """As `find`, for who needs the files of ``task``. Raises `OtherMachine` where they are on another
        machine, `TaskNotFound`."""
        found = self.find(task)
        if not self.is_here(found):
            raise OtherMachine(task=found.id, machine=found.machine)
        return found

    def folder_here(self, task: str) -> str:
        """The folder of ``task`` on this machine, for who reads or writes its files. Rows are not trusted:
        raises `InvalidWorkspace` if no task may be bound to the folder, or there is none; `OtherMachine`,
        `TaskNotFound`."""
        folder = self.find_here(task).folder
        _check_unprotected(folder, self._root)
        if not os.path.isdir(folder):
            raise InvalidWorkspace(path=folder, rule="folder_missing")
        return folder

    def has_folder_here(self, task: str) -> bool:
        """Whether the task with the id ``task`` is open, and has its folder on this machine."""
        try:
            return self.is_open(task) and bool(self.folder_here(task))
        except (InvalidWorkspace, JournalDamaged, OtherMachine, TaskNotFound):
            return False

    def is_here(self, task: Task) -> bool:
        """Whether the folder of ``task`` is on this machine."""
        return self._store.host.is_own(task.checkout)

    def is_open(self, task: str) -> bool:
        """Whether there is a task with the id ``task``, and it has not ended."""
        head = self._store.journal.head(ZONE, task)
        return head is not None and head.version == 1

    @contextmanager
    def claim(self, task: str) -> Iterator[None]:
        """Have the agents of ``task`` work here and nowhere else meanwhile. Raises `TaskNotFound`,
        `OtherMachine`, `TaskInUse`."""
        with self._store.journal.claim(_claim_key(self.find_here(task).id)) as is_ours:
            if not is_ours:
                raise TaskInUse(task=task)
            yield

    def is_claimed(self, task: str) -> bool:
        """Whether some process lets the agents of ``task`` work."""
        return self._store.journal.is_claimed(_claim_key(task))

    def end_row(self, task: str) -> Row | None:
        """Return the row that ended ``task``, the first version after its first one; None if it is open."""
        return next(iter(self._store.journal.history(ZONE, task, after_version=1, limit=1)), None)

    def find(self, task: str) -> Task:
        """The task with the id ``task``. Raises `TaskNotFound`, and `JournalDamaged` where its row is."""
        head = self._store.journal.head(ZONE, task)
        if head is None:
            raise TaskNotFound(task=validation.escape_unstorable(task, 100))
        return self._read(head)

    def limits_of(self, task: str) -> TaskLimits:
        """What the agents of ``task`` keep to, which never changes. Raises as `find` does."""
        return (self._known.get(task) or self.find(task)).limits

    def list(self) -> Iterator[Task]:
        """All tasks that can be read, in order of id."""
        for head in self._store.journal.heads(ZONE):
            try:
                found = self._read(head)
            except (JournalDamaged, TaskNotFound):
                # `verify` names it; the others are looked at all the same.
                continue
            yield found

    def end(self, actor: str, task: str, status: TaskStatus, message: str = "") -> Task:
        """End ``task`` for ``actor`` with ``status`` and a ``message``; its folder is free for another one.
        Ending it again changes nothing. Raises `TaskNotFound`."""
        found = self.find(task)
        draft = Write(actor, END_TASK, ZONE, task, status, message, 1, {"status": status})
        if found.status != "open":
            return found
        self._store.write(draft)
        return self.find(task)

    def _read(self, head: Row) -> Task:
        """The task whose newest row is ``head``. What it was begun with never changes, nor how it ended."""
        known = self._known.get(head.path)
        if known is None:
            known = self._read_first(head)
        if head.version != 1 and known.status == "open":
            end = self.end_row(head.path) or head
            status = task_end_status(end) if self._people.counts(end) else "cancelled"
            known = known._replace(status=status)
        self._known[head.path] = known
        return known

    def _read_first(self, head: Row) -> Task:
        first = head if head.version == 1 else self._store.journal.version(ZONE, head.path, 1)
        if first is None or find_row_flaw(first) is not None:
            raise TaskNotFound(task=validation.escape_unstorable(head.path, 100))
        content = parse_object(self._store.content(first))
        if content is None or not isinstance(content.get("requirement"), str):
            raise JournalDamaged
        limits = get_object(content, "limits")
        known = {name: most for name in TaskLimits._fields if (most := get_int(limits, name)) is not None}
        return Task(
            first.path,
            get_text(content, "requirement"),
            get_text(content, "workspacePath"),
            first.actor,
            first.time,
            "open",
            TaskLimits(**known),
            get_text(content, "model"),
            get_text(content, "checkout"),
            get_text(content, "machine"),
        )

    def _check_folder_free(self, folder: str) -> None:
        for head in self._store.journal.open_items(ZONE):
            try:
                other = self._read(head)
            except (JournalDamaged, TaskNotFound):
                # It has no folder that anybody could share.
                continue
            if self.is_here(other) and _overlap(folder, other.folder):
                raise InvalidWorkspace(path=folder, rule="of_another_task")


def _claim_key(task: str) -> str:
    """What is claimed by who lets the agents of ``task`` work."""
    return f"task/{task}"


def checked_folder(given: str | os.PathLike[str], root: str) -> str:
    """The real path of the folder ``given``, which agents of the workspace at ``root`` may be let into;
    nothing is made. Raises `InvalidWorkspace` for a path that is not absolute, stands for something else than
    a folder, is the system's, holds the home folder, is a bare git repository, or shares files with this
    workspace or lies in another one."""
    folder = _check_unprotected(os.fspath(given), root)
    above = folder
    while True:
        if is_workspace(above):
            raise InvalidWorkspace(path=folder, rule="of_a_team")
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InvalidWorkspace(path=folder, rule="not_a_folder")
    if os.path.isdir(folder) and is_git_folder({each.casefold() for each in os.listdir(folder)}):
        # Its settings lie among the task's own files, and are a command's to change.
        raise InvalidWorkspace(path=folder, rule="bare_repository")
    return folder


def _check_unprotected(given: str, root: str) -> str:
    """The real path of the folder ``given``. Raises `InvalidWorkspace` for a path that is not absolute, holds
    the home folder or is the system's, or shares files with the workspace at ``root``."""
    folder = _resolve(given)
    home = os.path.realpath(os.path.expanduser("~"))
    if os.path.commonpath((folder, home)) == folder:
        raise InvalidWorkspace(path=folder, rule="too_wide")
    if is_system_folder(folder):
        raise InvalidWorkspace(path=folder, rule="of_the_system")
    if _overlap(folder, os.path.realpath(root)):
        raise InvalidWorkspace(path=folder, rule="holds_the_journal")
    return folder


def _resolve(given: str) -> str:
    """The path of a folder without symlinks, whether it is there or not."""
    if not os.path.isabs(given) or "\0" in given or not validation.is_unicode(given):
        raise InvalidWorkspace(path=validation.escape_unstorable(given, 200), rule="not_absolute")
    return os.path.realpath(given)


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidWorkspace(path=folder, rule="not_a_folder") from error
    except OSError as error:
        raise InvalidWorkspace(path=folder, rule="cannot_be_made") from error


def _overlap(one: str, other: str) -> bool:
    """Whether one of two real paths lies in the other; none does where one is empty."""
    return bool(one and other) and os.path.commonpath((one, other)) in (one, other)


def _render(content: Mapping[str, Json]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
