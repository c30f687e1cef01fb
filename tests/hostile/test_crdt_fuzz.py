"""What comes from a broken or wicked replica is refused in words and changes nothing, or it is taken over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom.crdt import Text
from watchroom.errors import InvalidState

ALICE = "alice#a1"


@settings(max_examples=200, deadline=None)
@given(moment=st.binary(max_size=12))
def test_a_moment_that_never_was_is_refused(moment: bytes) -> None:
    text = Text()
    text.insert(0, "hello", ALICE)
    if moment in (b"\0", text.moment()):
        return
    before = text.state()
    with pytest.raises(InvalidState):
        text.copy(moment)
    with pytest.raises(InvalidState):
        text.copy().go_to(moment)
    assert text.state() == before
    assert text.insert(0, "x", ALICE).position == 0
