"""A merge in a real terminal, of a short file and of long ones: ``python benchmarks/merging.py``.

A key is answered when the last byte has come of what it changes in the text on the screen; the opening is
over when a region's texts and the way to decide it stand there as they stay.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import NamedTuple

from measure import Measure, Rounds, middle, percentile, ratio, scratch, table
from timed_terminal import Predicate, Terminal
from watchroom import Workspace

_WATCHROOM = [sys.executable, "-c", "import sys; from watchroom_tui.cli import main; sys.exit(main())"]
_FILE = "report.md"
_KINDS = ("conflict", "current", "conflict", "incoming", "conflict")
"""Which sides change the regions, in turn."""
_ESCAPE = "\x1b[27u"
"""As terminals with the kitty protocol send it: after a bare one Textual waits 100 ms for what may follow."""
_SCROLLBARS = dict.fromkeys(map(ord, "▁▂▃▄▅▆▇█"), " ")
_OPENING, _AGAIN = "opening, the first time", "opening, again"


class Size(NamedTuple):
    lines: int
    regions: int

    @property
    def name(self) -> str:
        return f"{self.lines:,} lines"


SHORT, LONG, _LONGEST = _SIZES = (Size(100, 10), Size(10_000, 200), Size(100_000, 2_000))


class Key(NamedTuple):
    """A key, and what stands on the screen once it is answered (None: anything else than before)."""

    name: str
    typed: str
    shown: Predicate | None = None


def _has(text: str) -> Predicate:
    return lambda lines: any(text in line for line in lines)


def _has_not(text: str) -> Predicate:
    return lambda lines: not any(text in line for line in lines)


_TEXT, _CHOOSE = "as it comes in, 0", "choose:"
_EDITING, _CHANGES, _WHOLE_FILE, _ASKED = "write freely", "@@ −", "for the whole file", "Whole file ─"
_PREVIOUS, _UNDO = Key("[", "["), Key("u", "u")
_KEYS = (
    *(Key(each, each) for each in ("c", "i", "b", "x", "]")),
    _PREVIOUS,
    _UNDO,
    Key("ctrl+r", "\x12"),
    Key("A", "A", _has(_WHOLE_FILE)),
    Key("c after A", "c", _has(_ASKED)),
    Key("enter", "\r", lambda lines: _has_not(_ASKED)(lines) and _has_not(_WHOLE_FILE)(lines)),
    Key("e", "e", _has(_EDITING)),
    Key("a letter in the editor", "z"),
    Key("esc out of the editor", _ESCAPE, _has_not(_EDITING)),
    Key("G", "G"),
    Key("g", "g"),
    Key("down", "\x1b[B"),
    Key("page down", "\x1b[6~"),
    Key("d", "d", _has(_CHANGES)),
    Key("esc out of the preview", _ESCAPE, _has_not(_CHANGES)),
)
_STEPS = 6
"""So many of them can be undone then."""


def measure(rounds: int = 5, passes: int = 2) -> list[Measure]:
    taken: dict[Size, Rounds] = {size: {} for size in _SIZES}
    for turn in range(rounds):
        order = _SIZES[turn % len(_SIZES) :] + _SIZES[: turn % len(_SIZES)]
        # Made anew: after five minutes the agents need a person too, and ! goes to them in turn.
        with scratch() as folder:
            for size in _SIZES:
                build(os.path.join(folder, size.name), size)
            for size, seconds in merged(folder, order, passes).items():
                for name, each in seconds.items():
                    taken[size].setdefault(name, []).append(each)
    return [
        *(_line(taken, name, 500 if name in (_OPENING, _AGAIN) else 50) for name in taken[LONG]),
        _slowest(taken[_LONGEST]),
    ]


def build(root: str, size: Size) -> None:
    """A workspace in which the regions of one file wait: conflicts, and what one side changed alone."""
    base, current, incoming = make_texts(size)
    with Workspace.open(root, agents=["analyst", "writer"], scan=False) as workspace:
        for agent, text, expected in (("writer", base, 0), ("writer", current, 1), ("analyst", incoming, 1)):
            answer = workspace.tools(agent).dispatch_tool_call(
                "collab_write",
                {
                    "filepath": _FILE,
                    "content": text,
                    "message": "a long text",
                    "expected_version": expected,
                },
            )
            if not answer["success"] and not answer.get("is_conflict"):
                raise RuntimeError(f"a write failed: {answer['message']}")


def make_texts(size: Size) -> tuple[str, str, str]:
    """The base, and what two sides made of it."""
    base = [
        [f"line {n} of the report, about as long as a line of text mostly is\n"] for n in range(size.lines)
    ]
    current, incoming = base.copy(), base.copy()
    apart = size.lines // size.regions
    for region in range(size.regions):
        at = region * apart + apart // 2
        # From one line to three, in the place of one.
        count = region % 3 + 1
        kind = _KINDS[region % len(_KINDS)]
        if kind != "incoming":
            current[at] = [f"line {at} as it stands, {n} of the report\n" for n in range(count)]
        if kind != "current":
            incoming[at] = [f"line {at} as it comes in, {n} of the report\n" for n in range(count)]
    return _joined(base), _joined(current), _joined(incoming)


def _joined(parts: list[list[str]]) -> str:
    return "".join(line for part in parts for line in part)


def merged(folder: str, sizes: tuple[Size, ...], passes: int) -> dict[Size, dict[str, list[float]]]:
    """The seconds that each key took, in a dashboard for each size; they take turns at every key."""
    with ExitStack() as stack:
        dashboards = {
            size: TimedDashboard(
                stack.enter_context(Terminal([*_WATCHROOM, "open", os.path.join(folder, size.name)]))
            )
            for size in sizes
        }
        for dashboard in dashboards.values():
            dashboard.start()
        for name in (_OPENING, _AGAIN):
            for dashboard in dashboards.values():
                dashboard.open_merge(name)
        for _ in range(passes):
            for key in (*_KEYS, *[_UNDO] * _STEPS):
                for dashboard in dashboards.values():
                    dashboard.press(key)
            for dashboard in dashboards.values():
                dashboard.go_to_first()
        return {size: dashboard.seconds for size, dashboard in dashboards.items()}


class TimedDashboard:
    """A person at one terminal, and how long each of their keys took."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.seconds: dict[str, list[float]] = {}

    def start(self) -> None:
        self._terminal.wait_for(_has(_FILE), timeout=30)
        self._terminal.settle(1)

    def open_merge(self, name: str) -> None:
        """Open the merge from the overview; before that, leave it if it is open."""
        if self.seconds:
            self.press(Key("esc out of the merge", _ESCAPE, _has_not(_CHOOSE)), count=False)
            self.press(Key("overview", "1", _has("Needs you")), count=False)
        self.press(Key(name, "!", lambda lines: _has(_TEXT)(lines) and _has(_CHOOSE)(lines)))

    def go_to_first(self) -> None:
        """The way back to where the keys began."""
        while not _has("region 1 of")(self._terminal.screen()):
            self.press(_PREVIOUS)

    def press(self, key: Key, *, count: bool = True) -> None:
        before = _text(self._terminal.screen())
        sent = self._terminal.send(key.typed)
        answered = self._terminal.wait_until_stable(
            key.shown or (lambda lines: _text(lines) != before), _text, timeout=30
        )
        if count:
            self.seconds.setdefault(key.name, []).append(answered - sent)


