"""Alerts to a person who looks elsewhere: each need once, several together, at a limited rate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from watchroom import Row
from watchroom.features.overview.model import Need
from watchroom_tui.formatters.need_texts import alert_text
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services.alert_policy import (
    DELAY_SECONDS,
    INTERVAL_SECONDS,
    MODES,
    Identity,
    initial_state,
    next_alerts,
    next_mode,
)
from watchroom_tui.services.terminal_alerts import MAX_CHARACTERS, alert_sequence


def need(since: int, *, path: str = "plan.md", actor: str = "bob", times: int = 1) -> Need:
    row = Row(since, 0, actor, "collab_write", "collab", path, None, 1, "conflict", "", "", "", 0, "")
    return Need("conflict", f"{path} {actor}", row, "alice", times, since)


# Moments in seconds since the one before, with the needs at that time.
moments = st.lists(st.tuples(st.floats(0, 12), st.frozensets(st.integers(1, 8))), min_size=1, max_size=30)

Told = list[tuple[float, tuple[Need, ...]]]


def told(first: frozenset[int], then: Sequence[tuple[float, frozenset[int]]]) -> Told:
    alerts: Told = []
    watch, now = initial_state([need(each) for each in sorted(first)]), 0.0
    for pause, pressing in then:
        now += pause
        # The same write may be refused again at any moment.
        watch, alert = next_alerts(
            watch, [need(each, times=len(alerts) + 1) for each in sorted(pressing)], now
        )
        if alert:
            alerts.append((now, alert))
    return alerts


def identities(alerts: Told) -> list[Identity]:
    return [each.identity for _, alert in alerts for each in alert]


@given(st.frozensets(st.integers(1, 8)), moments)
def test_no_need_is_announced_twice_or_if_it_waited_from_the_start(
    first: frozenset[int], then: list[tuple[float, frozenset[int]]]
) -> None:
    told_of = identities(told(first, then))
    assert len(told_of) == len(set(told_of))
    assert not {need(each).identity for each in first} & set(told_of)


@given(st.frozensets(st.integers(1, 8)), moments)
def test_every_waiting_need_is_announced(
    first: frozenset[int], then: list[tuple[float, frozenset[int]]]
) -> None:
    last = then[-1][1]
    waiting = [(DELAY_SECONDS, last), (INTERVAL_SECONDS, last), (INTERVAL_SECONDS, last)]
    assert {need(each).identity for each in last - first} <= set(identities(told(first, [*then, *waiting])))


@given(st.frozensets(st.integers(1, 8)), moments)
def test_alerts_keep_their_interval(first: frozenset[int], then: list[tuple[float, frozenset[int]]]) -> None:
    times = [at for at, _ in told(first, then)]
    assert all(later - earlier >= INTERVAL_SECONDS for earlier, later in pairwise(times))


@given(moments)
def test_only_needs_that_wait_at_that_moment_are_announced(then: list[tuple[float, frozenset[int]]]) -> None:
    seen: dict[float, set[Identity]] = {}
    now = 0.0
    for pause, pressing in then:
        now += pause
        seen[now] = {need(each).identity for each in pressing} | seen.get(now, set())
    for at, alert in told(frozenset(), then):
        assert {each.identity for each in alert} <= seen[at]


def test_a_need_that_ends_at_once_is_not_announced() -> None:
    assert told(frozenset(), [(0, frozenset({1})), (DELAY_SECONDS, frozenset()), (100, frozenset())]) == []


def test_several_at_once_are_one_alert() -> None:
    ((_, alert),) = told(frozenset(), [(0, frozenset({1, 2})), (DELAY_SECONDS, frozenset({1, 2, 3}))])
    assert len(alert) == 3


def test_needs_within_the_interval_are_announced_together() -> None:
    one, more = frozenset({1}), frozenset({1, 2, 3})
    alerts = told(
        frozenset(),
        [(0, one), (DELAY_SECONDS, one), (1, more), (DELAY_SECONDS, more), (INTERVAL_SECONDS, more)],
    )
    assert [len(alert) for _, alert in alerts] == [1, 2]
    assert alerts[1][0] - alerts[0][0] >= INTERVAL_SECONDS


def test_the_key_goes_through_all_modes_and_back() -> None:
    mode, seen = MODES[0], []
    for _ in MODES:
        seen.append(mode)
        mode = next_mode(mode)
    assert mode == MODES[0]
    assert set(seen) == {"off", "bell", "desktop", "both"}


# -- texts


def test_one_thing_is_named_and_several_are_counted() -> None:
    words = load_texts("en")
    assert alert_text([need(1)], words) == "bob and alice both changed plan.md"
    two = "2 items need you: bob and alice both changed plan.md · bob and alice both changed b.md"
    assert alert_text([need(1), need(2, path="b.md")], words) == two
    assert alert_text([need(each) for each in range(9)], words).endswith(" · …")


# -- terminal sequences

NOTICE: Final = re.compile(
    "\x1b\\](?:9;([^\x07\x1b\x9c]*)|777;notify;([^;\x07\x1b\x9c]*);([^;\x07\x1b\x9c]*))\x1b\\\\"
)
hostile = st.text(
    st.one_of(st.characters(exclude_categories=()), st.sampled_from("\x07\x1b\x9c\x9d\x9b;\\]\r\n\u202e"))
)


@given(hostile, hostile, st.sampled_from(["bell", "desktop", "both"]))
@example("x\x07", "a\x1b\\\x1b]0;OWNED\x07", "both")
@example("x;y", ";b;c\x9c", "desktop")
def test_no_text_gets_out_of_the_sequence(title: str, text: str, mode: str) -> None:
    written = alert_sequence("both" if mode == "both" else "desktop", title, text, {})
    bell, rest = written[: written.startswith("\a")], written[written.startswith("\a") :]
    assert bell == ("\a" if mode == "both" else "")
    assert NOTICE.sub("", rest) == "", "two sequences and nothing between or behind them"
    assert len(NOTICE.findall(rest)) == 2
    for fields in NOTICE.findall(rest):
        for field in fields:
            assert sanitize(field) == field
            assert len(field) <= 2 * MAX_CHARACTERS + 2
            assert ";" not in field


def codes(environ: dict[str, str]) -> list[str]:
    return re.findall("\x1b\\](\\d+);", alert_sequence("desktop", "t", "x", environ))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-256color"}, ["9", "777"]),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, ["9"]),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, ["9"]),
        ({"TERM": "xterm-kitty"}, ["777"]),
        ({"TERM": "tmux-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1"}, ["777"]),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, ["777"]),
        ({"TERM": "foot"}, ["777"]),
        ({"TERM": "rxvt-unicode-256color"}, ["777"]),
    ],
)
def test_a_terminal_that_takes_both_sequences_gets_one(environ: dict[str, str], expected: list[str]) -> None:
    assert codes(environ) == expected


def test_tmux_gets_the_notification_wrapped_and_the_bell_as_it_is() -> None:
    written = alert_sequence("both", "t", "x", {"TMUX": "x", "TERM": "xterm-kitty"})
    assert written == "\a\x1bPtmux;\x1b\x1b]777;notify;t;x\x1b\x1b\\\x1b\\"


def test_off_is_silent_and_bell_is_one_byte() -> None:
    assert alert_sequence("off", "t", "x", {}) == ""
    assert alert_sequence("bell", "t", "x", {}) == "\a"
