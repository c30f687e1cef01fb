"""The header, the pane tabs and the footer of every screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip
from watchroom.features.overview.model import Model, Need, SealView
from watchroom.features.trees.view import find_home
from watchroom.kernel.rules.activity import BUCKET_SECONDS, sparkline_counts

from watchroom_tui.context import Outage, dashboard_of
from watchroom_tui.formatters.columns import fit_path, sparkline
from watchroom_tui.formatters.labels import cost_text
from watchroom_tui.formatters.local_time import local_clock, local_time, start_of_day, utc_offset, zoned_time
from watchroom_tui.formatters.machines import RemoteNeed
from watchroom_tui.formatters.need_texts import need_kind
from watchroom_tui.formatters.needs import is_soon, need_party, time_left
from watchroom_tui.formatters.styled_text import Line, Span, width_of
from watchroom_tui.formatters.tree_changes import branch_text
from watchroom_tui.keys.actions import SCREENS, Action, is_possible, of_scope, offered, scopes_of
from watchroom_tui.keys.keymap import shown_pair
from watchroom_tui.presentation.localization import keymap_of, now_of, texts_of
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.line_widget import LineWidget

PARTY_WIDTHS: Final = (24, 18, 14)
"""Maximum number of cells for the name in the next need: with much, less and little space."""
BRANCH_WIDTH: Final = 24
"""Maximum number of cells for the name of the branch."""
SEPARATOR: Final = " │"
SWITCH: Final = "tab ⇄"
"""The key to the next pane, after the names of the panes."""
NAMES_FROM: Final = 100
"""Minimum number of columns to show the names of other screens. Narrower footers show more keys of the
current screen instead."""
SEAL: Final = "▣"
SEAL_FROM: Final = 120
"""Minimum number of columns to show the newest seal."""
MORE: Final = " …"
"""The sign for keys that do not fit."""


class Header(LineWidget):
    """The line at the top: workspace, state and time, number of agents, rate, number of needs, and the next
    need."""

    def __init__(self, place: str, folder: str = "") -> None:
        """Create a header that shows the branch of ``folder``, the folder in which the dashboard was
        started."""
        super().__init__()
        self._place = place
        self._folder = folder
        self._model = Model()
        self._needs: Sequence[Need] = ()
        self._next: Need | RemoteNeed | None = None
        self._remote_needs = 0
        self._is_live = self._may_act = True
        self._progress = 1.0
        self._outage: Outage | None = None
        self._polls_files = False

    def show(
        self,
        model: Model,
        needs: Sequence[Need],
        next_need: Need | RemoteNeed | None,
        *,
        remote_needs: int,
        is_live: bool,
        can_act: bool,
        progress: float,
        outage: Outage | None = None,
        polls_files: bool = False,
    ) -> None:
        """Update the header.

        - ``model``: the model to show.
        - ``needs``: the needs that wait for a person now.
        - ``next_need``: the need that the key for the next need opens.
        - ``remote_needs``: the number of needs of other machines.
        - ``is_live``: whether the present is shown.
        - ``can_act``: whether the person can act.
        - ``progress``: the share of the journal that was read, from 0 to 1.
        - ``outage``: the current outage, None if there is none.
        - ``polls_files``: whether external edits are found by polling.
        """
        self._outage, self._polls_files = outage, polls_files
        self._model, self._is_live, self._progress = model, is_live, progress
        self._needs, self._next, self._may_act = needs, next_need, can_act
        self._remote_needs = remote_needs
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        left, right = self._fitting(width)
        space = width - width_of(left) - width_of(right)
        return self.strip([*left, Span(" " * max(0, space)), *right], width)

    def _fitting(self, width: int) -> tuple[Line, Line]:
        """Return the left and the right part that fit into ``width``. The number of agents takes precedence
        over the next need, and the next need over the rate."""
        rights = self._rights()
        lefts = self._lefts(width - width_of(rights[-1]))
        for right in rights:
            for left in lefts[: -1 if right is not rights[-1] else None]:
                if width_of(left) + width_of(right) <= width:
                    return left, right
        return lefts[-1], rights[-1]

    def _lefts(self, width: int) -> list[Line]:
        """Return the variants of the left part, longest first. The last variant fits into ``width`` if any
        variant fits."""
        texts, model, now = texts_of(self), self._model, now_of(self)
        start = [Span(" watchroom ", "title"), Span(f" {self._place}  ", "strong")]
        branch = self._branch()
        if width_of(branch) + width_of(start) + cell_len(texts("header.live")) + 2 <= width:
            start += branch
        clock = Span("")
        if self._outage is not None:
            out = texts(f"header.outage_{self._outage.of}", time=local_clock(self._outage.since))
            start.append(Span(f"◌ {out}", "error"))
        elif self._is_live:
            start.append(Span(f"● {texts('header.live' if self._may_act else 'header.view')}", "ok"))
            clock = Span(f" {local_clock(now)}", "ok")
        else:
            start = self._with_moment(start, width, now)
        if self._progress < 1:
            done = int(self._progress * 10)
            bar = f"  {'▰' * done}{'▱' * (10 - done)} {texts('header.reading')}"
            start.append(Span(bar, "warning"))
        count = len(model.agents)
        named = texts("header.agent") if count == 1 else texts("header.agents", count=count)
        agents = Span(f"  {named}  ", "dim")
        polled = [Span(f"  {texts('header.polling')}", "warning")] if self._polls_files else []
        counts = sparkline_counts(model.activity, now)
        per_minute = sum(counts[-60 // BUCKET_SECONDS :])
        busy = [
            Span(sparkline(counts, 12), "accent"),
            Span(f" {texts('header.rate', count=per_minute)}  ", "dim"),
        ]
        cost = self._cost(now)
        return [
            [*start, clock, *polled, agents, *cost, *busy],
            [*start, clock, *polled, agents, *cost],
            [*start, clock, *polled, agents],
            [*start, *polled, agents],
            [*start, *polled],
        ]

    def _branch(self) -> Line:
        """Return the branch of the working tree that contains the folder, empty outside of repositories."""
        tree = find_home(self._model.trees, self._folder)
        return (
            []
            if tree is None
            else [Span(f"{fit_path(branch_text(tree), BRANCH_WIDTH).rstrip()}  ", "accent")]
        )

    def _cost(self, now: int) -> Line:
        """Return the cost of the team today, empty if there is no cost."""
        used = self._model.usage.since(start_of_day(now))
        if not used.cost:
            return []
        return [Span(f"{texts_of(self)('header.cost', cost=cost_text(used))}  ", "dim")]

    def _with_moment(self, start: list[Span], width: int, now: int) -> list[Span]:
        """Return ``start`` with the past moment, as precisely as it fits. That nothing can be changed takes
        precedence over the name of the workspace."""
        texts, clock, row = texts_of(self), local_clock(now), f"{self._model.seq:,}"
        times = (f"{local_time(now)} {utc_offset(now)}", zoned_time(now, "minutes"), clock, clock[:5])
        sentences = [(start, texts("header.past", time=each, row=row)) for each in times]
        variants = [
            *sentences,
            (start[:1], sentences[-1][1]),
            (start, texts("header.past_row", time=clock, row=row)),
            (start, texts("header.past_time", time=clock)),
        ]
        lines = [[*before, Span(f" {text} ", "past")] for before, text in variants]
        return next((each for each in lines if width_of(each) <= width), lines[-1])

    def _rights(self) -> list[Line]:
        """Return the variants of the right part, longest first."""
        texts, now, need = texts_of(self), now_of(self), self._next
        number = len(self._needs) + self._remote_needs
        if not number or need is None:
            if self._outage is not None:
                return [[]]
            return [[Span(f"✓ {texts('header.calm')} ", "ok")]]
        key = "header.needs" if number > 1 else "header.need"
        count = Span(f" ⚑ {texts(key, count=number)} ", "error")
        if isinstance(need, RemoteNeed):
            party, kind = need.party, sanitize(need.need.kind)
        else:
            party, kind = need_party(need, texts).text, need_kind(need, texts)
        long, middle, short = (fit_path(party, width).strip() for width in PARTY_WIDTHS)
        left = time_left(need, now)
        until = f", {texts('needs.left', time=left)}" if left else ""
        style = "error" if is_soon(need, now) else "key"
        named = (
            f"{kind} {long}{until}",
            f"{long}{until}",
            f"{middle}{until}",
            middle,
            short,
        )
        return [*([count, Span(f" {texts('header.next', what=each)} ", style)] for each in named), [count]]

    def on_click(self, event: events.Click) -> None:
        if event.x >= self.size.width - width_of(self._fitting(self.size.width)[1]):
            # Deferred, because removing this widget's screen waits for its event handlers.
            self.app.call_later(self.app.run_action, "app.urgent", self.screen)


class PaneTabs(LineWidget):
    """The names of the panes of a screen that has space for only one of them. Clickable."""

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
            spans.append(Span(" " * self._gap))
        width, left = self.size.width, self._left()
        line = [*spans, Span(SWITCH, "key")] if len(self._names) > 1 else spans
        return self.strip(line, max(width + left, width_of(line))).crop(left, left + width)

    @property
    def _gap(self) -> int:
        """The number of blank cells between two tabs."""
        return int(self._end_of(len(self._names), 1) + cell_len(SWITCH) <= self.size.width)

    def _end_of(self, count: int, gap: int) -> int:
        """Return the number of cells of the first ``count`` tabs with ``gap`` blank cells after each."""
        return sum(cell_len(name) + 2 + gap for name in self._names[:count])

    def _left(self) -> int:
        """Return the number of cells to cut at the left to make the front tab visible."""
        return max(0, self._end_of(self._front + 1, self._gap) - self.size.width)

    def on_click(self, event: events.Click) -> None:
        start, at = 0, event.x + self._left()
        for index, name in enumerate(self._names):
            end = start + cell_len(name) + 2 + self._gap
            if start <= at < end:
                self.post_message(self.Chosen(index))
            start = end


class _Entry(NamedTuple):
    """A key with its label, and the action of a click on it."""

    key: str
    label: str
    target: str
    style: str = "dim"
    before: str = " "
    after: str = " "
    """The text after the label."""

    @property
    def spans(self) -> Line:
        if not self.label:
            return [Span(f" {self.key}", "key")]
        return [Span(f" {self.key}", "key"), Span(f"{self.before}{self.label}{self.after}", self.style)]


class Footer(LineWidget):
    """The line at the bottom: the screens with their number keys, and the keys of the current screen. All are
    clickable. The newest seal of the journal is shown if there is space."""

    def __init__(self, screen_name: str) -> None:
        super().__init__()
        self._screen_name = screen_name
        self._is_main_screen = any(name == screen_name for _, name in SCREENS)
        self._targets: list[tuple[int, int, str]] = []
        self._seal: SealView | None = None
        self._drawn: tuple[tuple[object, ...], Strip] | None = None

    def show_seal(self, seal: SealView | None) -> None:
        """Show ``seal``, the newest seal of the journal."""
        if seal != self._seal:
            self._seal = seal
            self.refresh()

    def _is_as_painted(self) -> bool:
        # The possible actions depend on state that sends no event when it changes.
        return False

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn = None

    def render_line(self, y: int) -> Strip:
        here, width = self._screen_entries(), self.size.width
        look = (here, width, self._seal, self._is_editing())
        if self._drawn is None or self._drawn[0] != look:
            self._drawn = (look, self._draw(here, width))
        return self._drawn[1]

    def _draw(self, here: Sequence[_Entry], width: int) -> Strip:
        everywhere = [self._entry(action) for action in of_scope("app") if action.footer]
        if self._is_editing():
            everywhere = []
        screens, everywhere = self._fitting(here, everywhere, width)
        self._targets = []
        left, used = self._fitting_entries(screens, 0, width)
        if screens:
            left, used = [*left, Span(SEPARATOR, "dim")], used + len(SEPARATOR)
        end = width - _width(everywhere)
        more, used = self._fitting_entries(here, used, end)
        right, _ = self._fitting_entries(everywhere, end, width)
        mark = self._seal_mark(end - used)
        space = max(0, end - used - width_of(mark))
        return self.strip([*left, *more, Span(" " * space), *mark, *right], width)

    def _seal_mark(self, width: int) -> Line:
        """Return the number of sealed rows and their root, for comparison. Leave out parts that do not fit
        into ``width``."""
        seal = self._seal
        if seal is None or self.size.width < SEAL_FROM:
            return []
        texts = texts_of(self)
        named = (
            texts("footer.sealed_rows", count=seal.size, root=seal.root),
            texts("footer.sealed", root=seal.root),
            seal.root,
        )
        variants = ([Span(f"  {SEAL} {text}", "dim")] for text in named)
        return next((each for each in variants if width_of(each) <= width), [])

    def _fitting(
        self, here: Sequence[_Entry], everywhere: list[_Entry], width: int
    ) -> tuple[list[_Entry], list[_Entry]]:
        """Return the entries for the screens and for the global keys.

        Keys of this screen take precedence over the names of other screens. An overlay leaves out screens
        that would take too much of its space.
        """
        bare = [entry._replace(label="") for entry in everywhere]
        variants = [
            (self._screens("label"), everywhere),
            (self._screens("short"), everywhere),
            (self._screens("short"), bare),
            (self._screens("short", is_tight=True), bare),
        ]
        mark = width_of(self._seal_mark(width))
        for screens, keys in variants[:2] if mark else ():
            # Short names of screens make space for the newest checkpoint.
            if _width(screens) + len(SEPARATOR) + _width(here) + mark + _width(keys) <= width:
                return screens, keys
        if width < NAMES_FROM:
            variants += [(self._numbers(), everywhere), (self._numbers(), bare)]
        for screens, keys in variants:
            free = width - (_width(screens) + len(SEPARATOR) + _width(here) + _width(keys))
            if free >= 0:
                return self._with_names(screens, free), keys
        return (screens, keys) if self._is_main_screen else ([], everywhere)

    def _screens(self, length: str, *, is_tight: bool = False) -> list[_Entry]:
        texts = texts_of(self)
        if self._is_editing():
            return []
        return [
            _Entry(
                key,
                texts(f"action.screen_{name}.{length}"),
                f"app.show_screen('{name}')",
                "strong" if name == self._screen_name else "dim",
                "" if is_tight else " ",
                "",
            )
            for key, name in SCREENS
        ]

    def _numbers(self) -> list[_Entry]:
        """Return the screens by key only, except for the current one."""
        entries = self._screens("short")
        return [each if each.style == "strong" else each._replace(label="") for each in entries]

    def _with_names(self, screens: list[_Entry], free: int) -> list[_Entry]:
        """Return ``screens`` with the names of the first screens that fit into ``free`` more cells."""
        shown = list(screens)
        for at, (entry, named) in enumerate(zip(screens, self._screens("short"), strict=True)):
            if entry.label:
                continue
            free -= width_of(named.spans) - width_of(entry.spans)
            if free < 0:
                break
            shown[at] = named
        return shown

    def _screen_entries(self) -> list[_Entry]:
        """Return the actions of the focused pane and the screen, then of every list. Add the way back if the
        pane and the screen have no actions."""
        keymap = keymap_of(self)
        possible = [
            action
            for action in offered(dashboard_of(self).can_act, *self._scopes())
            if is_possible(action, self.screen)
        ]
        focused = self.screen.focused
        is_empty = isinstance(focused, ItemList) and not focused.items and not focused.sought
        # The open timeline takes its keys from all other actions.
        taken = {key for action in possible if action.scope == "timeline" for key in action.keys_in(keymap)}
        actions = [
            action
            for action in possible
            if action.footer
            and (action.scope == "timeline" or taken.isdisjoint(action.keys_in(keymap)))
            and not (is_empty and action.id == "filter")
        ]
        ours = [action for action in actions if action.scope not in ("list", "view")]
        ours.sort(key=lambda action: action.scope not in scopes_of(focused))
        back = [] if ours else [action for action in of_scope("app") if action.id == "back"]
        shared = [action for action in actions if action not in ours]
        shared.sort(key=lambda action: action.meaning != "open")
        return [self._entry(action) for action in (*ours, *shared, *back)]

    def _entry(self, action: Action) -> _Entry:
        front = dashboard_of(self).base_screen
        label = front.label_of(action) if front is not None else action.label(texts_of(self))
        return _Entry(shown_pair(action, keymap_of(self)), label, action.target)

    def _scopes(self) -> list[str]:
        """Return the scopes of the focused widget's keys."""
        mine = [] if self._is_editing() else [self._screen_name]
        replay = ["timeline"] if dashboard_of(self).timeline is not None else []
        return [*replay, *mine, *scopes_of(self.screen.focused)]

    def _is_editing(self) -> bool:
        """Return whether an editor has the focus, so that most keys type text."""
        focused = self.screen.focused
        return focused is not None and focused.has_class("editor")

    def _fitting_entries(self, entries: Sequence[_Entry], start: int, end: int) -> tuple[list[Span], int]:
        """Return the entries that fit between columns ``start`` and ``end``, and the column after the last
        entry."""
        spans: list[Span] = []
        position = start
        for index, entry in enumerate(entries):
            width = width_of(entry.spans)
            is_last = index == len(entries) - 1
            if position + width + (0 if is_last else len(MORE)) > end:
                spans.append(Span(MORE, "dim"))
                return spans, position + len(MORE)
            spans += entry.spans
            self._targets.append((position, position + width, entry.target))
            position += width
        return spans, position

    def on_click(self, event: events.Click) -> None:
        for start, end, action in self._targets:
            if start <= event.x < end:
                self.app.call_later(self.app.run_action, action, self.screen)


def _width(entries: Sequence[_Entry]) -> int:
    return sum(width_of(entry.spans) for entry in entries)
