"""The page of a report as Markdown, HTML and JSON. Pure. Texts of agents are never interpreted as markup."""

from __future__ import annotations

import re
from html import escape
from typing import Final

from watchroom.features.budgets.rows import UsageTotal
from watchroom.history.report import Report, RevertReport, Settlement
from watchroom.model import Json, row_as_json, timestamp

from watchroom_tui.formatters.report_page import Cell, PageTable, Quoted, ReportPage

_MARKUP: Final = re.compile(r"[\\`*_\[\]<|~]|&(?=#?\w+;)|^[#>=+-]|#(?=#*$)")
"""Pattern of characters that are markup anywhere, and of characters that start a heading, quotation, list or
rule, or end a heading."""
_NUMBERED: Final = re.compile(r"^(\d+)([.)])")
_BACKTICKS: Final = re.compile("`+")
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .6rem .25rem 0; }
th, td { text-align: start; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; text-align: end; }
code { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; unicode-bidi: isolate; }
p.note { opacity: .75; }
"""
_LOADS: Final = "default-src 'none'; style-src 'unsafe-inline'"


def as_markdown(page: ReportPage) -> str:
    """Return ``page`` as GitHub Markdown with tables. Texts of agents are code spans, so that they contain no
    markup and no links."""
    parts = [f"# {_escape_markdown(page.title)}"]
    parts += [_escape_markdown(line) for line in page.lead]
    for table in page.tables:
        parts.append(f"## {_escape_markdown(table.title)}")
        if table.rows:
            parts.append(_markdown_table(table))
        if table.note:
            parts.append(_escape_markdown(table.note))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: PageTable) -> str:
    head = [_escape_markdown(each) for each in table.head]
    lines = [head, ["---"] * len(head), *([_markdown_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(cell: Cell) -> str:
    if not isinstance(cell, Quoted):
        return _escape_markdown(str(cell))
    if not cell.text.strip():
        return "–"
    # The fence must be longer than any run of backticks in the text. Only tables interpret bars earlier.
    most = max((len(run) for run in _BACKTICKS.findall(cell.text)), default=0)
    fence = "`" * (most + 1)
    padding = " " if cell.text[0] in " `" or cell.text[-1] in " `" else ""
    return f"{fence}{padding}{_escape_bars(cell.text)}{padding}{fence}"


def _escape_bars(text: str) -> str:
    # Markdown readers disagree on two backslashes in a row within tables.
    return text.replace("\\|", "\\ |").replace("|", "\\|")


def _escape_markdown(text: str) -> str:
    """Return one line of ``text`` with its markup escaped. Dollars are escaped if there are several, because
    some readers interpret text between two dollars as a formula."""
    escaped = _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
    escaped = _NUMBERED.sub(r"\1\\\2", escaped)
    return escaped.replace("$", "\\$") if escaped.count("$") > 1 else escaped


def as_html(page: ReportPage, language: str) -> str:
    """Return ``page`` as one self-contained HTML file in ``language``, without scripts, pictures or links.
    Its content security policy forbids browsers to load other resources."""
    title = escape(page.title)
    parts = [
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_LOADS}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>",
        *(f"<p>{escape(line)}</p>" for line in page.lead),
    ]
    for table in page.tables:
        parts.append(f"<h2>{escape(table.title)}</h2>")
        if table.rows:
            head = "".join(f'<th scope="col">{escape(each)}</th>' for each in table.head)
            parts.append(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>")
            parts += [f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in table.rows]
            parts.append("</tbody>\n</table>")
        if table.note:
            parts.append(f'<p class="note">{escape(table.note)}</p>')
    return "\n".join([*parts, "</body>\n</html>\n"])


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, Quoted):
        return f"<td><code>{escape(cell.text)}</code></td>"
    kind = ' class="number"' if isinstance(cell, int) else ""
    return f"<td{kind}>{escape(str(cell))}</td>"


def as_json(report: Report) -> dict[str, Json]:
    """Return ``report`` as JSON, with the texts of agents unchanged."""
    return {
        "from": report.after,
        "to": report.until,
        "since": timestamp(report.since),
        "until": timestamp(report.ended),
        "versions": report.versions,
        "refusals": report.refusals,
        "actors": [{**each._asdict(), "used": _usage(each.used)} for each in report.actors],
        "paths": [
            {
                "zone": each.path.zone,
                "path": each.path.path,
                "change": each.kind,
                "before": each.path.before,
                "version": each.path.last,
                "versions": each.path.versions,
                "actors": dict(each.path.actors),
                "added": each.added,
                "removed": each.removed,
            }
            for each in report.paths
        ],
        "more_paths": report.more_paths,
        "decisions": [_decision(each) for each in report.decisions],
        "reverts": [_revert(each) for each in report.reverts],
        "refused": [row_as_json(row) for row in report.refused],
        "checks": [row_as_json(row) for row in report.checks],
        "used": _usage(report.used),
        "open": [
            {"kind": need.kind, "since": timestamp(need.opened_at), "row": row_as_json(need.row)}
            for need in report.needs
        ],
        "open_needs": report.open_needs,
        "open_tasks": [
            {"task": task.id, "since": task.row.timestamp, "text": task.row.message} for task in report.tasks
        ],
    }


def _decision(each: Settlement) -> dict[str, Json]:
    asked = each.request
    about: dict[str, Json] = {}
    if asked is not None:
        about = {"request": asked.id, "agent": asked.agent, "kind": asked.kind, "outcome": asked.outcome}
    return {**about, "row": row_as_json(each.row)}


def _revert(each: RevertReport) -> dict[str, Json]:
    record = each.record
    if record is None:
        return {"row": row_as_json(each.row), "unreadable": True}
    return {
        "row": row_as_json(each.row),
        "agents": record.agents,
        "written": record.written,
        "conflicts": record.conflicts,
        "could_not": record.could_not,
    }


def _usage(used: UsageTotal) -> dict[str, Json]:
    return {**used._asdict(), "cost": used.known_cost}
