"""What a row would do to protected state, whoever made it."""

from __future__ import annotations

from rules.rows import row
from watchroom.features.people.rules import DECISION_TOOLS, effect_of
from watchroom.model import MESSAGE, PAUSE


def test_a_message_of_a_person_to_a_session_is_signed_where_a_key_is_unlocked() -> None:
    message = row(tool=MESSAGE, zone="session", actor="human:dana", path="alice")
    assert effect_of(message) == effect_of(message._replace(zone="agent")) == "message"
    assert effect_of(message._replace(zone="task")) is None
    assert effect_of(message._replace(tool=PAUSE)) == "pause"
    # What says that it comes from a person, and does not, has the same effect: it does not count.
    assert effect_of(message._replace(actor="alice")) == "message"
    assert MESSAGE not in DECISION_TOOLS
