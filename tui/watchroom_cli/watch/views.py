"""The dashboard's views as tables, for ``watchroom show``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model, urgent_needs
from watchroom.features.sessions.rows import client_call
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.check_texts import claim_text
from watchroom_tui.formatters.columns import format_age
from watchroom_tui.formatters.need_texts import need_text

NOT_SEEN_ALIVE: Final = "not seen alive"
Table: TypeAlias = list[dict[str, Json]]
FormatTime: TypeAlias = Callable[[int], str]


def view_of(model: Model, view: str, texts: Catalogue, time: FormatTime) -> Table:
    """Return the table of a view in `VIEWS`. ``time``: formats nanoseconds since the epoch."""
    return _MAKERS[view](model, texts, time)


def _agents(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    now = model.time
    return [
        {
            "agent": each.agent.id,
            "layer": each.agent.layer,
            "supervisor": each.agent.supervisor,
            "status": _status(each.status(now), is_lost=each.status(now) == "lost"),
            "resets": _reset(each, time),
            "last_tool": _last_tool(each),
            "last_path": _last_path(each, has_trees=len(model.trees) > 1),
            "ago": format_age(each.last.time, now) if each.last else "",
            "rows": each.rows,
            "refused": each.refused,
            "check": claim_text(each, texts, has_checks=model.has_checks),
        }
        for each in model.agents
    ]


def _reset(view: AgentView, time: FormatTime) -> str:
    """Return when the limit resets for which the agent is parked, empty if it is not parked."""
    parking = view.parking
    if parking is None:
        return ""
    return "unknown" if parking.resets is None else time(parking.resets)


def _last_tool(view: AgentView) -> str:
    call = client_call(view.last) if view.last else None
    return call.tool if call else view.last.tool if view.last else ""


def _last_path(view: AgentView, *, has_trees: bool) -> str:
    """Return the subject of the agent's newest operation. ``has_trees``: see `labels.file_name`."""
    row = view.last
    if row is None:
        return ""
    if row.zone == "repo":
        return labels.file_name(row.zone, row.path, has_trees=has_trees)
    return row.message if row.zone == "command" else labels.path_of(row)


def _needs(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "kind": each.kind,
            "path": each.row.path,
            "what": need_text(each, texts),
            "row": each.row.seq,
            "since": time(each.opened_at),
            "expires": time(each.deadline) if each.deadline else "",
        }
        for each in urgent_needs(model, model.time)
    ]


def _handoffs(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "from": each.sender,
            "to": each.receiver,
            "file": each.filename,
            "message": each.row.message,
            "read": each.read,
            "acknowledged": each.acknowledged is not None,
            "time": time(each.row.time),
        }
        for each in model.deliveries
    ]


def _files(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    shared: Table = [
        {
            "path": each.path,
            "version": each.head.version,
            "author": each.head.actor,
            "conflicts": each.conflicts,
            "client_edits": 0,
            "time": time(each.head.time),
        }
        for each in model.files
    ]
    by_clients: Table = [
        {
            "path": each.path,
            "version": None,
            "author": ", ".join(each.agents),
            "conflicts": 0,
            "client_edits": each.edits,
            "time": time(each.row.time),
        }
        for each in model.client_files
    ]
    return shared + by_clients


def _documents(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "document": each.name,
            "version": each.version,
            "created_by": each.created.actor,
            "writers": ", ".join(each.writers),
            "last": labels.row_message(each.newest),
            "time": time(each.newest.time),
        }
        for each in model.documents
    ]


def _boards(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    # Imported here, because only this view needs the package of boards.
    from watchroom_tui.formatters.board_tree import board_tree

    return [
        {
            "board": each.name,
            "owners": ", ".join(each.owners),
            "version": each.version,
            "author": each.view.head.actor if each.view else "",
            "message": each.view.head.message if each.view else "",
            "held_by": each.holder(model.time),
            "conflicts": each.conflicts,
            "time": time(each.view.head.time) if each.view else "",
        }
        for each in board_tree(model)
    ]


def _requests(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "request": each.id,
            "agent": each.agent,
            "kind": each.kind,
            "what": labels.request_text(each, texts),
            "session": each.session,
            "since": time(each.row.time),
            "expires": time(each.expires) if each.expires else "",
        }
        for each in model.requests
    ]


def _sessions(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "agent": each.agent,
            "session": each.id,
            "status": "stopped" if view.is_stopped else _status(each.status, is_lost=view.is_lost),
            "title": each.title,
            "last": each.last.message,
            "time": time(each.last.time),
        }
        for view in model.agents
        if (each := view.session) is not None
    ]


def _status(status: str, *, is_lost: bool) -> str:
    """Return the status, or `NOT_SEEN_ALIVE` for a lost agent or task."""
    return NOT_SEEN_ALIVE if is_lost else status


def _tasks(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "task": each.id,
            "status": _status(each.status, is_lost=each.is_lost),
            "what": each.row.message,
            "folder": each.folder,
            "agents": ", ".join(member.id for member in each.members if member.ended is None),
            "report": each.ended.message if each.ended else "",
            "since": time(each.row.time),
        }
        for each in model.tasks
    ]


def _messages(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "from": each.sender,
            "to": each.receiver,
            "text": each.row.message,
            "delivered": each.delivered is not None,
            "read": each.read is not None,
            "task": each.task,
            "time": time(each.row.time),
        }
        for each in model.messages
    ]


def _commands(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "agent": each.begun.actor,
            "command": each.begun.message,
            "exit_code": each.exit_code,
            "running": each.ended is None and not each.is_lost,
            "task": each.task,
            "time": time(each.begun.time),
        }
        for each in model.commands
    ]


def _buffers(model: Model, texts: Catalogue, time: FormatTime) -> Table:
    return [
        {
            "agent": each.agent,
            "buffer": each.name,
            "source": each.record.source,
            "base": each.record.base,
            "newest": each.newest,
            "state": each.state,
            "choosing": each.waits_for_choice,
            "length": each.record.length,
            "time": time(each.row.time),
        }
        for each in model.buffers
    ]


_MAKERS: Final[Mapping[str, Callable[[Model, Catalogue, FormatTime], Table]]] = {
    "agents": _agents,
    "needs": _needs,
    "handoffs": _handoffs,
    "files": _files,
    "documents": _documents,
    "boards": _boards,
    "requests": _requests,
    "sessions": _sessions,
    "tasks": _tasks,
    "messages": _messages,
    "commands": _commands,
    "buffers": _buffers,
}
VIEWS: Final = tuple(_MAKERS)
