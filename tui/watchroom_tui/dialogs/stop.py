"""Shows for each agent that was told to stop what proves that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from textual.app import ComposeResult
from watchroom.features.policy.shown_commands import quote_word
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.base import Dialog
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span, align_cells, width_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.widgets.text_pane import TextPane

_COLUMNS: Final = (Column(), Column(most=30), Column())


class StopState(NamedTuple):
    """How it is with an agent: ``is_proven``, and ``how`` that shows, or what keeps it from being so."""

    agent: str
    is_proven: bool
    how: str


class StopProgress(NamedTuple):
    """How it is with all ``agents``, and whom nobody could tell (``refused``: why). ``is_over``: it is waited
    for no more; ``root`` is the workspace's folder."""

    agents: Sequence[StopState]
    refused: Mapping[str, str]
    root: str
    seconds: int
    is_over: bool = False

    @property
    def unproven(self) -> Sequence[str]:
        """Who is not proven to have stopped."""
        return [each.agent for each in self.agents if not each.is_proven]


class StopDialog(Dialog):
    def __init__(self, progress: StopProgress) -> None:
        super().__init__()
        self._progress = progress

    def compose(self) -> ComposeResult:
        yield TextPane(title="stop.stop_title", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        self.show_progress(self._progress)

    def show_progress(self, progress: StopProgress) -> None:
        """Show how it is now."""
        self._progress = progress
        texts = self.dashboard.texts
        title = f"{texts('stop.stop_title')} · {texts('help.close')}"
        for view in self.query(TextPane):
            view.show_notice("stop", stop_lines(progress, texts), title=title)


def stop_lines(progress: StopProgress, texts: Catalogue) -> list[Line]:
    """``progress`` as people read it."""
    open_state = ("✖", "error", "stop.unproven") if progress.is_over else ("…", "warning", "stop.waiting")
    rows = [
        (*(("✓", "ok", "stop.proven") if each.is_proven else open_state), each.agent, each.how)
        for each in progress.agents
    ]
    rows += [("✖", "error", "stop.refused", agent, why) for agent, why in progress.refused.items()]
    cells = [
        ([Span(f" {mark}", style)], [Span(sanitize(agent), agent_class(agent))], [Span(texts(key), style)])
        for mark, style, key, agent, _ in rows
    ]
    shares = [min(column.most, max(width_of(row[at]) for row in cells)) for at, column in enumerate(_COLUMNS)]
    # What shows it is as long as it is: padded, it would be broken into lines for nothing.
    lines: list[Line] = [[]]
    for row, cell in zip(rows, cells, strict=True):
        lines.append([*align_cells(_COLUMNS, cell, shares), Span(" "), Span(sanitize(row[-1]), "dim")])
    lines.append([])
    count, unproven = len(progress.agents), progress.unproven
    if not count:
        return lines
    if not unproven:
        said = Span(texts("stop.all_proven", count=count), "ok")
    elif progress.is_over:
        said = Span(texts("stop.over", count=len(unproven), seconds=progress.seconds), "error")
    else:
        said = Span(texts("stop.so_far", proven=count - len(unproven), count=count), "dim")
    lines.append([Span(" "), said])
    if unproven and progress.is_over:
        agents = [quote_word(each, "AGENT") for each in unproven]
        command = " ".join(["watchroom stop", place_word(progress.root), *agents, "--end"])
        lines += [
            [],
            [Span(" "), Span(texts("stop.end_them"), "dim")],
            [Span("   "), Span(sanitize(command))],
        ]
    return lines
