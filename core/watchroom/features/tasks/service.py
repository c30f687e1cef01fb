"""`Tasks`: the requirements of tasks, who submitted them, and their folders (TASKS-society)."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from watchroom import validation
from watchroom.errors import InvalidWorkspace, JournalDamaged, OtherMachine, TaskInUse, TaskNotFound
from watchroom.features.config.store import Store
from watchroom.features.people.service import PeopleReader
from watchroom.features.tasks.folder import check_task_folder, check_unprotected, has_overlap, make_folder
from watchroom.features.tasks.rows import SUBMIT, TASK, Task, TaskLimits, TaskStatus, parse_task
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import task_end_status
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import END_TASK, Json, Row, Write

_MAX_TITLE: Final = 120
"""Maximum characters of a task's title."""


class Tasks:
    """The tasks of the workspace at ``root``. ``people``: decides whose rows can end a task as done."""

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
        """Begin a task.

        - ``actor``: who submits it.
        - ``text``: the requirement.
        - ``workspace_path``: its folder, created if missing; default: none.
        - ``limits``: the limits for its agents.
        - ``model``: the model of its agents.

        Raise `NotText`. Raise `InvalidWorkspace` in the cases of `check_task_folder`, and if another open
        task has files in the folder.
        """
        validation.encode_text(text)
        folder = "" if workspace_path is None else check_task_folder(workspace_path, self._root)
        task = uuid.uuid4().hex[:12]
        with self._store.journal.exclusive("tasks"):
            if folder:
                self._check_folder_free(folder)
                make_folder(folder)
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
            title = validation.extract_first_line(text, _MAX_TITLE)
            rendered = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
            draft = Write(actor, SUBMIT, TASK, task, rendered, title, 0, detail)
            row = self._store.commits.commit(draft).row
        machine = host.machine if host.id else ""
        return Task(task, text, folder, actor, row.time, "open", limits, model, host.id, machine)

    def find_here(self, task: str) -> Task:
        """Return ``task`` if its folder is on this machine. Otherwise raise `OtherMachine`. Raise
        `TaskNotFound`."""
        found = self.find(task)
        if not self.is_here(found):
            raise OtherMachine(task=found.id, machine=found.machine)
        return found

    def folder_here(self, task: str) -> str:
        """Return the path of the folder of ``task`` on this machine.

        The folder is checked again, because rows are not trusted. Raise `InvalidWorkspace` if the folder is
        missing or not allowed, `OtherMachine`, and `TaskNotFound`.
        """
        folder = self.find_here(task).folder
        check_unprotected(folder, self._root)
        if not os.path.isdir(folder):
            raise InvalidWorkspace(path=folder, rule="folder_missing")
        return folder

    def has_folder_here(self, task: str) -> bool:
        """Return whether ``task`` is open and has a valid folder on this machine."""
        try:
            return self.is_open(task) and bool(self.folder_here(task))
        except (InvalidWorkspace, JournalDamaged, OtherMachine, TaskNotFound):
            return False

    def is_here(self, task: Task) -> bool:
        """Return whether the folder of ``task`` is on this machine."""
        return self._store.host.is_own(task.checkout)

    def is_open(self, task: str) -> bool:
        """Return whether ``task`` exists and has not ended."""
        head = self._store.journal.head(TASK, task)
        return head is not None and head.version == 1

    @contextmanager
    def claim(self, task: str) -> Iterator[None]:
        """Give this process the exclusive right to run the agents of ``task`` while the context lasts.

        Raise `TaskNotFound`, `OtherMachine`, and `TaskInUse` if another process runs them.
        """
        with self._store.journal.claim(_claim_key(self.find_here(task).id)) as is_ours:
            if not is_ours:
                raise TaskInUse(task=task)
            yield

    def is_claimed(self, task: str) -> bool:
        """Return whether a process runs the agents of ``task``."""
        return self._store.journal.is_claimed(_claim_key(task))

    def end_row(self, task: str) -> Row | None:
        """Return the row that ended ``task``: the first version after its first one. None if it is open."""
        return next(iter(self._store.journal.history(TASK, task, after_version=1, limit=1)), None)

    def find(self, task: str) -> Task:
        """Return ``task``. Raise `TaskNotFound`, and `JournalDamaged` if its first row is damaged."""
        head = self._store.journal.head(TASK, task)
        if head is None:
            raise TaskNotFound(task=validation.escape_unstorable(task, 100))
        return self._read(head)

    def limits_of(self, task: str) -> TaskLimits:
        """Return the limits of ``task``, which never change. Raise the errors of `find`."""
        return (self._known.get(task) or self.find(task)).limits

    def list(self) -> Iterator[Task]:
        """Yield all readable tasks, sorted by id."""
        for head in self._store.journal.heads(TASK):
            try:
                found = self._read(head)
            except (JournalDamaged, TaskNotFound):
                # `verify` reports it.
                continue
            yield found

    def end(self, call: CallContext, task: str, status: TaskStatus, message: str = "") -> Task:
        """End ``task`` with ``status`` and a ``message``. Its folder is then free for another task.

        An ended task is not changed. Raise `TaskNotFound`.
        """
        found = self.find(task)
        if found.status != "open":
            return found
        ended = call.with_tool(END_TASK)
        self._store.write(ended.write(TASK, task, status, message, 1, {"status": status}))
        return self.find(task)

    def _read(self, head: Row) -> Task:
        """Return the task whose newest row is ``head``."""
        # Its first row and the row that ended it never change.
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
        first = head if head.version == 1 else self._store.journal.version(TASK, head.path, 1)
        if first is None or find_row_flaw(first) is not None:
            raise TaskNotFound(task=validation.escape_unstorable(head.path, 100))
        task = parse_task(first, self._store.content(first))
        if task is None:
            raise JournalDamaged
        return task

    def _check_folder_free(self, folder: str) -> None:
        for head in self._store.journal.open_items(TASK):
            try:
                other = self._read(head)
            except (JournalDamaged, TaskNotFound):
                # It has no folder.
                continue
            if self.is_here(other) and has_overlap(folder, other.folder):
                raise InvalidWorkspace(path=folder, rule="of_another_task")


def _claim_key(task: str) -> str:
    """Return the key that a process claims to run the agents of ``task``."""
    return f"task/{task}"
