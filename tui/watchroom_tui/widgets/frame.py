"""The frame of every screen: one header line, one footer line."""

from __future__ import annotations

from time import time_ns

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip
from watchroom.model import timestamp
from watchroom.projections import Model
from watchroom.projections.model import BUCKET_SECONDS, sparkline_counts

from watchroom_tui.actions import ROOMS, Action, of_scope
from watchroom_tui.columns import sparkline
from watchroom_tui.spans import Line, Span
from watchroom_tui.widgets.drawn import Drawn
from watchroom_tui.wording import words_of


class Header(Drawn):
    """Which workspace, how fresh, how busy, and how many things wait for a person."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self._model = Model()
        self._is_live = True
        self._progress = 1.0

    def show(self, model: Model, *, is_live: bool, progress: float) -> None:
        self._model, self._is_live, self._progress = model, is_live, progress
        self.refresh()

    def render_line(self, y: int) -> Strip:
        left, right = self._left(), self._right()
        width = self.size.width
        space = width - sum(cell_len(span.text) for span in (*left, *right))
        if space < 1:
            return self.strip([*left], width)
        return self.strip([*left, Span(" " * space), *right], width)

    def _left(self) -> Line:
        words, model = words_of(self), self._model
        now = time_ns() if self._is_live else model.time
        clock = timestamp(model.time)[11:19] if model.time else "–"
        mode = (
            Span(f"● {words('header.live')} {clock}", "ok")
            if self._is_live
            else Span(f"◷ {clock}", "warning")
        )
        counts = sparkline_counts(model.activity, now, 12)
        spans = [Span(" watchroom ", "title"), Span(f" {self._place}  ", "strong"), mode]
        spans.append(Span(f"  {words('header.agents', count=len(model.agents))}  ", "dim"))
        spans.append(Span(sparkline(counts, 6), "accent"))
        per_minute = sum(counts[-60 // BUCKET_SECONDS :])
        spans.append(Span(f" {words('header.rate', count=per_minute)}", "dim"))
        if self._progress < 1:
            done = int(self._progress * 10)
            spans.append(Span(f"  {'▰' * done}{'▱' * (10 - done)} {words('header.reading')}", "warning"))
        return spans

    def _right(self) -> Line:
        words, count = words_of(self), len(self._model.needs)
        if not count:
            return [Span(f"✓ {words('header.calm')} ", "ok")]
        return [Span(f" ⚑ {words('header.needs', count=count)} ", "error")]


class PaneTabs(Drawn):
    """The panes of a room by name, where there is only space for one of them. Can be clicked."""

    class Chosen(Message):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._front = 0

    def show(self, names: list[str], front: int) -> None:
        if (names, front) != (self._names, self._front):
            self._names, self._front = names, front
            self.refresh()

    def render_line(self, y: int) -> Strip:
        spans: list[Span] = []
        for index, name in enumerate(self._names):
            spans.append(Span(f" {name} ", "cursor" if index == self._front else "dim"))
            spans.append(Span(" "))
        return self.strip([*spans, Span("tab ⇄", "key")], self.size.width)

    def on_click(self, event: events.Click) -> None:
        start = 0
        for index, name in enumerate(self._names):
            end = start + cell_len(name) + 3
            if start <= event.x < end:
                self.post_message(self.Chosen(index))
            start = end


class Footer(Drawn):
    """The rooms with their number keys, and the keys that matter here. All can be clicked."""

    def __init__(self, room: str) -> None:
        super().__init__()
        self._room = room
        self._targets: list[tuple[int, int, str]] = []

    def render_line(self, y: int) -> Strip:
        words = words_of(self)
        width = self.size.width
        everywhere = [
            (action.shown_keys[0], action.label(words), _target(action), "dim")
            for action in of_scope("app")
            if action.footer
        ]
        rooms = [
            (
                key,
                words(f"action.room_{room}.label"),
                f"app.room('{room}')",
                "strong" if room == self._room else "dim",
            )
            for key, room in ROOMS
        ]
        here = [
            (action.shown_keys[0], action.label(words), _target(action), "dim")
            for action in of_scope(self._room, "list")
            if action.footer
        ]
        self._targets = []
        right_width = sum(cell_len(key) + cell_len(label) + 3 for key, label, _, _ in everywhere)
        left, used = self._laid(rooms + here, 0, width - right_width)
        right, _ = self._laid(everywhere, width - right_width, width)
        return self.strip([*left, Span(" " * max(0, width - right_width - used)), *right], width)

    def _laid(self, entries: list[tuple[str, str, str, str]], start: int, end: int) -> tuple[list[Span], int]:
        """The entries that fit between two columns, and the column after the last."""
        spans: list[Span] = []
        position = start
        for key, label, action, style in entries:
            width = cell_len(key) + cell_len(label) + 3
            if position + width > end:
                continue
            spans += [Span(f" {key}", "key"), Span(f" {label} ", style)]
            self._targets.append((position, position + width, action))
            position += width
        return spans, position

    async def on_click(self, event: events.Click) -> None:
        for start, end, action in self._targets:
            if start <= event.x < end:
                await self.app.run_action(action, self.screen)


def _target(action: Action) -> str:
    if action.scope == "app":
        return f"app.{action.name}"
    return f"focused.{action.name}" if action.scope == "list" else f"screen.{action.name}"
