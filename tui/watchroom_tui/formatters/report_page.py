"""A report as a page of tables, the source of Markdown and HTML. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.checks.rows import read_end
from watchroom.features.overview.model import Need
from watchroom.features.people.decisions import is_legacy
from watchroom.features.sessions.rows import client_call
from watchroom.history.report import ActorReport, Report, Settlement
from watchroom.texts import Catalogue

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.check_texts import check_result
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.formatters.need_texts import need_kind
from watchroom_tui.formatters.needs import need_matter, need_party
from watchroom_tui.presentation.sanitize import sanitize

_MAX_CHARACTERS = 300
"""Maximum number of characters of a quoted text in a cell."""


class Quoted(NamedTuple):
    """One line of text by an agent, a person or a client. It is never markup."""

    text: str


Cell: TypeAlias = str | int | Quoted
"""A text of Watchroom, a number, or a quotation."""


class PageTable(NamedTuple):
    """A section of the page. A section without rows shows only its ``note``.

    - ``head``: the names of the columns.
    - ``note``: the text below the table.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


class ReportPage(NamedTuple):
    """The page: its title, a summary, and its sections."""

    title: str
    lead: tuple[str, ...]
    tables: tuple[PageTable, ...]


def lay_out_report(report: Report, texts: Catalogue) -> ReportPage:
    """Return ``report`` as a page in the language of ``texts``."""
    lead = (
        texts("report.span", since=zoned_time(report.since), ended=zoned_time(report.ended)),
        texts(
            "report.summary",
            versions=report.versions,
            paths=len(report.paths) + report.more_paths,
            actors=len(report.actors),
            refused=report.refusals,
            decisions=len(report.decisions),
            open=report.open_needs,
        ),
    )
    tables = (
        _actor_table(report, texts),
        _path_table(report, texts),
        _decision_table(report, texts),
        _revert_table(report, texts),
        _refusal_table(report, texts),
        *([_check_table(report, texts)] if report.checks else []),
        _need_table(report, texts),
        _task_table(report, texts),
    )
    return ReportPage(texts("report.title", after=report.after, until=report.until), lead, tables)


def _actor_table(report: Report, texts: Catalogue) -> PageTable:
    head = ("by", "versions", "files", "refused", "requests", "commands", "client_calls", "tokens", "cost")
    rows = [_actor_cells(each) for each in report.actors]
    total = report.used
    note = texts("report.spent", tokens=labels.format_count(total.tokens), cost=labels.cost_text(total))
    return _table("actors", head, rows, texts, note)


def _actor_cells(each: ActorReport) -> tuple[Cell, ...]:
    counts = (each.versions, each.paths, each.refused, each.requests, each.commands, each.client_calls)
    return (_quoted(each.actor), *counts, labels.format_count(each.used.tokens), _cost(each.used))


def _cost(used: UsageTotal) -> str:
    return labels.cost_text(used) if used.tokens else "–"


def _path_table(report: Report, texts: Catalogue) -> PageTable:
    rows: list[tuple[Cell, ...]] = []
    has_trees = labels.has_several_trees((each.path.zone, each.path.path) for each in report.paths)
    for each in report.paths:
        who = ", ".join(f"{actor} {count}" for actor, count in each.path.actors)
        lines = "–" if each.added is None else f"+{each.added} −{each.removed}"
        name = _quoted(labels.place_text(each.path.zone, each.path.path, has_trees=has_trees))
        rows.append((name, texts(f"change.{each.kind}"), each.path.versions, lines, _quoted(who)))
    note = texts("report.more_paths", count=report.more_paths) if report.more_paths else ""
    return _table("paths", ("path", "change", "versions", "lines", "by"), rows, texts, note)


def _decision_table(report: Report, texts: Catalogue) -> PageTable:
    rows = [_decision_cells(each, texts) for each in report.decisions]
    return _table("decisions", ("time", "by", "what", "subject", "outcome"), rows, texts)


