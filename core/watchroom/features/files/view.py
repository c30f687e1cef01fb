"""Files that several agents write, as the dashboard shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from watchroom.kernel.rules.conflicts import ConflictView
from watchroom.model import Row, Zone


class SharedFile(NamedTuple):
    """A file that several agents write: its current version, and the number of its open conflicts."""

    path: str
    head: Row
    conflicts: int = 0


class FileProjection:
    """The current versions of the files of ``zone``. Takes the rows of these files in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": (), "_conflicts": ()}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone
        self._files: dict[str, SharedFile] = {}
        self._conflicts: tuple[ConflictView, ...] = ()
        self._current: tuple[SharedFile, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row``. Only new versions matter."""
        if row.version is not None:
            self._files[row.path] = SharedFile(row.path, row)
            self._changed = True

    def current(self, conflicts: tuple[ConflictView, ...]) -> tuple[SharedFile, ...]:
        """Return the files by path, each with the number of its open ``conflicts``. Return the same object if
        nothing changed."""
        if self._changed or conflicts is not self._conflicts:
            self._changed, self._conflicts = False, conflicts
            counts = Counter(each.path for each in conflicts if each.zone == self._zone)
            for path, file in self._files.items():
                if file.conflicts != counts[path]:
                    self._files[path] = file._replace(conflicts=counts[path])
            self._current = tuple(file for _, file in sorted(self._files.items()))
        return self._current
