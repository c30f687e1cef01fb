"""Pauses agents that go in circles, by a row that says why."""

from __future__ import annotations

from watchroom.journal.topics import messages_to
from watchroom.model import PAUSE, SYSTEM, Json, Note, Row
from watchroom.rules.breaker import BREAKER, Breaker, BreakerSettings, Trip
from watchroom.texts import catalogue
from watchroom.zones.store import Store


class AgentBreaker:
    """Watches the rows of all agents in ``store``. One thread calls it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._breaker = Breaker()
        self._settings: BreakerSettings | None = None
        """None where they may have changed."""

    def watch(self, row: Row) -> None:
        """Take in ``row``, the next one, and pause its agent where it goes in circles: once until a person
        says something to it, however many processes watch. Raises `JournalError`."""
        if self._settings is None or row.kind != "agent":
            # No agent changes settings, and most rows are of agents.
            self._settings = self._store.registry.current().breaker
        trip = self._breaker.apply(row, self._settings)
        if trip is not None:
            self._pause(trip)

    def _pause(self, trip: Trip) -> None:
        # Not what was said since: a person who has answered this circle is not asked again by one that lags.
        topic = messages_to("session", trip.agent)
        said = next(iter(self._store.journal.topic(topic, until=trip.row, limit=1)), None)
        texts = catalogue(self._store.registry.current().language)
        detail: dict[str, Json] = {BREAKER: trip.kind, "count": trip.times, "row": trip.row}
        note = Note(
            *(SYSTEM, PAUSE, "agent", trip.agent),
            message=texts(f"breaker.{trip.kind}", count=trip.times, subject=trip.subject)[:200],
            detail=detail,
            key=f"{BREAKER} {trip.agent} {trip.kind} {said.seq if said is not None else 0}",
        )
        self._store.commits.commit(note)
