"""The list of open buffers with their state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final

from rich.cells import cell_len
from watchroom.projections import BufferView
from watchroom.projections.buffers import BufferState

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.columns import fit, fit_path, format_age
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.localization import now_of, texts_of
from watchroom_tui.sanitize import sanitize
from watchroom_tui.theme import agent_class
from watchroom_tui.widgets.line_list import LineList

MARKS: Final[Mapping[BufferState, Span]] = {
    "synced": Span("✓", "ok"),
    "unwritten": Span("✎", "accent"),
    "behind": Span("↓", "warning"),
    "apart": Span("⚔", "error"),
}
"""How a buffer stands to its source."""
CHOICE_MARK: Final = Span("◐", "warning")
"""Before a buffer whose agent has to choose between places."""


class BufferList(LineList[BufferView]):
    """Open buffers, by agent and name."""

    SHOWS_AGENT = True

    def item_key(self, item: BufferView) -> Hashable:
        return item.path

    def render_key(self, item: BufferView) -> Hashable:
        return (item.row.seq, item.newest, self.age_of(item.row))

    def line(self, item: BufferView, width: int) -> Line:
        texts = texts_of(self)
        mark = CHOICE_MARK if item.waits_for_choice else MARKS[item.state]
        states = [*(texts(f"buffers.state.{state}") for state in MARKS), texts("buffers.choose")]
        state_width = max(map(cell_len, states)) + 1
        name_width = min(24, max(8, width // 4))
        agent_width = min(14, width // 6) if self.SHOWS_AGENT else 0
        rest = max(0, width - agent_width - name_width - state_width - 10)
        source = sanitize(source_of(item))
        state = texts("buffers.choose") if item.waits_for_choice else texts(f"buffers.state.{item.state}")
        return [
            Span(" "),
            mark,
            Span(
                " " + fit(sanitize(item.agent), agent_width - 1) + " " * bool(agent_width),
                agent_class(item.agent),
            ),
            Span(fit(sanitize(item.name), name_width) + " "),
            Span(fit(state, state_width), mark.style),
            Span(fit_path(source, rest), "dim"),
            Span(fit(format_age(item.row.time, now_of(self)), 6, "right"), "dim"),
        ]

    def item_text(self, item: BufferView) -> str:
        return f"{item.agent} {item.name} {source_of(item)}"

    def copy_text(self, item: BufferView) -> str:
        return item.path


class OwnBufferList(BufferList):
    """Those of one agent."""

    SHOWS_AGENT = False


def source_of(view: BufferView) -> str:
    """What the buffer is of: a board and a file of the agent's own are marked, which a shared file may be
    called as well. Not safe yet."""
    marks = {"board": f"{labels.BOARD_MARK} ", "private": "~/"}
    return f"{marks.get(view.record.zone, '')}{view.source_path}"
