"""Work in the background that fails again and again in the same way is logged once."""

from __future__ import annotations

import time
from threading import Event

import pytest
from watchroom import Workspace


def test_the_same_failure_is_logged_once(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []
    is_done = Event()

    def fail(_: Event) -> None:
        runs.append(1)
        if len(runs) > 9:
            is_done.set()
        if len(runs) != 4:
            raise ValueError("first" if len(runs) < 7 else "second")

    workspace.background.repeat("own work", 0.01, fail)
    assert is_done.wait(10)
    time.sleep(0.05)
    found = [str(each.exc_info[1]) for each in caplog.records if each.exc_info and "own work" in each.message]
    # A run without an error is between the first two.
    assert found == ["first", "first", "second"]
