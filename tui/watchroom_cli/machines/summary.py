"""The state of a workspace for another machine, as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from watchroom.errors import JournalError
from watchroom.features.calls.reads import RequestDetails, find_request, read_request
from watchroom.features.overview.agents import AgentView, order_agents
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.kernel.journal import Journal
from watchroom.serving.machines.answers import checksum_of
from watchroom.serving.machines.messages import (
    MAX_AGENTS,
    MAX_DETAILS,
    MAX_LINE,
    MAX_LINE_CHARACTERS,
    MAX_NEEDS,
    MAX_OPTIONS,
    FarAgent,
    FarAnswer,
    FarNeed,
    FarOption,
    FarSummary,
    dump_line,
)
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.need_texts import need_kind, need_sentence
from watchroom_tui.formatters.needs import need_matter, need_party
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.request import RequestPage
from watchroom_tui.worker.main import diff

_ANSWERS: Final[tuple[FarAnswer, ...]] = ("approve", "reject", "reply", "choose", "seen")
_MAX_ID: Final = 200
_MAX_SHORT: Final = 500


class _Page(NamedTuple):
    """A request as the other machine shows it."""

    lines: tuple[str, ...]
    is_cut: bool
    options: tuple[FarOption, ...]
    multi: bool
    is_simple: bool
    shown: str


class SummaryMaker:
    """Makes summaries of the models of ``journal``, with ``texts``."""

    def __init__(self, journal: Journal, texts: Catalogue) -> None:
        self._journal = journal
        self._texts = texts
        self._pages: dict[int, _Page | None] = {}
        self._pages_at = -1

    def __call__(self, model: Model) -> FarSummary:
        now = model.time
        agents, needs = order_agents(model.agents, now), urgent_needs(model, now)
        if model.seq != self._pages_at:
            # Every row can change what a call would write.
            self._pages.clear()
            self._pages_at = model.seq
        listed = [self._need(each) for each in needs[:MAX_NEEDS]]
        while True:
            summary = FarSummary(
                time=now,
                agents=tuple(self._agent(each, now) for each in agents[:MAX_AGENTS]),
                needs=tuple(listed),
                more_agents=max(0, len(agents) - MAX_AGENTS),
                more_needs=len(needs) - len(listed),
            )
            if len(dump_line(summary)) <= MAX_LINE or not listed:
                return summary
            # The details of many long requests do not fit into one line.
            listed = listed[: len(listed) // 2]

    def _agent(self, view: AgentView, now: int) -> FarAgent:
        said = labels.agent_status_text(view, now, self._texts)
        if not said and view.last is not None:
            said = " ".join(span.text for span in labels.activity_spans(view.last, self._texts))
        text = sanitize(said)[:_MAX_SHORT]
        return FarAgent(
            id=view.agent.id[:_MAX_ID], status=view.status(now), text=text, heard=max(0, view.last_heard)
        )

    def _need(self, need: Need) -> FarNeed:
        texts = self._texts
        page = self._page(need) if need.kind == "request" else None
        answers = [each for each in _ANSWERS if each in need.answers]
        if need.kind == "request" and page is None:
            # The request cannot be read, so nobody could see what is answered.
            answers = []
        elif page is not None and page.is_cut:
            answers = [each for each in answers if each == "reject"]
        sentence = need_sentence(need, texts)
        lines, is_cut = _bounded([sentence]) if page is None else (page.lines, page.is_cut)
        return FarNeed(
            row=need.row.seq,
            kind=need_kind(need, texts)[:_MAX_SHORT],
            party=need_party(need, texts).text[:_MAX_SHORT],
            matter=need_matter(need, texts)[:_MAX_SHORT],
            agent=need.agent[:_MAX_ID],
            opened=max(0, need.opened_at or need.row.time),
            deadline=need.deadline or 0,
            answers=tuple(answers),
            details=lines,
            is_cut=is_cut,
            options=page.options if page else (),
            multi=page.multi if page else False,
            is_simple=page.is_simple if page else False,
            shown=page.shown if page else "",
        )

    def _page(self, need: Need) -> _Page | None:
        """Return the request of ``need``, None if it cannot be read."""
        number = need.row.seq
        if number not in self._pages:
            try:
                asked = find_request(self._journal, number)
                page = None if asked is None else self._draw(read_request(self._journal, asked))
            except JournalError:
                page = None
            self._pages[number] = page
        return self._pages[number]

    def _draw(self, details: RequestDetails) -> _Page:
        changes = [diff(would.before, would.after) if would else None for would in details.proposals]
        rows = RequestPage(details, changes, self._texts).rows({})
        lines, is_cut = _bounded("".join(span.text for span in row.line).rstrip() for row in rows)
        offered = details.request.options
        is_cut = is_cut or len(offered) > MAX_OPTIONS or any(len(each.value) > _MAX_SHORT for each in offered)
        options = [
            FarOption(label=each.label[:_MAX_SHORT], value=each.value[:_MAX_SHORT]) for each in offered
        ]
        is_stale = bool(details.outdated) or any(would and would.is_stale for would in details.proposals)
        return _Page(
            lines,
            is_cut,
            tuple(options[:MAX_OPTIONS]),
            details.request.multi,
            is_simple=len(details.request.calls) == 1 and not is_stale and not is_cut,
            shown=checksum_of(details),
        )


def _bounded(lines: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return ``lines`` within the bounds of the protocol, and whether something is left out. Long lines are
    folded."""
    found: list[str] = []
    for line in lines:
        starts = range(0, max(1, len(line)), MAX_LINE_CHARACTERS)
        found += [line[start : start + MAX_LINE_CHARACTERS] for start in starts]
        if len(found) > MAX_DETAILS:
            return tuple(found[:MAX_DETAILS]), True
    return tuple(found), False
