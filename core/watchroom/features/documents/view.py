"""The realtime documents, as the dashboard shows them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from watchroom.kernel.rules.activity import count_activity, put_first
from watchroom.model import Row


class DocumentView(NamedTuple):
    """A realtime document.

    - ``created``, ``newest``: its first and its newest version.
    - ``writers``: its writers, most recent first.
    - ``activity``: the number of edits in each bucket of 5 seconds.
    """

    name: str
    created: Row
    newest: Row
    writers: tuple[str, ...] = ()
    activity: Mapping[int, int] = MappingProxyType({})

    @property
    def version(self) -> int:
        return self.newest.version or 0


class DocumentProjection:
    """The realtime documents. Takes their rows in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self) -> None:
        self._documents: dict[str, DocumentView] = {}
        self._current: tuple[DocumentView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row``. Only new versions matter."""
        if row.version is None:
            return
        known = self._documents.get(row.path) or DocumentView(row.path, row, row)
        activity = dict(known.activity)
        count_activity(activity, row.time)
        writers = put_first(row.actor, known.writers)
        self._documents[row.path] = known._replace(newest=row, writers=writers, activity=activity)
        self._changed = True

    def current(self) -> tuple[DocumentView, ...]:
        """Return the documents by name, the same object if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(document for _, document in sorted(self._documents.items()))
        return self._current
