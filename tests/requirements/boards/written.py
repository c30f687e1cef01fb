"""Boards that are written from known items, as agents write them: in English, in Chinese, or in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, NamedTuple

from hypothesis import strategies as st
from watchroom.texts import LANGUAGES, Language
from watchroom_whiteboards.items import (
    BoardDecision,
    BoardItems,
    BoardLogEntry,
    BoardMilestone,
    BoardNegotiation,
    BoardRisk,
    BoardTask,
    BoardUpdate,
)
from watchroom_whiteboards.vocabulary import FIELDS, HEADINGS, SectionKind

WORDS: Final[Mapping[str, Mapping[Language, str]]] = {
    "decision": {"zh": "决策", "en": "Decision"},
    "task": {"zh": "任务", "en": "Task"},
    "negotiation": {"zh": "协商记录", "en": "Negotiation"},
    "update": {"zh": "更新", "en": "Update"},
    "approved": {"zh": "已批准", "en": "approved"},
    "rejected": {"zh": "被否决", "en": "Rejected"},
    "appealed": {"zh": "申诉中", "en": "under appeal"},
    "in_progress": {"zh": "进行中", "en": "In progress"},
    "done": {"zh": "已完成", "en": "done"},
}


class Written(NamedTuple):
    """A board's text and what it says."""

    text: str
    items: BoardItems


class Pen:
    """Writes line after line, each in the next of its languages."""

    def __init__(self, languages: Sequence[Language]) -> None:
        self._lines: list[str] = []
        self._languages = languages
        self._turn = 0

    def _language(self) -> Language:
        self._turn += 1
        return self._languages[self._turn % len(self._languages)]

    def word(self, word: str) -> str:
        return WORDS[word][self._language()]

    def write(self, *lines: str) -> int:
        """The line on which the first of them stands."""
        self._lines += lines
        return len(self._lines) - len(lines) + 1

    def section(self, kind: SectionKind) -> None:
        self.write("", f"## {HEADINGS[kind][self._language()]}")

    def entry(self, kind: str, name: str, **fields: str) -> int:
        first = self.write(f"### {self.word(kind)} #{name}")
        for field, value in fields.items():
            self.field("- ", field, value)
        self.write("")
        return first

    def field(self, before: str, field: str, value: str) -> None:
        by_language = {str(name): spoken for name, spoken in FIELDS.items()}[field]
        self.write(f"{before}**{by_language[self._language()]}**: {value}")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def written(said: BoardItems, languages: Sequence[Language]) -> Written:
    """A board that says what ``said`` does, and the same with the lines where each item stands."""
    pen = Pen(languages)
    pen.write("# A board", "", "```", "## Milestones", "- [ ] this is code", "```")
    pen.section("decisions")
    decisions = [
        item._replace(
            line=pen.entry(
                "decision",
                item.id,
                time=item.time.isoformat(),
                proposer=item.proposer,
                content=item.content,
                signers="，".join(item.signers),
                status=pen.word(item.status),
            )
        )
        for item in said.decisions
    ]
    pen.section("milestones")
    milestones = [
        item._replace(line=pen.write(f"- [{'x' if item.done else ' '}] {item.text}"))
        for item in said.milestones
    ]
    pen.section("tasks")
    tasks = [
        item._replace(
            line=pen.entry(
                "task",
                item.id,
                description=item.description,
                status=pen.word(item.status),
                progress=f"{item.progress}%",
                blockers=item.blockers,
            )
        )
        for item in said.tasks
    ]
    pen.section("negotiations")
    negotiations = [
        item._replace(
            line=pen.entry(
                "negotiation",
                item.id,
                time=item.time.isoformat(),
                parties=", ".join(item.parties),
                topic=item.topic,
                conclusion=item.conclusion,
            )
        )
        for item in said.negotiations
    ]
    pen.section("risks")
    risks = [item._replace(line=pen.write(f"- {item.text}")) for item in said.risks]
    pen.section("update_log")
    log = [
        item._replace(line=pen.write(f"- [{item.time.isoformat()}] {item.who}: {item.text}"))
        for item in said.log
    ]
    updates = [item._replace(line=_appended(pen, item)) for item in said.updates]
    return Written(
        pen.text(),
        BoardItems(
            tuple(decisions),
            tuple(milestones),
            tuple(tasks),
            tuple(negotiations),
            tuple(risks),
            tuple(log),
            tuple(updates),
        ),
    )


def _appended(pen: Pen, item: BoardUpdate) -> int:
    pen.write("")
    first = pen.write(f"### {pen.word('update')} - {item.time.isoformat()}")
    pen.field("", "author", item.who)
    pen.write("", item.text)
    return first


# Words without marks of Markdown.
words = st.builds(
    lambda first, rest: " ".join((first + rest).split()),
    st.sampled_from("abXY数据"),
    st.text("abcdefgh XYZ数据库迁移计划é🙂0123456789%()/:：，,", max_size=30),
)
names = st.text("abcxyz", min_size=1, max_size=6).map(lambda name: f"agent-{name}")
ids = st.from_regex(r"[0-9]{1,3}|[A-Z]-[0-9]", fullmatch=True)
zones = st.sampled_from([UTC, timezone(timedelta(hours=8)), timezone(-timedelta(minutes=210))])
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=zones)
parties = st.lists(names, max_size=3).map(tuple)
maybe = st.just("") | words
nowhere = st.just(0)
decisions = st.builds(
    BoardDecision,
    nowhere,
    ids,
    times,
    names,
    words,
    parties,
    st.sampled_from(["approved", "rejected", "appealed"]),
)
tasks = st.builds(
    BoardTask, nowhere, ids, words, st.sampled_from(["in_progress", "done"]), st.integers(0, 100), maybe
)
negotiations = st.builds(BoardNegotiation, nowhere, ids, times, parties.filter(bool), words, maybe)
log = st.lists(st.builds(BoardLogEntry, nowhere, times, names, words), max_size=4)
updates = st.lists(st.builds(BoardUpdate, nowhere, times, names, words), max_size=4)
board_items = st.builds(
    BoardItems,
    st.lists(decisions, max_size=4, unique_by=lambda item: item.id).map(tuple),
    st.lists(st.builds(BoardMilestone, nowhere, words, st.booleans()), max_size=4).map(tuple),
    st.lists(tasks, max_size=4, unique_by=lambda item: item.id).map(tuple),
    st.lists(negotiations, max_size=4, unique_by=lambda item: item.id).map(tuple),
    st.lists(st.builds(BoardRisk, nowhere, words), max_size=4).map(tuple),
    log.map(tuple),
    updates.map(tuple),
)
languages = st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=7)
boards = st.builds(written, board_items, languages)
