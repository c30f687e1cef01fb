"""The list of an agent's files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from watchroom.features.overview.client_files import ClientFile
from watchroom.model import Row

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList


class FileList(ItemList[Row | ClientFile]):
    """An agent's private files, files in trees that it changed last, and files that it edited with its
    client's own tools."""

    COLUMNS: ClassVar = (
        Column(least=12, cut="middle", grows=True),
        Column(least=3, align="right"),
        Column(least=4, align="right"),
    )

    def item_key(self, item: Row | ClientFile) -> Hashable:
        return item.path if isinstance(item, Row) else (item.path, item.folder)

    def cells(self, item: Row | ClientFile) -> Sequence[Line]:
        if isinstance(item, ClientFile):
            return (
                [Span(labels.CLIENT_MARK), Span(sanitize(item.path))],
                [Span(f"×{item.edits}", "dim")],
                [Span(self.age_of(item.row), "dim")],
            )
        return (
            [Span(" "), Span(sanitize(item.path.partition("/")[2]))],
            [Span(f"v{item.version}", "ok")],
            [Span(self.age_of(item), "dim")],
        )

    def copy_text(self, item: Row | ClientFile) -> str:
        return item.path
