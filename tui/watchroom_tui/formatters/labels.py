"""Texts for rows and agents. They are the same on every screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.budgets.rules import format_dollars
from watchroom.features.overview.agents import AgentView, Status
from watchroom.features.overview.timeline import is_reading
from watchroom.features.sessions.rows import ClientCall, Parking, client_call
from watchroom.features.sessions.view import RequestView
from watchroom.features.tasks.view import MessageView
from watchroom.features.trees.rows import GRADE, grade_of, side_of
from watchroom.features.trees.view import author_of
from watchroom.kernel.rules import details
from watchroom.kernel.rules.conflicts import EDIT_UNDONE, NOT_A_FILE
from watchroom.kernel.rules.details import BufferDetail, CommandDetail, DocumentEdit, StepDetail
from watchroom.kernel.zones import SHARED
from watchroom.model import (
    CONTROLS,
    END_TASK,
    MESSAGE,
    SPAWN,
    USER,
    Row,
    SessionStatus,
    outcome_of,
)
from watchroom.texts import Catalogue

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.check_texts import check_text
from watchroom_tui.formatters.local_time import local_clock, local_date, local_time
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.formatters.tree_changes import author_style
from watchroom_tui.presentation.sanitize import sanitize

STATUS_MARKS: Final[dict[Status, Span]] = {
    "running": Span("●", "ok"),
    "waiting": Span("◐", "warning"),
    "parked": Span("⧖", "warning"),
    "paused": Span("⏸", "warning"),
    "idle": Span("○", "dim"),
    "done": Span("✓", "ok"),
    "error": Span("✖", "error"),
    "lost": Span("◌", "error"),
    "unsupervised": Span("◇", "warning"),
}
SESSION_MARKS: Final[dict[SessionStatus, Span]] = {
    "idle": Span("○", "dim"),
    "running": Span("●", "ok"),
    "waiting_for_human_input": Span("◐", "warning"),
    "paused": Span("⏸", "warning"),
    "parked": Span("⧖", "warning"),
    "done": Span("✓", "ok"),
    "error": Span("✖", "error"),
    "cancelled": Span("✖", "dim"),
}
TASK_MARKS: Final[dict[str, Span]] = {
    "open": Span("●", "ok"),
    "done": Span("✓", "ok"),
    "failed": Span("✖", "error"),
    "cancelled": Span("⊘", "dim"),
}
ENDED_MARK: Final = Span("–", "dim")
"""The mark of an ended agent."""
_MAX_PATHS: Final = 3
"""Maximum number of paths in the text of a need."""
NEED_MARKS: Final[dict[str, Span]] = {
    "forged": Span("✗", "error"),
    "unreadable": Span("☐", "error"),
    "conflict": Span("⚔", "error"),
    "request": Span("◐", "accent"),
    "lost": Span("◌", "error"),
    "failed": Span("✖", "error"),
    "parked": Span("⧖", "warning"),
    "expired": Span("⧗", "warning"),
    "breaker": Span("↻", "error"),
    "unproven": Span("✗", "warning"),
    "budget": Span("◔", "warning"),
    "message": Span("»", "accent"),
    "outside": Span("✎", "warning"),
    "overlap": Span("⧉", "warning"),
    "predicted": Span("⚔", "warning"),
    "unchecked": Span("‼", "warning"),
    "denied": Span("⊘", "warning"),
    "stalled": Span("○", "warning"),
    "handoff": Span("✉", "accent"),
}


MARKER_SIGNS: Final[dict[str, Span]] = {
    "conflict": Span("⚔", "error"),
    "failure": Span("✖", "error"),
    "request": Span("◐", "accent"),
    "person": Span("☺", "human"),
    "revert": Span("↶", "warning"),
    "task": Span("⚑", "ok"),
}
"""The signs of events on the timeline."""
MOST_NAMED: Final = 3
BOARD_MARK: Final = "▤"
"""The mark of a board. A shared file can have the same name."""
CLIENT_MARK: Final = "◇"
"""The mark of a file edited with clients' own tools. The file has no versions."""
BUFFER_MARK: Final = "✎"
"""The mark of a buffer."""
SESSION_WIDTH: Final = 8
"""Number of characters of a session id that identify the session."""
SUBJECT_WIDTH: Final = 40
TASK_WIDTH: Final = 8
"""Number of characters of a task id that identify the task."""


