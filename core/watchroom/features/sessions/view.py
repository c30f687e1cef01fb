"""The sessions of agents and their requests to people, in the dashboard's model."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from watchroom.features.requests.rows import has_expired, request_state
from watchroom.features.sessions.client_process import RecordedProcess, read_process
from watchroom.features.sessions.rows import ATTACHMENT, presence_of, takes_over
from watchroom.kernel.rules.details import (
    get_int,
    get_list,
    get_text,
    request_kind,
    request_outcome,
    session_status,
)
from watchroom.model import STREAM, RequestKind, Row, SessionStatus

_KEPT: Final = 100
"""Maximum number of ended requests that are kept."""


class SessionView(NamedTuple):
    """A session of an agent.

    - ``begun``, ``last``: its first and its newest step.
    - ``streams``: the newest piece of the answer that its model is writing, None for none.
    - ``presence``: the lease of the process that ran it last, empty if unknown.
    - ``continued``: the newest row of a process that took it over, None if there is none.
    """

    begun: Row
    last: Row
    streams: Row | None = None
    presence: str = ""
    continued: Row | None = None

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
    def folder(self) -> str:
        """The folder in which a client began the session, empty if unknown."""
        return get_text(self.begun.detail, "cwd")

    @property
    def is_attached(self) -> bool:
        """Whether its client was started by a person. A hook or the service writes its steps, so their lease
        does not show whether the client is running."""
        return self.begun.detail.get(ATTACHMENT) == "attached"

    @property
    def attached_client(self) -> str:
        """The name of its client if a person started it, else empty. Only a person can start it again."""
        return get_text(self.begun.detail, "client") if self.is_attached else ""

    @property
    def client(self) -> RecordedProcess | None:
        """The process of its attached client, None if it is unknown."""
        rows = (each.detail for each in (self.continued, self.begun) if each is not None)
        found = (read_process(detail) for detail in rows if detail.get(ATTACHMENT) == "attached")
        return next((each for each in found if each is not None), None)

    @property
    def status(self) -> SessionStatus:
        return session_status(self.last)

    @property
    def title(self) -> str:
        """The beginning of the session's first message."""
        return self.begun.message


class RequestView(NamedTuple):
    """A request to people. ``ended``: the row of its answer or withdrawal, None while it is open."""

    row: Row
    ended: Row | None = None

    @property
    def id(self) -> int:
        """The row of the request. People use it to answer."""
        return self.row.seq

    @property
    def agent(self) -> str:
        return self.row.actor

    @property
    def session(self) -> str:
        """The path of the session that made the request."""
        return self.row.path.rpartition("/")[0]

    @property
    def kind(self) -> RequestKind:
        return request_kind(self.row)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of the calls that need approval."""
        return tuple(str(tool) for tool in get_list(self.row.detail, "tools"))

    @property
    def subjects(self) -> tuple[str, ...]:
        """One line about each call that needs approval."""
        return tuple(str(subject) for subject in get_list(self.row.detail, "subjects"))

    @property
    def expires(self) -> int | None:
        """The expiry time in nanoseconds since the epoch, None if the request does not expire."""
        return get_int(self.row.detail, "expires")

    @property
    def outcome(self) -> str:
        """The outcome in one word (`watchroom.features.requests.rows.answer_outcome`), empty while it is
        open."""
        return request_outcome(self.ended) if self.ended else ""

    @property
    def is_answered(self) -> bool:
        return request_state(self.ended) == "answered"

    def has_expired(self, now: int) -> bool:
        """Whether the request has expired at ``now`` (nanoseconds since the epoch)."""
        return has_expired(self.expires, now)


class SessionProjection:
    """The newest session of each agent."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """Attributes that a snapshot leaves out, each with its value after loading (see
    `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._newest: dict[str, SessionView] = {}

    def apply(self, row: Row) -> SessionView | None:
        """Apply ``row`` of a session. Return its session if that is the newest one of its agent, else
        None."""
        agent = row.path.partition("/")[0]
        known = self._newest.get(agent)
        if row.version == 1:
            view = SessionView(row, row, presence=presence_of(row))
        elif row.version is not None:
            same = known if known is not None and known.path == row.path else None
            begun, continued = (same.begun, same.continued) if same is not None else (row, None)
            view = SessionView(begun, row, presence=presence_of(row), continued=continued)
        elif known is None or known.path != row.path:
            return None
        elif row.tool == STREAM:
            view = known._replace(streams=row)
        elif takes_over(row):
            view = known._replace(presence=presence_of(row), continued=row)
        else:
            return None
        self._newest[agent] = view
        return view


class RequestProjection:
    """The open requests, and the newest of the ended requests."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ((), ())}
    """Attributes that a snapshot leaves out, each with its value after loading (see
    `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        # Ordered by row, so that `current` need not sort.
        self._open: dict[str, RequestView] = {}
        self._ended: deque[RequestView] = deque(maxlen=_KEPT)
        self._current: tuple[tuple[RequestView, ...], tuple[RequestView, ...]] = ((), ())
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row`` of a request."""
        if row.version == 1:
            self._open[row.path] = RequestView(row)
            self._changed = True
        elif row.version is not None and row.path in self._open:
            self._ended.append(self._open.pop(row.path)._replace(ended=row))
            self._changed = True

    def asked(self, path: str) -> Row | None:
        """Return the row of the open request at ``path``; None if there is none."""
        view = self._open.get(path)
        return view.row if view is not None else None

    def current(self) -> tuple[tuple[RequestView, ...], tuple[RequestView, ...]]:
        """Return the open and the ended requests, newest first. If none changed, the same objects are
        returned."""
        if self._changed:
            self._changed = False
            self._current = (tuple(reversed(self._open.values())), tuple(reversed(self._ended)))
        return self._current
