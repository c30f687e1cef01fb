"""Whom a row wakes."""

from __future__ import annotations

import pytest
from rules.test_breaker import row
from watchroom.features.sessions.rules import row_address, task_address
from watchroom.model import END_TASK, MESSAGE, RESUME, Row

ANN = "human:ann"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (row(RESUME, "session", "alice/s1", actor=ANN), "alice/s1"),
        (row("call_llm", "session", "alice/s1", actor=ANN, version=2), None),
        (row("call_llm", "session", "alice/s1"), None),
        (row("collab_write", "collab", "plan.md", actor=ANN, version=1), None),
        (row(END_TASK, "task", "t1", actor=ANN, version=2), task_address("t1")),
        (row(MESSAGE, "agent", "bob", actor=ANN), "bob"),
        (row(MESSAGE, "agent", "bob", actor=ANN, outcome="failed"), None),
    ],
)
def test_a_row_of_a_person_is_for_the_session_the_agent_or_the_task_that_it_names(
    given: Row, address: str | None
) -> None:
    assert row_address(given) == address