def tool_name(name: str, texts: Catalogue) -> str:
    key = f"tool.{name}"
    return texts(key) if key in texts else name


def tool_label(row: Row, texts: Catalogue) -> str:
    """Return a short name for the tool of the row. Unknown tools, such as tools of clients, keep their
    names."""
    call = client_call(row)
    if call is not None:
        return sanitize(call.tool)
    if row.zone == "buffer":
        operation = BufferDetail.of(row).operation
        if operation != row.tool:
            return sanitize(tool_name(f"buffer_{operation}", texts))
    return sanitize(tool_name(row.tool, texts))


def origin_text(row: Row, texts: Catalogue) -> str:
    """Return the origin of a version of a file in a working tree. The origin is the certainty of the author,
    or an action in Watchroom by an author who is certain."""
    return texts(f"changes.grade.{grade_of(row)}") if GRADE in row.detail else tool_label(row, texts)


def path_of(row: Row) -> str:
    """Return a short name for the path of the row, such as a request number, the end of a session id, or a
    client call's subject. Not sanitized."""
    if row.zone == "request":
        return f"#{details.request_number(row)}"
    call = client_call(row)
    if call is not None:
        return call.about
    if row.zone == "session":
        return f"…{row.path[-SESSION_WIDTH:]}" if "/" in row.path else row.path
    if row.zone == "private":
        owner, _, filename = row.path.partition("/")
        return filename if owner == row.actor and filename else row.path
    if row.zone in ("file", "repo"):
        return row.path.partition("/")[2]
    if row.zone == "tree":
        return tree_name(row.path)
    if row.zone == "command":
        return "$"
    if row.zone == "task":
        return row.path[:TASK_WIDTH]
    if row.zone == "agent" and row.tool == MESSAGE:
        return f"→ {row.path}"
    if row.zone == "buffer":
        return f"{BUFFER_MARK} {BufferDetail.of(row).name}"
    if row.zone in ("board", "lease"):
        return f"{BOARD_MARK} {row.path}"
    return row.path


def place_text(zone: str, path: str, *, has_trees: bool = False) -> str:
    """Return a path with its zone. Not sanitized. Files in a working tree are shown without the tree's id.

    ``has_trees``: whether to add the name of the working tree, because there are several trees.
    """
    if zone == "tree":
        return f"{zone}/{tree_name(path)}"
    return f"{zone}/{file_name(zone, path, has_trees=has_trees)}"


def file_name(zone: str, path: str, *, has_trees: bool = False) -> str:
    """Return ``path`` without the id of its working tree. ``has_trees``: see `place_text`."""
    if zone != "repo":
        return path
    tree, _, name = path.partition("/")
    return f"{tree_name(tree)}/{name}" if has_trees else name


def has_several_trees(places: Iterable[tuple[str, str]]) -> bool:
    """Return whether the files among ``places`` (zones and paths) are in several working trees."""
    return len({path.partition("/")[0] for zone, path in places if zone == "repo"}) > 1


def tree_name(tree: str) -> str:
    """Return the name of the folder of a working tree, from the tree's id."""
    return tree.rpartition("-")[0] or tree


def actor_span(row: Row) -> Span:
    """Return the actor of ``row``. The name also shows the certainty of the author of a version in a working
    tree."""
    if row.zone != "repo" or row.version is None:
        return Span(sanitize(row.actor), agent_class(row.actor))
    author = author_of(row)
    return Span(sanitize(side_of(row) or author.name), author_style(author))