def _text(lines: list[str]) -> list[str]:
    """The screen without its clock, which is in the first line, and without scrollbars, which Textual moves
    a frame after the text."""
    return [line.translate(_SCROLLBARS) for line in lines[1:]]


def _line(taken: dict[Size, Rounds], name: str, goal: float) -> Measure:
    """The long file's figures, and in the remark those of the others."""
    short, long, longest = (taken[size][name] for size in _SIZES)
    return Measure(
        f"merge, {LONG.name}, {LONG.regions} regions: {name}, p95",
        _high(long),
        "ms",
        goal,
        remark=f"p50 {_middle(long)}, {ratio(long, short):.2g} × {SHORT.name} ({_middle(short)},"
        f" p95 {_high(short):.0f}); {_LONGEST.name}: p50 {_middle(longest)}, p95 {_high(longest):.0f},"
        f" {ratio(longest, short):.2g} ×",
    )


def _slowest(rounds: Rounds) -> Measure:
    keys = {name: _high(each) for name, each in rounds.items() if name not in (_OPENING, _AGAIN)}
    name = max(keys, key=keys.__getitem__)
    return Measure(
        f"merge, {_LONGEST.name}, {_LONGEST.regions:,} regions: its slowest key, p95",
        keys[name],
        "ms",
        remark=name,
    )


def _middle(rounds: list[list[float]]) -> str:
    return f"{middle(rounds) * 1e3:.0f}"


def _high(rounds: list[list[float]]) -> float:
    return percentile([seconds for each in rounds for seconds in each], 95) * 1e3


if __name__ == "__main__":
    print(table(measure()))
