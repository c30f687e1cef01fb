"""A buffer whose row the disk has damaged keeps no other one from being opened."""

from __future__ import annotations

from pathlib import Path

from calls import ok, refused
from damage import break_text
from watchroom import Toolbox


def test_one_that_is_damaged_keeps_no_other_from_being_opened(root: Path, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    break_text(root, "alice/plan", 1, "detail", b"{}", zone="buffer")
    assert ok(alice, "open_buffer", source="collab", path="other.md")["buffer"] == "other"
    answer = refused(alice, "open_buffer", source="collab", path="notes.md", name="plan")
    assert answer["error"] == "journal_damaged"
