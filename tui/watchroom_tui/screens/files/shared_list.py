"""The list of shared files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from watchroom.features.files.view import SharedFile
from watchroom.features.overview.client_files import ClientFile

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList


class SharedFileList(ItemList[SharedFile | ClientFile]):
    """Shared files by path, then the files that agents edited with the tools of their clients."""

    COLUMNS: ClassVar = (
        Column(least=12, cut="middle", grows=True),
        Column(least=3, align="right"),
        Column(least=2, align="right"),
        Column(least=8, most=20),
        Column(least=4, align="right"),
    )

    def item_key(self, item: SharedFile | ClientFile) -> Hashable:
        return item.path if isinstance(item, SharedFile) else (item.path, item.folder)

    def cells(self, item: SharedFile | ClientFile) -> Sequence[Line]:
        if isinstance(item, ClientFile):
            actor = item.row.actor
            more = f" +{len(item.agents) - 1}" if len(item.agents) > 1 else ""
            return (
                [Span(labels.CLIENT_MARK), Span(sanitize(item.path))],
                [Span(f"×{item.edits}", "dim")],
                (),
                [Span(sanitize(actor) + more, agent_class(actor))],
                [Span(self.age_of(item.row), "dim")],
            )
        return (
            [Span(" "), Span(sanitize(labels.path_of(item.head)))],
            [Span(f"v{item.head.version}", "ok")],
            [Span(f"⚔{item.conflicts}" if item.conflicts else "", "error")],
            [labels.actor_span(item.head)],
            [Span(self.age_of(item.head), "dim")],
        )

    def copy_text(self, item: SharedFile | ClientFile) -> str:
        return item.path
