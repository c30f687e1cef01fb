"""How long to wait before a model is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.features.sessions.runtime.models import RetryPolicy

NOON = 1_445_412_480.0
"""Wed, 21 Oct 2015 07:28:00 GMT."""
POLICY = RetryPolicy(base=0.5, longest=20.0, jitter=lambda: 1.0, now=lambda: NOON)


def test_each_wait_is_twice_as_long_up_to_a_bound() -> None:
    assert [POLICY.wait(failures) for failures in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 20, 20]


def test_agents_that_failed_together_come_back_apart() -> None:
    assert [POLICY._replace(jitter=lambda: 0.0).wait(failures) for failures in (1, 2)] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", 7),
        (" 1.5 ", 1.5),
        ("0", 0),
        ("3600", 20),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10),
        ("Wed, 21 Oct 2015 07:28:10 -0000", 10),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
        ("Fri, 31 Dec 2055 23:59:59 GMT", 20),
    ],
)
def test_a_server_gets_the_time_that_it_asks_for_within_the_bound(retry_after: str, seconds: float) -> None:
    assert POLICY._replace(jitter=lambda: 0.0).wait(1, retry_after) == seconds
    assert POLICY.wait(1, retry_after) == seconds + 0.5


@pytest.mark.parametrize("retry_after", ["", "soon", "-1", "nan", "inf", "1e9", "٣", "99 Foo 2015"])
def test_what_names_no_time_is_passed_over(retry_after: str) -> None:
    assert POLICY.wait(1, retry_after) == 0.5


@given(st.integers(1, 10_000), st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ Jan \d+ \d+:\d+:\d+ .*"))
def test_no_wait_is_longer_than_the_bound_and_its_jitter(failures: int, retry_after: str) -> None:
    assert 0 <= POLICY.wait(failures, retry_after) <= 20.5
