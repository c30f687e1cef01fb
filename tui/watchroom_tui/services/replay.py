"""The part of the dashboard that shows earlier moments: the time line, its keys, and what it shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from textual import on
from textual.message import Message
from watchroom.features.overview.model import Model
from watchroom.features.overview.timeline import find_marker, find_neighbour

from watchroom_tui.context import RangeTarget, TimelineState, dashboard_of
from watchroom_tui.keys.actions import bindings
from watchroom_tui.services.notice import NoticeApp
from watchroom_tui.widgets.timeline_bar import TimelineBar

if TYPE_CHECKING:
    from watchroom_tui.context import Dashboard
    from watchroom_tui.services.timeline_feed import Moment, TimelineFeed, Wish

SPEEDS: Final = (1, 2, 5, 10, 30, 60, 120, 300, 600)
_WHILE_OPEN: Final = frozenset(
    {
        "step_row",
        "step_marker",
        "toggle_playing",
        "change_speed",
        "mark_moment",
        "revert_since",
        "write_report",
    }
)


class MomentChanged(Message):
    """The feed of the time line has an earlier moment to show."""

    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self.moment = moment


class ReplayApp(NoticeApp):
    """An app over a journal that can show any earlier moment of it."""

    BINDINGS = bindings("timeline")
    model: Model
    newest_model: Model
    """What the present shows, or the moment at which the dashboard was opened."""
    progress: float
    _timeline_feed: TimelineFeed | None = None
    _is_timeline_open = False
    _replayed: int | None = None
    """The row whose moment is shown; None shows the newest."""
    _is_playing = False
    _speed = 0
    _marked: int | None = None

    @property
    def timeline(self) -> TimelineState | None:
        """The time line, None where it is not open."""
        if not self._is_timeline_open:
            return None
        return TimelineState(
            self.newest_model.timeline, self._replayed, self._is_playing, SPEEDS[self._speed], self._marked
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _WHILE_OPEN or action == "toggle_timeline":
            shown = self._dashboard.base_screen
            in_front: object = shown
            # A merge is an act: there is nothing of it in the past.
            if in_front is not self.screen or shown is None or shown.SCREEN_NAME == "merge":
                return False
            return self._is_timeline_open or action == "toggle_timeline"
        return super().check_action(action, parameters)

    @property
    def _dashboard(self) -> Dashboard:
        return dashboard_of(self)

    def action_toggle_timeline(self) -> None:
        """Open the time line, or close it and show the present."""
        if self.leave_timeline():
            return
        if self.progress < 1:
            self.show_message(self._dashboard.texts("timeline.reading"), "warning")
            return
        self._is_timeline_open = True
        self._dashboard.show_model()

    def leave_timeline(self) -> bool:
        """Close the time line, and show the newest moment; False if it is not open."""
        if not self._is_timeline_open:
            return False
        self._is_timeline_open = False
        self._marked = None
        self._go_live()
        return True

    def _go_live(self) -> None:
        if self._timeline_feed is not None:
            self._timeline_feed.leave()
        self._replayed, self._is_playing = None, False
        self.model = self.newest_model
        self._dashboard.show_model()

    @property
    def _feed_of_moments(self) -> TimelineFeed:
        if self._timeline_feed is None:
            from watchroom_tui.services.timeline_feed import TimelineFeed

            until = None if self._dashboard.is_live else self.newest_model.seq
            self._timeline_feed = TimelineFeed(
                self._dashboard.journal,
                lambda moment: self._from_timeline(MomentChanged(moment)),
                until=until,
            )
        return self._timeline_feed

    def _from_timeline(self, message: MomentChanged) -> None:
        self.post_message(message)

    def on_moment_changed(self, message: MomentChanged) -> None:
        moment = message.moment
        if moment.visit != self._feed_of_moments.visit or not self._is_timeline_open:
            return
        if moment.has_ended:
            # It has caught up with the present.
            self._go_live()
            return
        self.model, self._replayed = moment.model, moment.seq
        self._dashboard.show_model()

    def _go(self, wish: Wish, *, is_dragging: bool = False) -> None:
        start = self.newest_model.seq if self._replayed is None else None
        feed = self._feed_of_moments
        if start is not None:
            # From now on nothing can be changed, though the earlier moment is still to come.
            self._replayed = start
        feed.go(wish, start=start, is_dragging=is_dragging)

    def _within(self, seq: int | None) -> int | None:
        """``seq``, where it is not after what can be shown."""
        return seq if seq is None or seq <= self.newest_model.seq else None

    def action_step_row(self, step: int) -> None:
        """To the next row, or the one before."""
        if step < 0 or self._replayed is not None:
            journal = self._dashboard.journal
            self._go(lambda seq: self._within(find_neighbour(journal, seq, step)))

    def action_step_marker(self, step: int) -> None:
        """To the next marker, or the one before."""
        if step < 0 or self._replayed is not None:
            journal, timeline = self._dashboard.journal, self.newest_model.timeline
            self._go(lambda seq: find_marker(journal, timeline, seq, step))

    def action_toggle_playing(self) -> None:
        """Play from the moment that is shown, from the first row where that is the newest; or stop."""
        feed = self._feed_of_moments
        if self._is_playing:
            self._is_playing = False
            feed.play(None)
        else:
            if self._replayed in (None, self.newest_model.seq):
                self._go(self._first)
            self._is_playing = True
            feed.play(SPEEDS[self._speed])
        self._dashboard.show_model()

    def _first(self, _: int) -> int | None:
        return find_neighbour(self._dashboard.journal, 0, 1)

    def action_change_speed(self, step: int) -> None:
        """Play quicker, or slower."""
        self._speed = max(0, min(len(SPEEDS) - 1, self._speed + step))
        if self._is_playing:
            self._feed_of_moments.play(SPEEDS[self._speed])
        self._dashboard.show_model()

    async def action_mark_moment(self) -> None:
        """Mark the moment that is shown; a second time, compare the marked one with it."""
        seq = self.newest_model.seq if self._replayed is None else self._replayed
        marked, self._marked = self._marked, seq
        if marked is not None and marked != seq:
            self._marked = None
            target = RangeTarget(min(marked, seq), max(marked, seq))
            await self._dashboard.navigator.go_to("compare", target)
        self._dashboard.show_model()

    def action_revert_since(self) -> None:
        """Back to the present, and show what taking back changes that all agents did since the moment."""
        # The dialog is loaded with its first use.
        from watchroom_tui.dialogs.revert import RevertSubject, ask_to_revert

        ask_to_revert(self._dashboard, RevertSubject())

    def action_write_report(self) -> None:
        """Write down what happened from the marked moment, or the beginning, up to the one that is shown."""
        from watchroom_tui.services.report_writing import write_report

        app = self._dashboard
        seq = self.newest_model.seq if self._replayed is None else self._replayed
        after = min(self._marked or 0, seq)
        until = max(self._marked or 0, seq)
        app.open_editor(partial(write_report, app, after, until))

    @on(TimelineBar.SeekRequested)
    def seek_moment(self, event: TimelineBar.SeekRequested) -> None:
        """To where the mouse points."""
        seq = event.seq
        if self._is_playing:
            self._is_playing = False
            self._feed_of_moments.play(None)
        self._go(lambda _: seq, is_dragging=event.is_dragging)

    def stop_timeline(self) -> None:
        """Stop the thread of the time line, if there is one; to be called off the event loop."""
        if self._timeline_feed is not None:
            self._timeline_feed.stop()
