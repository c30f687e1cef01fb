"""The header, the pane tabs and the footer of every screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip
from watchroom.projections import Model
from watchroom.projections.model import BUCKET_SECONDS, sparkline_counts

from watchroom_tui.actions import SCREENS, of_scope, offered, scopes_of
from watchroom_tui.columns import sparkline
from watchroom_tui.local_time import local_clock, local_time, utc_offset, zoned_time
from watchroom_tui.localization import now_of, texts_of
from watchroom_tui.styled_text import Line, Span, width_of
from watchroom_tui.widgets.line_widget import LineWidget

NAMED_FROM: Final = 110
"""From so many columns on, every screen is named in the footer."""


class Header(LineWidget):
    """Which workspace, how fresh, how busy, and how many things wait for a person."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self._model = Model()
        self._waiting = 0
        self._is_live = self._may_act = True
        self._progress = 1.0

    def on_mount(self) -> None:
        self.set_interval(1.0, self.refresh)

    def show(self, model: Model, waiting: int, *, is_live: bool, can_act: bool, progress: float) -> None:
        """``waiting``: how many things need a person now."""
        self._model, self._waiting, self._is_live, self._progress = model, waiting, is_live, progress
        self._may_act = can_act
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        right = self._right()
        left = self._left(width - cell_len(right.text) - 1)
        space = width - sum(cell_len(span.text) for span in left) - cell_len(right.text)
        return self.strip([*left, Span(" " * max(0, space)), right], width)

    def _left(self, width: int) -> Line:
        """As much as there is space for, the most important first."""
        texts, model = texts_of(self), self._model
        now = now_of(self)
        title = [Span(" watchroom ", "title"), Span(f" {self._place}  ", "strong")]
        if self._is_live:
            live = texts("header.live" if self._may_act else "header.view")
            mode = Span(f"● {live} {local_clock(now)}", "ok")
        else:
            mode = self._moment(width - width_of(title), now)
        groups: list[list[Span]] = [title, [mode]]
        if self._progress < 1:
            done = int(self._progress * 10)
            bar = f"  {'▰' * done}{'▱' * (10 - done)} {texts('header.reading')}"
            groups.append([Span(bar, "warning")])
        count = len(model.agents)
        agents = texts("header.agent") if count == 1 else texts("header.agents", count=count)
        groups.append([Span(f"  {agents}  ", "dim")])
        counts = sparkline_counts(model.activity, now)
        per_minute = sum(counts[-60 // BUCKET_SECONDS :])
        rate = Span(f" {texts('header.rate', count=per_minute)}", "dim")
        groups.append([Span(sparkline(counts, 12), "accent"), rate])
        spans: list[Span] = []
        for group in groups:
            if sum(cell_len(span.text) for span in (*spans, *group)) > width:
                break
            spans += group
        return spans

    def _moment(self, width: int, now: int) -> Span:
        """Which moment of the past is shown: its time as exactly as there is space for."""
        texts = texts_of(self)
        times = (
            f"{local_time(now)} {utc_offset(now)}",
            zoned_time(now),
            zoned_time(now, "minutes"),
            local_clock(now),
        )
        variants = [f"◷ {texts('header.past', row=self._model.seq, time=each)}" for each in times]
        return Span(next((each for each in variants if cell_len(each) <= width), variants[-1]), "warning")

    def _right(self) -> Span:
        texts = texts_of(self)
        if not self._waiting:
            return Span(f"✓ {texts('header.calm')} ", "ok")
        return Span(f" ⚑ {texts('header.needs', count=self._waiting)} ", "error")

    def on_click(self, event: events.Click) -> None:
        if event.x >= self.size.width - cell_len(self._right().text):
            # Later: what removes this widget's screen waits until the widget has done.
            self.app.call_later(self.app.run_action, "app.urgent", self.screen)


class PaneTabs(LineWidget):
    """The panes of a screen by name, where there is only space for one of them. Can be clicked."""

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
        width, left = self.size.width, self._left()
        line = [*spans, Span("tab ⇄", "key")]
        return self.strip(line, max(width + left, width_of(line))).crop(left, left + width)

    def _left(self) -> int:
        """How many cells are left out at the left, so that the tab in front shows whole."""
        end = sum(cell_len(name) + 3 for name in self._names[: self._front + 1])
        return max(0, end - self.size.width)

    def on_click(self, event: events.Click) -> None:
        start, at = 0, event.x + self._left()
        for index, name in enumerate(self._names):
            end = start + cell_len(name) + 3
            if start <= at < end:
                self.post_message(self.Chosen(index))
            start = end


_Entry: TypeAlias = tuple[str, str, str, str]
"""A key, its label, what it does, and the style of the label."""


class Footer(LineWidget):
    """The screens with their number keys, and the keys that matter here. All can be clicked."""

    def __init__(self, screen_name: str, *, can_act: bool) -> None:
        super().__init__()
        self._screen_name = screen_name
        self._may_act = can_act
        self._is_main_screen = any(name == screen_name for _, name in SCREENS)
        self._targets: list[tuple[int, int, str]] = []

    def render_line(self, y: int) -> Strip:
        texts = texts_of(self)
        width = self.size.width
        everywhere = [
            (action.shown_keys[0], action.label(texts), action.target, "dim")
            for action in of_scope("app")
            if action.footer and not self._is_written_in()
        ]
        offers: Callable[[str], bool] = getattr(self.screen, "offers", lambda _: True)
        here, ours = [], []
        for action in offered(self._may_act, *self._scopes()):
            if action.footer and offers(action.id):
                entry = (action.shown_keys[0], action.label(texts), action.target, "dim")
                here.append(entry)
                if action.scope != "list":
                    ours.append(entry)
        self._targets = []
        right_width = sum(_entry_width(key, label) for key, label, _, _ in everywhere)
        screens = self._screen_entries(width - right_width, ours)
        left, used = self._laid(screens, 0, width - right_width)
        if screens and not screens[-1][1]:
            # A key without its name must not seem to belong to what follows.
            left, used = [*left, Span(" ")], used + 1
        more, used = self._laid(here, used, width - right_width)
        left += more
        right, _ = self._laid(everywhere, width - right_width, width)
        return self.strip([*left, Span(" " * max(0, width - right_width - used)), *right], width)

    def _screen_entries(self, width: int, here: list[_Entry]) -> list[_Entry]:
        """The screens' keys, without the names of the others where these would leave no space for what can be
        done just here: ``here``, without what every list has."""
        texts = texts_of(self)
        named = [
            (
                key,
                texts(f"action.screen_{name}.label"),
                f"app.show_screen('{name}')",
                "strong" if name == self._screen_name else "dim",
            )
            for key, name in SCREENS
            if self._is_main_screen
        ]
        needed = sum(_entry_width(key, label) for key, label, _, _ in named + here)
        if self.size.width >= NAMED_FROM and needed <= width:
            return named
        return [each if each[3] == "strong" else (each[0], "", *each[2:]) for each in named]

    def _scopes(self) -> list[str]:
        """What the keys mean where the focus is."""
        mine = [] if self._is_written_in() else [self._screen_name]
        return [*mine, *scopes_of(self.screen.focused)]

    def _is_written_in(self) -> bool:
        """Whether the keys that have no other meaning write."""
        focused = self.screen.focused
        return focused is not None and focused.has_class("editor")

    def _laid(self, entries: list[_Entry], start: int, end: int) -> tuple[list[Span], int]:
        """The entries that fit between two columns, and the column after the last."""
        spans: list[Span] = []
        position = start
        for key, label, action, style in entries:
            width = _entry_width(key, label)
            if position + width > end:
                continue
            spans += [Span(f" {key}", "key"), Span(f" {label} " if label else "", style)]
            self._targets.append((position, position + width, action))
            position += width
        return spans, position

    def on_click(self, event: events.Click) -> None:
        for start, end, action in self._targets:
            if start <= event.x < end:
                self.app.call_later(self.app.run_action, action, self.screen)


def _entry_width(key: str, label: str) -> int:
    return cell_len(key) + cell_len(label) + (3 if label else 1)
