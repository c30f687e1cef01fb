"""The files that agents edited by their clients' own tools, by the calls that said so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from watchroom.model import Row
from watchroom.rules.client_calls import ClientCall

MAX_FILES: Final = 1000
"""Files that are kept: those that were edited last."""
_MAX_AGENTS: Final = 20


class ClientFile(NamedTuple):
    """A file that agents edited by their clients' own tools. It has no versions here.

    ``path`` is relative to ``folder``, where an agent's session began, if it is in it. ``row`` is the newest
    edit, ``edits`` how many there were, ``agents`` who made them, the last one first.
    """

    path: str
    folder: str
    row: Row
    edits: int = 1
    agents: tuple[str, ...] = ()


class ClientFileProjection:
    """The newest files that agents edited by their clients' own tools."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        # By path and folder, in the order of the newest edit.
        self._files: dict[tuple[str, str], ClientFile] = {}
        self._changed = False
        self._current: tuple[ClientFile, ...] = ()

    def apply(self, row: Row, call: ClientCall) -> None:
        """Take in ``row``, with which ``call`` ended."""
        if not call.is_edit:
            return
        for path in call.paths:
            known = self._files.pop((path, call.folder), None)
            edits, agents = (known.edits, known.agents) if known is not None else (0, ())
            others = tuple(each for each in agents if each != row.actor)
            agents = (row.actor, *others)[:_MAX_AGENTS]
            self._files[path, call.folder] = ClientFile(path, call.folder, row, edits + 1, agents)
        while len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]
        self._changed = True

    def current(self) -> tuple[ClientFile, ...]:
        """The files by path; the same object if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(file for _, file in sorted(self._files.items()))
        return self._current
