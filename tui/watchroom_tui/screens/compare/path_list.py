"""The list of paths that changed between two moments."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from watchroom.history.comparison import ChangeKind, PathDifference
from watchroom.kernel.journal import ChangedPath

from watchroom_tui.context import dashboard_of
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.labels import place_text
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList

MARKS: Final[Mapping[ChangeKind, Span]] = {
    "created": Span("+", "ok"),
    "changed": Span("~", "accent"),
    "deleted": Span("−", "error"),
}
"""The marks of created, changed and deleted paths."""


class ComparedPath(NamedTuple):
    """A changed path and its difference, None until the difference is computed."""

    path: ChangedPath
    difference: PathDifference | None = None


class ChangedPathList(ItemList[ComparedPath]):
    """The changed paths: mark, path, changed lines, number of versions, and actors."""

    ITEMS_CHANGE = True
    COLUMNS: ClassVar = (
        Column(least=2),
        Column(least=12, cut="middle", grows=True),
        Column(least=6, align="right"),
        Column(least=3, align="right"),
        Column(least=8, most=30),
    )

    def __init__(self, *, title: str, empty: str, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(title=title, empty=empty, id=id, classes=classes)
        self._span = ""

    def show_span(self, span: str) -> None:
        """Show the compared range ``span`` in the title."""
        self._span = span
        self._retitle()

    def title_text(self, title: str) -> str:
        return f"{title}  {self._span}".rstrip()

    def place(self, path: ChangedPath) -> str:
        """Return the readable place of ``path``. Not sanitized."""
        return place_text(path.zone, path.path, has_trees=len(dashboard_of(self).model.trees) > 1)

    def item_key(self, item: ComparedPath) -> Hashable:
        return item.path.zone, item.path.path

    def cells(self, item: ComparedPath) -> Sequence[Line]:
        path, found = item
        mark = MARKS[found.kind] if found is not None else Span("·", "dim")
        return (
            [Span(" "), mark],
            [Span(sanitize(self.place(path)))],
            _lines_of(found),
            [Span(f"×{path.versions}", "dim")],
            _actors_of(path),
        )

    def item_text(self, item: ComparedPath) -> str:
        return f"{self.place(item.path)} {' '.join(actor for actor, _ in item.path.actors)}"

    def copy_text(self, item: ComparedPath) -> str:
        return item.path.path


def _lines_of(found: PathDifference | None) -> Line:
    if found is None or found.added is None:
        return [Span("" if found is None else "–", "dim")]
    return [Span(f"+{found.added}", "ok"), Span(" "), Span(f"−{found.removed}", "error")]


def _actors_of(path: ChangedPath) -> Line:
    line: list[Span] = []
    for actor, count in path.actors:
        if line:
            line.append(Span(" "))
        line.append(Span(sanitize(actor), agent_class(actor)))
        if len(path.actors) > 1:
            line.append(Span(f" {count}", "dim"))
    return line
