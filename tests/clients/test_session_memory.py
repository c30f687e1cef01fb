"""A client's session keeps nothing in memory of calls that have ended."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest
from watchroom import Workspace
from watchroom.agents.clients.events import CallFinished, CallStarted, ClientInfo
from watchroom.agents.clients.session import ClientSession

CALLS = 300
ARGUMENTS = '{"content": "' + "x" * 20_000 + '"}'
MOST_BYTES = 1_000_000
"""That the calls may leave behind: 300 of them have 6 MB of arguments."""


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def make(session: ClientSession, number: int) -> str:
    """Make a call that ends; return the line of its result."""
    session.record(CallStarted(f"call-{number}", f"Write{number}", ARGUMENTS))
    row = session.record(CallFinished(f"call-{number}", "ok"))
    assert row is not None
    return row.message


def test_finished_calls_are_forgotten(workspace: Workspace, traced: None) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    for number in range(20):
        make(session, number)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(20, 20 + CALLS):
        assert f"Write{number}" in make(session, number)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < MOST_BYTES


def test_so_are_calls_that_never_end(workspace: Workspace, traced: None) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    for number in range(150):
        session.record(CallStarted(f"open-{number}", "Write", ARGUMENTS + str(number)))
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(150, 150 + CALLS):
        session.record(CallStarted(f"open-{number}", "Write", ARGUMENTS + str(number)))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < MOST_BYTES
