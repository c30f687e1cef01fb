"""The items of a board as lines for the panel beside it. Pure. Boards are parsed in the worker process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from rich.cells import cell_len
from watchroom.texts import Catalogue, Language
from watchroom_whiteboards.items import BoardLogEntry, BoardUpdate

from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.styled_text import Line, Span, width_of, wrapped
from watchroom_tui.presentation.sanitize import sanitize

Kind: TypeAlias = Literal["milestone", "task", "decision", "negotiation", "risk", "problem", "log"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MAX_LOGGED: Final = 30
"""Maximum number of the newest log entries to list."""
BAR: Final = 12
"""Maximum number of cells of a progress bar."""
_LINE_END: Final = re.compile(rb"\r\n?|\n")

DONE: Final = 100
DECISION_MARKS: Final = {
    "approved": Span("✓ ", "ok"),
    "rejected": Span("⊘ ", "error"),
    "appealed": Span("◐ ", "warning"),
}


class SummaryItem(NamedTuple):
    """One line of the panel: a heading (``offset`` -1), or an item of the board.

    - ``offset``: the item's place in the board, in bytes.
    - ``state``: a status, or a percentage.
    - ``who``: the agent who wrote, proposed or blocks the item.
    """

    kind: Kind
    offset: int
    state: str
    text: str
    who: str = ""

    @property
    def is_heading(self) -> bool:
        return self.offset < 0


def summary_of(text: str, language: Language) -> list[tuple[str, int, str, str, str]]:
    """Return the items of the board as the fields of `SummaryItem`. Slow for long texts."""
    from watchroom_whiteboards.board_parser import parse_board

    data = text.encode()
    starts = [0, *(match.end() for match in _LINE_END.finditer(data))]
    found = parse_board(text)
    items: list[tuple[str, int, str, str, str]] = []

    def add(kind: Kind, line: int, state: str, words: str, who: str = "") -> None:
        items.append((kind, starts[line - 1], state, words, who))

    for milestone in found.milestones:
        add("milestone", milestone.line, str(DONE if milestone.done else 0), milestone.text)
    for task in found.tasks:
        state = DONE if task.status == "done" else task.progress
        add("task", task.line, str(state), f"#{task.id} {task.description}", task.blockers)
    for decision in found.decisions:
        signed = f" ({', '.join(decision.signers)})" if decision.signers else ""
        words = f"#{decision.id} {decision.content}"
        add("decision", decision.line, decision.status, words, decision.proposer + signed)
    for talk in found.negotiations:
        words = f"#{talk.id} {talk.topic}" + (f" → {talk.conclusion}" if talk.conclusion else "")
        add("negotiation", talk.line, "", words, ", ".join(talk.parties))
    for risk in found.risks:
        add("risk", risk.line, "", risk.text)
    for problem in found.problems:
        add("problem", problem.line, str(problem.line), problem.message(language))
    logged: list[BoardLogEntry | BoardUpdate] = [*found.log, *found.updates]
    logged.sort(key=lambda entry: entry.time, reverse=True)
    for entry in logged[:MAX_LOGGED]:
        when = entry.time.isoformat(timespec="minutes")
        add("log", entry.line, when, entry.text.partition("\n")[0], entry.who)
    return items


def with_headings(items: Sequence[SummaryItem]) -> list[SummaryItem]:
    """Return the items grouped by kind. A heading with the progress is above each kind."""
    return list(_grouped(items))


def _grouped(items: Sequence[SummaryItem]) -> Iterator[SummaryItem]:
    for kind in KINDS:
        mine = [each for each in items if each.kind == kind]
        if mine:
            yield SummaryItem(kind, -1, _progress_text(kind, mine), str(len(mine)))
            yield from mine


def _progress_text(kind: Kind, items: Sequence[SummaryItem]) -> str:
    """Return the progress in per cent, empty for kinds without progress."""
    if kind not in ("milestone", "task"):
        return ""
    return str(round(sum(int(each.state) for each in items) / len(items)))


def summary_lines(item: SummaryItem, width: int, texts: Catalogue) -> list[Line]:
    """Return the item as lines of at most ``width`` cells. Long texts are wrapped. The progress of a task
    follows its text."""
    if item.kind != "task" or item.is_heading:
        return wrapped(_summary_line(item, width, texts), width)
    space = min(BAR, width // 6)
    text, who = Span(sanitize(item.text)), sanitize(item.who)
    end = [Span(f" ⚠ {who}" if who else "", "warning"), Span("  "), *_bar(int(item.state), space)]
    indent = Span("  ")
    free = width - width_of([indent, text, *end])
    if free >= 0:
        return [[indent, text, Span(" " * free), *end]]
    after = max(0, width - width_of([indent, *end]))
    return [*wrapped([indent, text], width), [Span(" " * after), indent, *end]]


def _summary_line(item: SummaryItem, width: int, texts: Catalogue) -> Line:
    text, who = sanitize(item.text), sanitize(item.who)
    if item.is_heading:
        title = f" {texts(f'boards.kind.{item.kind}')} {text}"
        if not item.state:
            return [Span(title, "title")]
        space = max(0, min(BAR, width - cell_len(title) - 8))
        return [Span(fit(title, max(1, width - space - 6)), "title"), *_bar(int(item.state), space)]
    if item.kind == "milestone":
        if item.state == str(DONE):
            return [Span("  ☑ ", "ok"), Span(text, "dim")]
        return [Span("  ☐ ", "dim"), Span(text)]
    if item.kind == "decision":
        return [Span("  "), DECISION_MARKS[item.state], Span(text), Span(f" — {who}", "dim")]
    if item.kind == "problem":
        return [Span(f"  ⚠ {texts('boards.line', line=item.state)} ", "warning"), Span(text, "dim")]
    if item.kind == "log":
        time = item.state.partition("T")[2][:5]
        return [Span(f"  {time} ", "dim"), Span(f"{who} " if who else "", "strong"), Span(text)]
    mark = Span("  • ", "warning" if item.kind == "risk" else "dim")
    return [mark, Span(text), Span(f" — {who}" if who else "", "dim")]


def _bar(percent: int, width: int) -> Line:
    done = round(percent / 100 * width)
    style = "ok" if percent >= DONE else "accent"
    number = Span(fit(f"{percent} %", 6, "right"), "dim")
    return [Span("▰" * done, style), Span("▱" * (width - done), "number"), number]