def shown_path(row: Row, texts: Catalogue, *, has_trees: bool = False) -> str:
    """Return the row's path, sanitized. Messages to the person are addressed to you.

    ``has_trees``: there are several working trees, so files are named with their tree.
    """
    if row.zone == "repo" and has_trees:
        tree, _, name = row.path.partition("/")
        return sanitize(f"{tree_name(tree)}: {name}")
    if row.zone == "agent" and row.tool == MESSAGE and row.path == USER:
        return f"→ {texts('tasks.you')}"
    return sanitize(path_of(row))


def activity_spans(row: Row, texts: Catalogue) -> tuple[Span, Span]:
    """Return the action of an agent and its subject, for a place without an outcome. A command is shown as
    its own text."""
    if row.zone == "command":
        went_wrong = row.outcome != "ok" or CommandDetail.of(row).is_failure
        return Span("$", "error" if went_wrong else "dim"), Span(sanitize(row.message))
    style = "error" if outcome_of(row) != "ok" else "dim"
    return Span(tool_label(row, texts), style), Span(shown_path(row, texts))


def outcome_span(row: Row, texts: Catalogue, *, is_open: bool = False) -> Span:
    """Return the outcome of an operation in a few words. ``is_open``: whether the conflict is unsettled."""
    call = client_call(row)
    if call is not None:
        return _client_call_outcome(call, texts)
    if row.outcome == "ok":
        return _done(row, texts)
    if row.outcome == "conflict":
        if row.error == "outside_edit":
            what = "row.outside_deleted" if row.sha256 is None else "row.outside"
            return Span(texts(what), "warning" if is_open else "dim")
        return Span(
            texts("row.conflict", base=row.base, current=details.met_version(row)),
            "error" if is_open else "dim",
        )
    if row.error in (EDIT_UNDONE, NOT_A_FILE):
        return Span(texts(f"row.{row.error}"), "dim" if row.error == EDIT_UNDONE else "warning")
    kind = texts(f"outcome.{row.outcome}")
    return Span(f"{kind}: {sanitize(row.error)}", "error" if row.outcome == "denied" else "warning")


def _client_call_outcome(call: ClientCall, texts: Catalogue) -> Span:
    """Return the outcome of a call to a client's own tool."""
    if call.outcome == "denied":
        return Span(f"{texts('outcome.denied')}: {sanitize(call.error)}", "error")
    if call.outcome == "failed":
        return Span(f"✗ {texts('outcome.failed')}", "warning")
    return Span("·", "dim") if call.kind == "read" else Span("✓", "ok")


def _done(row: Row, texts: Catalogue) -> Span:
    """Return the result of a successful operation."""
    if row.zone in ("request", "session") and row.version is not None:
        return _session_outcome(row, texts)
    if row.zone == "command":
        return _command_outcome(row, texts)
    if row.zone in ("task", "agent") and row.version is not None:
        return _society_outcome(row, texts)
    if row.zone == "buffer" and row.version is not None:
        return _buffer_outcome(row, texts)
    if row.deleted:
        return Span(texts("row.deleted"), "warning")
    if row.version is not None:
        if row.base == -1 and row.version > 1 and row.zone in SHARED:
            return Span(texts("row.unchecked", version=row.version), "warning")
        return Span(f"v{row.version}", "ok")
    if row.tool == "acknowledge_handoff":
        return Span(f"✓ v{row.base}", "ok")
    if is_reading(row):
        return Span(texts("row.read", version=row.base) if row.base else "·", "dim")
    # Watchroom's notes, and those of agents on sessions, are about progress.
    is_progress = row.kind == "system" or (row.kind == "agent" and row.zone == "session")
    is_progress = is_progress and row.tool not in CONTROLS
    return Span("·", "dim") if is_progress else Span("✓", "ok")


