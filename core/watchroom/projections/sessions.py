"""The agents' sessions, and what they ask of people, as their rows tell."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from watchroom.model import STREAM, Row, SessionStatus
from watchroom.rules.details import get_int, get_list, request_kind, request_outcome, session_status
from watchroom.rules.presence import presence_of, takes_over
from watchroom.rules.requests import RequestKind, has_expired, request_state

_KEPT: Final = 100
"""So many requests are remembered when they have ended."""


class SessionView(NamedTuple):
    """A session of an agent. ``last`` is the row of its newest step, ``streams`` that of the newest piece of
    what its model is just saying, None if it says nothing. ``presence`` is the lease of the process that ran
    it last, empty where no row says."""

    begun: Row
    last: Row
    streams: Row | None = None
    presence: str = ""

    @property
    def path(self) -> str:
        return self.last.path

    @property
    def agent(self) -> str:
        return self.path.partition("/")[0]

    @property
    def id(self) -> str:
        return self.path.partition("/")[2]

    @property
    def status(self) -> SessionStatus:
        return session_status(self.last)

    @property
    def title(self) -> str:
        """What it is about: the beginning of the first message."""
        return self.begun.message


class RequestView(NamedTuple):
    """A request to a person. ``ended`` is the row of the answer or the withdrawal, None while it is open."""

    row: Row
    ended: Row | None = None

    @property
    def id(self) -> int:
        """The number by which it is answered."""
        return self.row.seq

    @property
    def agent(self) -> str:
        return self.row.actor

    @property
    def session(self) -> str:
        """The path of the session that asks."""
        return self.row.path.rpartition("/")[0]

    @property
    def kind(self) -> RequestKind:
        return request_kind(self.row)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it wants to call, if it asks for approval."""
        return tuple(str(tool) for tool in get_list(self.row.detail, "tools"))

    @property
    def subjects(self) -> tuple[str, ...]:
        """What each of these calls is about."""
        return tuple(str(subject) for subject in get_list(self.row.detail, "subjects"))

    @property
    def expires(self) -> int | None:
        """Nanoseconds since the epoch."""
        return get_int(self.row.detail, "expires")

    @property
    def outcome(self) -> str:
        """In one word, as `watchroom.rules.requests.answer_outcome` says it; empty while it is open."""
        return request_outcome(self.ended) if self.ended else ""

    @property
    def is_answered(self) -> bool:
        return request_state(self.ended) == "answered"

    def has_expired(self, now: int) -> bool:
        """Whether an answer at ``now`` (nanoseconds since the epoch) would come too late."""
        return has_expired(self.expires, now)


class SessionProjection:
    """The newest session of each agent."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        self._newest: dict[str, SessionView] = {}

    def apply(self, row: Row) -> SessionView | None:
        """Take in ``row``, one of the zone. Returns the session that it is of, None if it is of none that
        counts."""
        agent = row.path.partition("/")[0]
        known = self._newest.get(agent)
        if row.version == 1:
            view = SessionView(row, row, presence=presence_of(row))
        elif row.version is not None:
            is_known = known is not None and known.path == row.path
            view = SessionView(known.begun if known and is_known else row, row, presence=presence_of(row))
        elif known is None or known.path != row.path:
            return None
        elif row.tool == STREAM:
            view = known._replace(streams=row)
        elif takes_over(row):
            view = known._replace(presence=presence_of(row))
        else:
            return None
        self._newest[agent] = view
        return view


class RequestProjection:
    """The requests that are open, and the newest of those that have ended."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ((), ())}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        # In the order of asking, so that the newest first needs no sorting.
        self._open: dict[str, RequestView] = {}
        self._ended: deque[RequestView] = deque(maxlen=_KEPT)
        self._current: tuple[tuple[RequestView, ...], tuple[RequestView, ...]] = ((), ())
        self._changed = False

    def apply(self, row: Row) -> None:
        """Take in ``row``, one of the zone."""
        if row.version == 1:
            self._open[row.path] = RequestView(row)
            self._changed = True
        elif row.version is not None and row.path in self._open:
            self._ended.append(self._open.pop(row.path)._replace(ended=row))
            self._changed = True

    def asked(self, path: str) -> Row | None:
        """The row of the open request at ``path``, None where there is none."""
        view = self._open.get(path)
        return view.row if view is not None else None

    def current(self) -> tuple[tuple[RequestView, ...], tuple[RequestView, ...]]:
        """Those that are open and those that have ended, newest first; the same objects if none changed."""
        if self._changed:
            self._changed = False
            self._current = (tuple(reversed(self._open.values())), tuple(reversed(self._ended)))
        return self._current
