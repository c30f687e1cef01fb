"""The frame of every screen: one header line, one footer line."""

from __future__ import annotations

from time import time_ns

from rich.cells import cell_len
from textual import events
from textual.strip import Strip
from watchroom.model import timestamp
from watchroom.projections import Model
from watchroom.projections.model import BUCKET_SECONDS, sparkline_counts

from watchroom_tui.actions import ROOMS, Action, of_scope
from watchroom_tui.columns import sparkline
from watchroom_tui.widgets.spans import Drawn, Line, Span
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


class Footer(Drawn):
    """The rooms with their number keys, and the keys that matter here. All can be clicked."""

    def __init__(self, room: str) -> None:
        super().__init__()
        self._room = room
        self._targets: list[tuple[int, int, str]] = []

    def render_line(self, y: int) -> Strip:
        words = words_of(self)
        spans: list[Span] = []
        self._targets = []
        position = 0

        def add(key: str, label: str, action: str, style: str) -> None:
            nonlocal position
            pieces = [Span(f" {key}", "key"), Span(f" {label} ", style)]
            width = sum(cell_len(piece.text) for piece in pieces)
            if position + width > self.size.width:
                return
            spans.extend(pieces)
            self._targets.append((position, position + width, action))
            position += width

        for key, room in ROOMS:
            style = "strong" if room == self._room else "dim"
            add(key, words(f"action.room_{room}.label"), f"app.room('{room}')", style)
        for action in self._actions():
            add(action.shown_keys[0], action.label(words), _target(action), "dim")
        return self.strip(spans, self.size.width)

    def _actions(self) -> list[Action]:
        own = [action for action in of_scope(*_scopes(self._room)) if action.footer]
        return [*own, *(action for action in of_scope("app") if action.footer)]

    async def on_click(self, event: events.Click) -> None:
        for start, end, action in self._targets:
            if start <= event.x < end:
                await self.app.run_action(action, self.screen)


def _scopes(room: str) -> tuple[str, ...]:
    return (room, "list")


def _target(action: Action) -> str:
    if action.scope == "app":
        return f"app.{action.name}"
    return f"focused.{action.name}" if action.scope == "list" else f"screen.{action.name}"