def row_message(row: Row) -> str:
    """Return the message of the row, sanitized.

    - Document edits without a message: the change.
    - New agents: the role and the task.
    - Client calls: the reason for the refusal or failure.
    """
    call = client_call(row)
    if call is not None:
        return sanitize(call.reason)
    if row.tool == SPAWN and row.version is not None:
        return sanitize(f"{details.spawned_role(row)} · {row.message}")
    if row.zone != "realtime" or row.message or row.version is None:
        return sanitize(row.message)
    edit = DocumentEdit.of(row)
    if edit.op in ("insert", "delete", "replace"):
        counts = (("+", edit.added), ("−", edit.removed))
        return sanitize(f"{edit.field} {' '.join(f'{sign}{count}' for sign, count in counts if count)}")
    if edit.op in ("increment", "decrement"):
        return sanitize(f"{edit.field} {'+' if edit.op == 'increment' else '−'}{edit.amount}")
    if edit.op in ("add", "remove") and edit.element is not None:
        return sanitize(f"{edit.field} {'+' if edit.op == 'add' else '−'} {edit.element}")
    name = f"{edit.field}.{edit.key}" if edit.key is not None else edit.field
    if edit.op == "remove":
        return sanitize(f"− {name}")
    return sanitize(f"{name} = {edit.value}" if edit.value is not None else name)


def zone_name(zone: str, texts: Catalogue) -> str:
    """Return the name of ``zone`` for people. Unknown zones keep their names, sanitized."""
    key = f"zone.{zone}"
    return texts(key) if key in texts else sanitize(zone)


def _session_outcome(row: Row, texts: Catalogue) -> Span:
    """Return the outcome of a step, a request or an answer."""
    if row.zone == "request":
        ended = details.request_outcome(row)
        return Span(texts(f"request.outcome.{ended}"), "ok") if ended else Span("◐", "warning")
    return SESSION_MARKS[StepDetail.of(row).status]


def _command_outcome(row: Row, texts: Catalogue) -> Span:
    """Return the state of a command: running, or the way it ended."""
    command = CommandDetail.of(row)
    if command.ending == "running":
        return Span("▸", "dim")
    style = "error" if command.is_failure else "ok"
    if command.ending == "exited":
        return Span(texts("row.exit", code=command.exit_code), style)
    return Span(texts(f"row.{command.ending}"), style)


def _society_outcome(row: Row, texts: Catalogue) -> Span:
    """Return that a task or agent started, or the way it ended."""
    if row.tool == END_TASK:
        status = details.task_end_status(row)
        return Span(task_status(status, texts), TASK_MARKS[status].style)
    return Span(texts("row.begun"), "ok") if row.version == 1 else Span(texts("row.ended"), "dim")


def _buffer_outcome(row: Row, texts: Catalogue) -> Span:
    """Return the state of a buffer: its version, a pending choice, or closed."""
    buffer = BufferDetail.of(row)
    if buffer.is_closed:
        return Span(texts("row.closed"), "dim")
    if buffer.waits_for_choice:
        return Span(texts("buffers.choose"), "warning")
    return Span(f"v{row.version}", "ok")


def task_status(status: str, texts: Catalogue) -> str:
    return texts(f"tasks.status.{status}")


def message_mark(message: MessageView) -> Span:
    """Return the state of a message: sent, delivered or read."""
    if message.read is not None:
        return Span("✓✓", "ok")
    return Span("✓", "") if message.delivered is not None else Span("·", "dim")


def end_reason(row: Row, agent: str, texts: Catalogue) -> str:
    """Return the reason for the end of the agent: ended by an actor, with its parent, or with its task."""
    if row.tool == END_TASK:
        return texts("tasks.ended_with_task")
    if row.path != agent:
        return texts("tasks.ended_with", agent=sanitize(row.path))
    how = texts("tasks.ended_by", who=sanitize(row.actor))
    return f"{how}: {sanitize(row.message)}" if row.message else how


def lost_agent_text(view: AgentView, resume: str, texts: Catalogue) -> str:
    """Return a text about the loss of the agent, with the command ``resume``, or with the client that a
    person starts again. Not sanitized."""
    client = view.session.attached_client if view.session is not None else ""
    if client:
        return texts("lost.restart", time=local_clock(view.last_heard), client=client)
    return lost_text(view.last_heard, resume, texts)


