"""Events: each row of the journal as one typed JSON object, for scripts.

An event is derived from its row, so reading the journal again gives the same events. ``docs/events.md``
describes the protocol. Increase `PROTOCOL` if an existing kind or field gets another meaning; new kinds and
fields are compatible.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.errors import ConfigInvalid, JournalDamaged, JournalError
from watchroom.features.alerts.rows import parse_message
from watchroom.features.boards import rows as boards
from watchroom.features.buffers import rows as buffers
from watchroom.features.checks.rows import read_begin, read_end
from watchroom.features.config.registry import REGISTER
from watchroom.features.config.rows import parse_recorded_config
from watchroom.features.documents import rows as documents
from watchroom.features.handoffs import rows as handoffs
from watchroom.features.needs.damage import find_damage
from watchroom.features.overview.timeline import is_reading
from watchroom.features.people import rows as people
from watchroom.features.people.decisions import WRONG_FORM, takes_effect
from watchroom.features.people.rules import STOPPED_PATH, effect_of
from watchroom.features.people.service import PeopleReader
from watchroom.features.people.tokens import ZONE as TOKENS
from watchroom.features.policy.breaker import BREAKER, is_trip
from watchroom.features.requests.rows import request_state
from watchroom.features.reverts.planning import ZONE as REVERTS
from watchroom.features.sessions.rows import (
    AT_RESET,
    HANDED_OVER,
    WHEN,
    client_call,
    is_leave,
    messages_of,
    parking_of,
)
from watchroom.features.sessions.rules import stopped_by
from watchroom.features.sessions.service import TOOL_BEGINS
from watchroom.features.sessions.service import ZONE as SESSIONS
from watchroom.features.sessions.view import RequestView
from watchroom.features.tasks.rows import AGENT, COMMAND, TASK, is_spawn, is_termination, spawned_agent
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.conflicts import named_conflicts
from watchroom.kernel.rules.details import (
    BufferDetail,
    CommandDetail,
    DocumentEdit,
    StepDetail,
    get_count,
    get_int,
    get_text,
    lease_end,
    met_version,
    output_stream,
    request_number,
    request_outcome,
    task_end_status,
)
from watchroom.kernel.zones import ZONES
from watchroom.model import (
    BEGIN_CHECK,
    BUDGET_REACHED,
    BUDGET_WARNING,
    CANCEL,
    CHECKPOINT,
    END_CHECK,
    LOST,
    MACHINE,
    MESSAGE,
    OUTSIDE,
    PAUSE,
    PRINTED,
    RELEASE_AGENTS,
    RESUME,
    SEND_ALERT,
    STREAM,
    SYSTEM,
    Json,
    Row,
    Zone,
    outcome_of,
    timestamp,
)

PROTOCOL: Final = 1
MAX_TEXT: Final = 4096
"""Maximum bytes of UTF-8 of a text in an event, and of a list as JSON. Longer values are left out."""
HELLO: Final = "hello"
"""The kind of the first line, which has no row."""
EventKind: TypeAlias = Literal[
    "file_written",
    "file_deleted",
    "write_refused",
    "external_edit",
    "conflict_settled",
    "work_reverted",
    "handoff_delivered",
    "handoff_withdrawn",
    "handoff_read",
    "handoff_acknowledged",
    "document_created",
    "document_changed",
    "board_changed",
    "board_locked",
    "board_unlocked",
    "buffer_changed",
    "read",
    "session_started",
    "session_status",
    "text_streamed",
    "call_started",
    "call_finished",
    "call_refused",
    "call_failed",
    "request_opened",
    "request_answered",
    "request_withdrawn",
    "request_expired",
    "message_sent",
    "messages_delivered",
    "paused",
    "resumed",
    "resume_permitted",
    "stopped",
    "agent_registered",
    "agent_spawned",
    "agent_ended",
    "task_started",
    "task_ended",
    "command_started",
    "command_output",
    "command_ended",
    "budget_warning",
    "budget_reached",
    "check_begun",
    "check_ended",
    "settings_changed",
    "person_enrolled",
    "person_revoked",
    "token_made",
    "token_revoked",
    "process_lost",
    "need_seen",
    "alert",
    "journal_sealed",
    "forged",
    "damaged",
    "other",
]
KINDS: Final[tuple[EventKind, ...]] = get_args(EventKind)
_Found: TypeAlias = "tuple[EventKind, dict[str, Json]]"
_CONFIG: Final[tuple[Zone, ...]] = ("config", "settings")
_MAX_BATCH: Final = 500
_log = logging.getLogger("watchroom")


class Event(NamedTuple):
    """The event of ``row``. ``fields``: the fields of its kind, besides the row's columns."""

    row: Row
    kind: EventKind
    fields: Mapping[str, Json]

    def as_json(self) -> dict[str, Json]:
        """Return the event as ``docs/events.md`` describes it, without empty fields."""
        row = self.row
        columns: dict[str, Json] = {
            "row": row.seq,
            "time": row.timestamp,
            "kind": self.kind,
            "actor": row.actor,
            "agent": _agent_of(row),
            "tool": row.tool,
            "zone": row.zone,
            "path": row.path,
            "version": row.version,
            "base": row.base,
            "outcome": "" if outcome_of(row) == "ok" else outcome_of(row),
            "error": row.error,
            "message": row.message,
            "sha256": row.sha256,
            "size": row.size,
        }
        kept = {name: value for name, value in {**columns, **self.fields}.items() if not _is_empty(value)}
        return dict(_bound(kept))

    def is_about(self, agent: str) -> bool:
        """Whether ``agent`` caused the event, or the event is about the agent."""
        named = (self.row.actor, _agent_of(self.row), *map(self.fields.get, ("agent", "from", "to")))
        agents = self.fields.get("agents")
        return agent in named or (isinstance(agents, list) and agent in agents)


