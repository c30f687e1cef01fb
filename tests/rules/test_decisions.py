"""Which rows are words of people, which count only with a signature where the workspace is closed."""

from __future__ import annotations

from rules.rows import row
from watchroom.model import MESSAGE, PAUSE
from watchroom.rules.decisions import is_decision, is_word


def test_a_word_is_a_message_of_a_person_to_a_session() -> None:
    word = row(tool=MESSAGE, zone="session", actor="human:dana", path="alice")
    assert is_word(word)
    for other in (
        word._replace(zone="agent"),
        word._replace(zone="task"),
        word._replace(tool=PAUSE),
        word._replace(actor="alice"),
    ):
        assert not is_word(other)
    assert not is_decision(word)
