"""The usage over time as a bar chart, by quarter of an hour, hour or day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from textual.strip import Strip
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.view import SLOT_SECONDS, UsageView, sum_usage

from watchroom_tui.formatters.bar_chart import Bar, draw_bars
from watchroom_tui.formatters.labels import cost_text, format_count
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.localization import now_of, texts_of
from watchroom_tui.widgets.line_widget import LineWidget, content


class _Unit(NamedTuple):
    """The period of a bar.

    - ``bars``: the number of bars in the chart.
    - ``span``: the length of the period.
    - ``label``: the format of the bars' labels, as in `strftime`.
    """

    name: str
    bars: int
    span: timedelta
    label: str


_UNITS: Final = (
    _Unit("quarters", 24, timedelta(minutes=15), "%H:%M"),
    _Unit("hours", 24, timedelta(hours=1), "%H"),
    _Unit("days", 31, timedelta(days=1), "%d"),
)


class UsageChart(LineWidget):
    """The cost of each period as a bar, or the tokens if no cost is known. The shortest period is
    used whose bars reach back to the oldest usage, at most a day."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, classes="frame")
        self._slots: Mapping[int, UsageTotal] = {}
        self._drawn: object = None

    def show(self, usage: UsageView) -> None:
        """Show ``usage`` until the current time."""
        state = (usage.slots, now_of(self) // (SLOT_SECONDS * 1_000_000_000))
        if state != self._drawn:
            self._drawn, self._slots = state, usage.slots
            self._retitle()
            self.refresh()

    @property
    def _unit(self) -> _Unit:
        oldest = min(self._slots, default=None)
        past = timedelta(seconds=now_of(self) / 1e9 - oldest * SLOT_SECONDS if oldest is not None else 0)
        return next((unit for unit in _UNITS if past < unit.bars * unit.span), _UNITS[-1])

    @property
    def _has_prices(self) -> bool:
        return any(used.cost for used in self._slots.values())

    def _retitle(self) -> None:
        texts = texts_of(self)
        what = texts("usage.chart.cost" if self._has_prices else "usage.chart.tokens")
        when = texts(f"usage.chart.{self._unit.name}")
        self.border_title = content(f"{what} {when}")

    def render_line(self, y: int) -> Strip:
        size = self.content_area
        bars = self._bars()
        if not any(bar.value for bar in bars):
            line = [Span(" " + texts_of(self)("empty.usage"), "dim")] if y == 0 else []
            return self.strip(line, size.width)
        lines = draw_bars(bars, size.width, size.height, self._format_value)
        return self.strip(lines[y] if y < len(lines) else [], size.width)

    def _format_value(self, value: float) -> str:
        return cost_text(UsageTotal(cost=value)) if self._has_prices else format_count(round(value))

    def _bars(self) -> list[Bar]:
        unit, has_prices = self._unit, self._has_prices
        grouped: dict[datetime, list[UsageTotal]] = defaultdict(list)
        for slot, used in self._slots.items():
            grouped[_start(slot * SLOT_SECONDS, unit)].append(used)
        newest = _start(now_of(self) / 1e9, unit)
        bars = []
        for back in range(unit.bars - 1, -1, -1):
            at = newest - back * unit.span
            total = sum_usage(grouped.get(at, ()))
            bars.append(Bar(total.cost if has_prices else float(total.tokens), f"{at:{unit.label}}"))
        return bars


def _start(time: float, unit: _Unit) -> datetime:
    """Return the start of the quarter of an hour, hour or day that contains ``time``, as a naive local time.
    ``time``: seconds since the epoch."""
    moment = datetime.fromtimestamp(time, UTC).astimezone()
    hour = moment.hour if unit.span < timedelta(days=1) else 0
    minute = moment.minute - moment.minute % 15 if unit.span < timedelta(hours=1) else 0
    return moment.replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=None)
