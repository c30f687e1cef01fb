"""Background work: batched by key, and in the order in which it is due."""

from __future__ import annotations

from contextlib import closing
from threading import Event

from watchroom.follower import Follower

LONG = 3600.0


def test_work_that_is_due_earlier_does_not_wait_for_work_that_is_due_later() -> None:
    with closing(Follower("test")) as follower:
        done: list[str] = []
        is_done = Event()

        def soon() -> None:
            done.append("soon")
            is_done.set()

        follower.schedule("late", lambda: done.append("late"), LONG)
        follower.schedule("soon", soon, 0.0)
        assert is_done.wait(20)
        assert done == ["soon"]
    assert done == ["soon", "late"], "closing runs what is scheduled"


def test_requests_with_one_key_are_one_run() -> None:
    with closing(Follower("test")) as follower:
        done: list[int] = []
        for number in range(100):
            follower.schedule("files", lambda number=number: done.append(number), LONG)  # type: ignore[misc]
        follower.flush()
        assert done == [0]
        follower.schedule("files", lambda: done.append(100), LONG)
        follower.flush()
        assert done == [0, 100]
