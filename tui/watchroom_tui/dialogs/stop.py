"""The proof for each agent that it has stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.policy.shown_commands import quote_word
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.base import LinesDialog
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span, align_cells, width_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word

_COLUMNS: Final = (Column(), Column(most=30), Column())


class StopState(NamedTuple):
    """The state of a stop of one agent. ``how``: the proof, or the reason why the proof is missing."""

    agent: str
    is_proven: bool
    how: str


class StopProgress(NamedTuple):
    """The progress of a stop of all agents.

    - ``agents``: the notified agents.
    - ``refused``: the reason why an agent could not be notified, by agent.
    - ``root``: the workspace's folder.
    - ``seconds``: the timeout for the proofs in seconds.
    - ``is_over``: whether the timeout has passed, or all agents have stopped.
    """

    agents: Sequence[StopState]
    refused: Mapping[str, str]
    root: str
    seconds: int
    is_over: bool = False

    @property
    def unproven(self) -> Sequence[str]:
        """The agents without proof that they have stopped."""
        return [each.agent for each in self.agents if not each.is_proven]


class StopDialog(LinesDialog):
    TITLE_KEY = "stop.stop_title"

    def __init__(self, progress: StopProgress) -> None:
        super().__init__()
        self._progress = progress

    def on_mount(self) -> None:
        self.show_progress(self._progress)

    def show_progress(self, progress: StopProgress) -> None:
        """Show ``progress``."""
        self._progress = progress
        self.show_lines(stop_lines(progress, self.dashboard.texts))


def stop_lines(progress: StopProgress, texts: Catalogue) -> list[Line]:
    """Return the displayed lines of ``progress``."""
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
    # The proof is not padded, because padding would break the proof into more lines.
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
