"""A call asks the journal little: each statement is a round trip where the journal is on a server."""

from __future__ import annotations

import statements


def test_calls_ask_the_journal_no_more_than_they_may() -> None:
    assert [each for each in statements.measure() if each.met is False] == []
