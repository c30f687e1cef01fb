"""Tasks, whole: what was asked for, and within which limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from watchroom.journal import Journal
from watchroom.model import parse_object
from watchroom.projections.tasks import TaskView
from watchroom.queries.rows import find_content
from watchroom.rules.details import get_object, get_text


class TaskDetails(NamedTuple):
    """What was asked for in a task, the ``limits`` that were set by name (``depth``, ``agents``, ``steps``),
    and the model that its agents think with, empty if none was named."""

    requirement: str
    limits: Mapping[str, int] = MappingProxyType({})
    model: str = ""


def check_folder(folder: str | os.PathLike[str], root: str) -> str:
    """The real path of ``folder`` for the tasks of the team whose workspace is at ``root``; nothing is made.
    Raises `InvalidWorkspace` where agents may not be let into it."""
    # The zones are slow to load, and wanted only here.
    from watchroom.zones.tasks import checked_folder

    return checked_folder(folder, root)


def read_task(journal: Journal, task: TaskView) -> TaskDetails:
    """All that ``journal`` has of the beginning of ``task``. Raises `JournalError`."""
    record = parse_object(find_content(journal, task.row) or "") or {}
    limits = {name: most for name, most in get_object(record, "limits").items() if isinstance(most, int)}
    requirement = get_text(record, "requirement") or task.row.message
    return TaskDetails(requirement, MappingProxyType(limits), get_text(record, "model"))