def _decision_cells(each: Settlement, texts: Catalogue) -> tuple[Cell, ...]:
    row, asked = each.row, each.request
    by = texts("report.legacy", actor=row.actor) if is_legacy(row) else row.actor
    began = (zoned_time(row.time), _quoted(by))
    if asked is None:
        return (
            *began,
            labels.tool_label(row, texts),
            _quoted(labels.place_text(row.zone, row.path)),
            _quoted(row.message),
        )
    what = texts("report.request", number=asked.id, kind=texts(f"request.kind.{asked.kind}"))
    subject = f"{asked.agent}: {labels.request_text(asked, texts)}"
    return (*began, what, _quoted(subject), labels.request_outcome(asked, texts))


def _revert_table(report: Report, texts: Catalogue) -> PageTable:
    rows: list[tuple[Cell, ...]] = []
    for row, record in report.reverts:
        began = (zoned_time(row.time), _quoted(row.actor))
        if record is None:
            rows.append((*began, "–", "–", "–", texts("report.unreadable", row=row.seq)))
        else:
            counts = (len(record.written), len(record.conflicts))
            rows.append((*began, _quoted(", ".join(record.agents)), *counts, _quoted(row.message)))
    head = ("time", "by", "agents", "files", "conflicts", "message")
    return _table("reverts", head, rows, texts)


def _refusal_table(report: Report, texts: Catalogue) -> PageTable:
    rows: list[tuple[Cell, ...]] = []
    for row in report.refused:
        why = labels.outcome_span(row, texts).text
        call = client_call(row)
        name = _quoted(call.about if call is not None else labels.place_text(row.zone, row.path))
        tool = _quoted(labels.tool_label(row, texts))
        rows.append((zoned_time(row.time), _quoted(row.actor), tool, name, _quoted(why), row.seq))
    left = report.refusals - len(rows)
    note = texts("report.more_rows", count=left) if left > 0 else ""
    return _table("refused", ("time", "by", "what", "path", "outcome", "row"), rows, texts, note)


def _check_table(report: Report, texts: Catalogue) -> PageTable:
    rows: list[tuple[Cell, ...]] = []
    for row in report.checks:
        end = read_end(row)
        sequel = texts(f"check.sequel.{end.sequel}", count=end.sent)
        result = (texts(f"check.state.{end.state}"), _quoted(check_result(end, texts)), sequel)
        rows.append((zoned_time(row.time), _quoted(row.path), _quoted(end.check), *result, row.seq))
    return _table("checks", ("time", "agent", "check", "outcome", "what", "then", "row"), rows, texts)


def _need_table(report: Report, texts: Catalogue) -> PageTable:
    rows = [_need_cells(each, texts) for each in report.needs]
    left = report.open_needs - len(rows)
    note = texts("report.more_rows", count=left) if left > 0 else ""
    return _table("open", ("since", "kind", "subject", "what"), rows, texts, note)


def _need_cells(need: Need, texts: Catalogue) -> tuple[Cell, ...]:
    since = zoned_time(need.opened_at or need.row.time)
    matter = _quoted(need_matter(need, texts))
    return since, need_kind(need, texts), _quoted(need_party(need, texts).text), matter


def _task_table(report: Report, texts: Catalogue) -> PageTable:
    rows: list[tuple[Cell, ...]] = [
        (
            zoned_time(task.row.time),
            _quoted(task.row.message),
            _quoted(", ".join(member.id for member in task.members)),
        )
        for task in report.tasks
    ]
    return _table("tasks", ("since", "task", "agents"), rows, texts)


def _table(
    name: str, head: Sequence[str], rows: Sequence[tuple[Cell, ...]], texts: Catalogue, note: str = ""
) -> PageTable:
    columns = tuple(texts(f"show.column.{each}") for each in head)
    return PageTable(
        texts(f"report.{name}"), columns, tuple(rows), note if rows else note or texts("report.nothing")
    )


def _quoted(text: str) -> Quoted:
    return Quoted(sanitize(text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"))
