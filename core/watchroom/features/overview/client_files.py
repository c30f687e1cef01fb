"""The files that agents edited with their clients' own tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from watchroom.features.files.view import SharedFile
from watchroom.features.sessions.rows import ClientCall
from watchroom.features.trees.rows import Tree
from watchroom.features.trees.view import find_row_path
from watchroom.model import Row

MAX_FILES: Final = 1000
"""Maximum number of files that are kept. The most recently edited files are kept."""
_MAX_AGENTS: Final = 20


class ClientFile(NamedTuple):
    """A file that agents edited with their clients' own tools. It has no versions.

    - ``path``: relative to ``folder`` if the file is in it, else absolute.
    - ``folder``: the folder in which the agent's session began.
    - ``row``: the newest edit.
    - ``edits``: the number of edits.
    - ``agents``: the agents that made them, the last editor first.
    """

    path: str
    folder: str
    row: Row
    edits: int = 1
    agents: tuple[str, ...] = ()


class ClientFileProjection:
    """The files that agents edited with their clients' own tools. Takes the rows of client calls in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {
        "_changed": True,
        "_current": (),
        "_versioned": (),
    }
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        # By path and folder, in the order of the newest edit.
        self._files: dict[tuple[str, str], ClientFile] = {}
        self._changed = False
        self._current: tuple[ClientFile, ...] = ()
        self._versioned: Sequence[SharedFile] = ()

    def apply(self, row: Row, call: ClientCall) -> None:
        """Apply ``row``, which ended ``call``."""
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

    def current(self, trees: Sequence[Tree], versioned: Sequence[SharedFile]) -> tuple[ClientFile, ...]:
        """Return the files by path. Return the same object if none changed.

        Files in ``trees`` that are ``versioned`` are left out.
        """
        if self._changed or versioned is not self._versioned:
            self._changed, self._versioned = False, versioned
            known = {each.path for each in versioned}
            found = (
                file
                for _, file in sorted(self._files.items())
                if not known or find_row_path(trees, file.path, file.folder) not in known
            )
            current = tuple(found)
            self._current = self._current if current == self._current else current
        return self._current