class EventReader:
    """Reads events from ``journal``. Nothing is written."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._people = PeopleReader(journal)

    def read(self, after: int, *, until: int | None = None) -> list[Event]:
        """Return the events of the next rows after row ``after``, one for each row, at most 500.

        ``until``: the last row, default the newest. The list is empty if there is no such row. Raise
        `JournalError`.
        """
        return [self._event(row) for row in self._journal.rows(after, until=until, limit=_MAX_BATCH)]

    def _event(self, row: Row) -> Event:
        damage = find_damage(row)
        if damage is not None:
            return Event(row, "damaged", {"rule": damage})
        try:
            kind, fields = describe_row(row, self._people.find_flaw(row))
            if kind == "agent_registered":
                fields = {**fields, "agents": self._read_agents(row)}
            return Event(row, kind, fields)
        except JournalError as error:
            if not isinstance(error, JournalDamaged):
                raise
            return Event(row, "damaged", {"rule": "damage_fault"})
        except Exception:  # noqa: BLE001  # the one place that isolates rows: no row ends the stream
            _log.exception("row %d cannot be read", row.seq)
            return Event(row, "damaged", {"rule": "damage_fault"})

    def _read_agents(self, row: Row) -> list[Json]:
        """Return the ids of the agents that are registered after ``row``; empty if its config is invalid."""
        try:
            return [*parse_recorded_config(row, self._journal.content(row.seq)).agents]
        except ConfigInvalid:
            return []


def describe_row(row: Row, flaw: str = "") -> _Found:
    """Return the kind of the event of the undamaged row ``row``, and the fields of that kind.

    ``flaw``: the rule that prevents the row from taking effect, a result of `PeopleReader.find_flaw`.
    """
    effect = effect_of(row)
    if flaw and effect not in ("edit", "end_task") and not takes_effect(row, flaw):
        # An unsigned message is delivered as unverified.
        if effect != "message" or flaw == WRONG_FORM:
            return "forged", {"effect": effect, "rule": flaw}
        return "message_sent", {**_steering(row)[1], "verified": False}
    if row.actor == SYSTEM and row.tool in _BY_SYSTEM:
        return _BY_SYSTEM[row.tool](row)
    if row.actor == OUTSIDE and _has_files(row.zone) and not (row.zone in _CONFIG and row.version):
        return "external_edit", {"machine": get_text(row.detail, MACHINE)}
    if client_call(row) is not None:
        return _client_call(row)
    if row.outcome != "ok":
        return _refusal(row)
    if effect == "seen":
        return "need_seen", {"need": get_text(row.detail, "need"), "seen_row": get_count(row.detail, "row")}
    if effect == "settle":
        return "conflict_settled", {"conflicts": [*named_conflicts(row)]}
    found = (_BY_ZONE.get(row.zone) or _text)(row) if row.version is not None else _note(row)
    if found is not None:
        if effect == "end_task" and flaw:
            # The task has ended, but not as done.
            found[1]["status"] = "cancelled"
        return found
    return ("read" if is_reading(row) and row.actor != SYSTEM else "other"), {}


def _agent_of(row: Row) -> str:
    """Return the agent that ``row`` is about, else its actor if that is an agent, else an empty text."""
    if row.zone in (SESSIONS, "request", buffers.ZONE) or (
        row.zone in ZONES and ZONES[row.zone].owner == "agent"
    ):
        return row.path.partition("/")[0]
    if row.zone == AGENT and row.tool != MESSAGE:
        return row.path
    return row.actor if row.kind == "agent" else ""


def _is_empty(value: Json) -> bool:
    return value is None or value == "" or value == []


def _bound(fields: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """Yield ``fields``. For a text or list longer than `MAX_TEXT`, yield its size and checksum instead."""
    for name, value in fields.items():
        if not isinstance(value, str | list):
            yield name, value
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        data = text.encode("utf-8", "surrogatepass")
        if len(data) <= MAX_TEXT:
            yield name, value
        else:
            yield f"{name}_size", len(data)
            yield f"{name}_sha256", sha256(data).hexdigest()


def _has_files(zone: Zone) -> bool:
    return ZONES[zone].on_edit != "nothing" or ZONES[zone].is_on_disk_first


def _refusal(row: Row) -> _Found:
    if row.outcome == "conflict":
        return "write_refused", {"current": met_version(row)}
    return ("call_refused" if row.outcome == "denied" else "call_failed"), {}


def _client_call(row: Row) -> _Found:
    call = client_call(row)
    if call is None:
        raise ValueError("no call of a client")
    return "call_finished", {
        "called": call.tool,
        "call_kind": call.kind,
        "about": call.about,
        "paths": [*call.paths],
        "outcome": call.outcome,
        "error": call.error,
        "reason": call.reason,
    }


def _note(row: Row) -> _Found | None:
    """Describe ``row``, which has no version and was not refused."""
    if row.zone == handoffs.HANDOFF_ZONE and row.tool in _HANDOFF_NOTES:
        return _HANDOFF_NOTES[row.tool], _handoff(row)
    if row.zone == COMMAND and row.tool == PRINTED:
        return "command_output", {"stream": output_stream(row)}
    if row.zone in (SESSIONS, AGENT):
        return _SESSION_NOTES[row.tool](row) if row.tool in _SESSION_NOTES else None
    return None


def _steering(row: Row) -> _Found:
    """Describe an instruction or a message to an agent. ``row`` is in the zone of sessions or agents."""
    if row.tool == MESSAGE:
        return "message_sent", {"to": row.path.partition("/")[0]}
    kinds: Mapping[str, EventKind] = {PAUSE: "paused", RESUME: "resumed", CANCEL: "stopped"}
    if is_leave(row):
        return "resume_permitted", {WHEN: AT_RESET}
    return kinds[row.tool], {"breaker": get_text(row.detail, BREAKER)} if is_trip(row) else {}


def _started_call(row: Row) -> _Found:
    return "call_started", {"called": get_text(row.detail, "tool")}


def _delivered_messages(row: Row) -> _Found:
    return "messages_delivered", {"messages": [*messages_of(row)]}


def _text(row: Row) -> _Found | None:
    """Describe a version of a file."""
    if ZONES[row.zone].reverts != "text":
        return None
    return ("file_deleted" if row.deleted else "file_written"), {}


def _session(row: Row) -> _Found:
    step = StepDetail.of(row)
    fields: dict[str, Json] = {
        "session": row.path,
        "status": step.status,
        "steps": step.steps,
        "calls": step.calls,
        "input_tokens": step.input_tokens,
        "output_tokens": step.output_tokens,
        "cost": step.cost,
        "error": step.error,
    }
    if (parking := parking_of(row)) is not None:
        fields["limit"] = parking.text
        fields["resets"] = "" if parking.resets is None else timestamp(parking.resets)
    return ("session_started" if row.version == 1 else "session_status"), fields


def _request(row: Row) -> _Found:
    view = RequestView(row)
    fields: dict[str, Json] = {"request": request_number(row), "session": view.session}
    if row.version == 1:
        expires = timestamp(view.expires) if view.expires is not None else ""
        about: dict[str, Json] = {"tools": [*view.tools], "subjects": [*view.subjects], "expires": expires}
        return "request_opened", {**fields, "asks": view.kind, **about}
    state = request_state(row)
    kind: EventKind = "request_expired" if state == "expired" else "request_withdrawn"
    return "request_answered" if state == "answered" else kind, {**fields, "answer": request_outcome(row)}


def _handoff(row: Row) -> dict[str, Json]:
    sender, receiver, filename = handoffs.split_handoff(row.path)
    return {"from": sender, "to": receiver, "file": filename}


def _delivery(row: Row) -> _Found:
    return ("handoff_withdrawn" if row.deleted else "handoff_delivered"), _handoff(row)


def _document(row: Row) -> _Found:
    edit = DocumentEdit.of(row)
    fields: dict[str, Json] = {"op": edit.op, "field": edit.field}
    if edit.added or edit.removed:
        fields |= {"added": edit.added, "removed": edit.removed}
    return ("document_created" if row.version == 1 else "document_changed"), fields


def _board(row: Row) -> _Found:
    return "board_changed", {"section": get_text(row.detail, boards.SECTION)}


def _board_lock(row: Row) -> _Found:
    return ("board_unlocked", {}) if row.deleted else ("board_locked", {"until": timestamp(lease_end(row))})


def _buffer(row: Row) -> _Found:
    detail = BufferDetail.of(row)
    state = "closed" if detail.is_closed else "choosing" if detail.waits_for_choice else "open"
    return "buffer_changed", {"buffer": detail.name, "operation": detail.operation, "state": state}


def _task(row: Row) -> _Found:
    if row.version == 1:
        return "task_started", {"task": row.path}
    return "task_ended", {"task": row.path, "status": task_end_status(row)}


def _agent(row: Row) -> _Found | None:
    task = get_text(row.detail, "task")
    if is_spawn(row):
        agent = spawned_agent(row)
        return "agent_spawned", {"role": agent.role, "supervisor": agent.supervisor, "task": task}
    return ("agent_ended", {"task": task}) if is_termination(row) else None


def _command(row: Row) -> _Found:
    task = row.path.partition("/")[0]
    if row.version == 1:
        return "command_started", {"task": task}
    detail = CommandDetail.of(row)
    return "command_ended", {"task": task, "ending": detail.ending, "exit_code": detail.exit_code}


def _settings(row: Row) -> _Found:
    return ("agent_registered" if row.tool == REGISTER else "settings_changed"), {}


def _person(row: Row) -> _Found:
    return ("person_revoked" if row.deleted else "person_enrolled"), {}


def _token(row: Row) -> _Found:
    return ("token_revoked" if row.deleted else "token_made"), {}


def _revert(row: Row) -> _Found | None:
    # The second version only records the end of the revert.
    return ("work_reverted", {"revert": row.path}) if row.version == 1 else None


def _workspace(row: Row) -> _Found | None:
    if row.path != STOPPED_PATH:
        return None
    return ("resumed" if row.tool == RELEASE_AGENTS else "paused"), {"agents": [*stopped_by(row)]}


def _lost_process(row: Row) -> _Found:
    return "process_lost", {"machine": get_text(row.detail, MACHINE)}


def _check_begin(row: Row) -> _Found:
    begin = read_begin(row)
    return "check_begun", {"check": begin.check, "session": begin.session}


def _check_end(row: Row) -> _Found:
    end = read_end(row)
    counts: dict[str, Json] = {"failed": end.failed, "total": end.total} if end.total else {}
    return "check_ended", {
        "check": end.check,
        "ending": end.state,
        "exit_code": end.status,
        "summary": end.summary,
        "sequel": end.sequel,
        **counts,
    }


def _alert(row: Row) -> _Found:
    message = parse_message(row)
    if message is None:
        return "alert", {}
    return "alert", {"event": message.event, "needs": [item.kind for item in message.items]}


_BY_SYSTEM: Final[Mapping[str, Callable[[Row], _Found]]] = {
    LOST: _lost_process,
    BUDGET_WARNING: lambda row: ("budget_warning", {"budget": row.path}),
    BEGIN_CHECK: _check_begin,
    END_CHECK: _check_end,
    BUDGET_REACHED: lambda row: (
        "budget_reached",
        {"budget": row.path, "request": get_int(row.detail, "request")},
    ),
    SEND_ALERT: _alert,
    CHECKPOINT: lambda row: ("journal_sealed", {}),
}
"""The functions by tool, for rows of Watchroom itself."""
_HANDOFF_NOTES: Final[Mapping[str, EventKind]] = {
    handoffs.READ_TOOL: "handoff_read",
    handoffs.ACKNOWLEDGE_TOOL: "handoff_acknowledged",
}
_SESSION_NOTES: Final[Mapping[str, Callable[[Row], _Found]]] = {
    MESSAGE: _steering,
    PAUSE: _steering,
    RESUME: _steering,
    CANCEL: _steering,
    STREAM: lambda row: ("text_streamed", {"session": row.path}),
    TOOL_BEGINS: _started_call,
    HANDED_OVER: _delivered_messages,
}
"""The functions by tool, for notes about a session or an agent."""
_BY_ZONE: Final[Mapping[Zone, Callable[[Row], _Found | None]]] = {
    SESSIONS: _session,
    "request": _request,
    handoffs.HANDOFF_ZONE: _delivery,
    documents.DOCUMENT_ZONE: _document,
    boards.BOARD_ZONE: _board,
    "lease": _board_lock,
    buffers.ZONE: _buffer,
    TASK: _task,
    AGENT: _agent,
    COMMAND: _command,
    "config": _settings,
    "settings": _settings,
    people.ZONE: _person,
    TOKENS: _token,
    REVERTS: _revert,
    "workspace": _workspace,
}
"""The functions by zone, for versions. Versions of all other zones are versions of files."""