def lost_text(since: int, resume: str, texts: Catalogue) -> str:
    """Return a text about a loss at ``since`` (nanoseconds since the epoch), with the command ``resume`` if
    it is known. Not sanitized."""
    key = "lost.resumable" if resume else "lost.since"
    return texts(key, time=local_clock(since), resume=resume)


def agent_status_text(view: AgentView, now: int, texts: Catalogue, resume: str = "") -> str:
    """Return the state of the agent, empty if its last action says as much. Not sanitized.

    - ``now``: nanoseconds since the epoch.
    - ``resume``: the command that resumes a lost agent.
    """
    said = _agent_state(view, now, texts, resume)
    if not view.handed_to:
        return said
    marked = texts("hand_over.mark", to=view.handed_to)
    return f"{marked} · {said}" if said else marked


def _agent_state(view: AgentView, now: int, texts: Catalogue, resume: str) -> str:
    session = view.session
    if session is None:
        return ""
    if view.status(now) == "parked" and view.parking is not None:
        return parking_text(view.parking, session.last.time, texts, has_leave=view.leave > 0)
    if view.is_lost:
        return lost_agent_text(view, resume, texts)
    if view.request is not None and not view.request.has_expired(now):
        return texts("agents.waits", what=request_text(view.request, texts))
    if view.is_unsupervised:
        return texts("agents.unsupervised")
    if view.status(now) == "paused":
        return texts("session.status.paused")
    if session.status == "error":
        return texts("agents.failed", what=session.last.message)
    if view.status(now) in ("idle", "done") and (checked := check_text(view.check, texts)):
        return checked
    if view.is_stopped:
        return texts("agents.stopped")
    return texts("agents.thinks") if view.is_thinking and view.status(now) == "running" else ""


def parking_text(parking: Parking, since: int, texts: Catalogue, *, has_leave: bool = False) -> str:
    """Return how long an agent is parked.

    - ``since``: a time shortly before, in nanoseconds since the epoch. Its day is not shown.
    - ``has_leave``: whether the agent is resumed at the reset.
    """
    if parking.resets is None:
        return texts(f"agents.parked_{parking.held or 'unknown'}")
    key = "agents.resumes_at" if has_leave else "agents.parked_until"
    return texts(key, time=reset_time(parking.resets, since))


def reset_time(resets: int, since: int) -> str:
    """Return the time ``resets`` to the minute, with its date unless that is the date of ``since``. Both are
    nanoseconds since the epoch."""
    whole = local_time(resets, "minutes")
    return whole.partition(" ")[2] if local_date(resets) == local_date(since) else whole


def request_text(asked: RequestView, texts: Catalogue) -> str:
    """Return the subject of a request in one line: the calls to approve, or the question."""
    calls = zip(asked.tools, asked.subjects, strict=False)
    named = ", ".join(f"{tool_name(tool, texts)} {about}".strip() for tool, about in calls)
    return sanitize(named or asked.row.message)


def request_mark(asked: RequestView, *, is_open: bool) -> Span:
    if is_open:
        return Span("◐", "warning")
    if asked.is_answered:
        return Span("⊘", "warning") if asked.outcome == "rejected" else Span("✓", "ok")
    return Span("⧗", "dim")


def request_outcome(asked: RequestView, texts: Catalogue) -> str:
    """Return the outcome of a request. An open request past its deadline has expired."""
    return texts(f"request.outcome.{asked.outcome or 'expired'}")


def format_count(count: int) -> str:
    """Return a number as ``812``, ``3.4k`` or ``1.2M``."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def cost_text(used: UsageTotal) -> str:
    """Return the cost in US dollars as ``$12.30`` or ``$0.0042``. A ``≥`` before the cost means that a part
    has no known price. ``–`` means that no part has a known price."""
    cost = used.known_cost
    if cost is None:
        return "–"
    shown = f"${format_dollars(cost)}"
    return f"≥ {shown}" if used.unpriced else shown
