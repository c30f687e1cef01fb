"""How an agent's entries on whiteboards come about: from what stands in a section to what should. Pure.

Each section stays short: what is done or old is dropped, and stays in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

from watchroom.simulation.growing import Author
from watchroom.simulation.material import load
from watchroom.simulation.page import ENTRY, Part, entries_of, joined, lines_of, next_number, parts_of

_FEWEST_RUNNING: Final = 2
_MOST_RUNNING: Final = 4
_MOST_DONE: Final = 3
_MOST_NEGOTIATIONS: Final = 4
_MOST_DECISIONS: Final = 6
_MOST_OPEN: Final = 5
_MOST_REACHED: Final = 4
_MOST_RISKS: Final = 5
_MOST_KNOWN: Final = 4
_TRIES: Final = 5
_MOST_LINES: Final = 14
_KEPT_LINES: Final = 8
MOST_UPDATES: Final = 16
"""With so many signed entries the global board is full."""
_KEPT_UPDATES: Final = 8
_OPEN: Final = "- [ ] "
_REACHED: Final = "- [x] "

Kind: TypeAlias = Literal[
    "overview",
    "goals",
    "decisions",
    "milestones",
    "team",
    "risks",
    "update_log",
    "basics",
    "tasks",
    "negotiations",
    "knowledge",
    "execution_log",
]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Phrases(_Data):
    """What is written in one language."""

    task: str
    tasks: tuple[str, ...]
    plans: tuple[str, ...]
    areas: tuple[str, ...]
    blockers: tuple[str, ...]
    begun: tuple[str, ...]
    grown: tuple[str, ...]
    done: tuple[str, ...]
    negotiation: str
    negotiations: tuple[tuple[str, str], ...]
    decision: str
    decisions: tuple[str, ...]
    statuses: tuple[str, ...]
    milestones: tuple[str, ...]
    risks: tuple[str, ...]
    updates: tuple[str, ...]
    led: tuple[str, str]
    noted: tuple[str, ...]
    condensed: str
    settled: str
    message: str
    name: str
    none_yet: str
    knowledge: tuple[tuple[str, str], ...]
    overview: str
    goals: str
    duties: Mapping[str, str]


class Book(_Data):
    """Everything in keeping.toml. Of each pair the English word comes first."""

    headings: Mapping[Kind, tuple[str, str]]
    fields: Mapping[Literal["description", "status", "progress", "blockers", "topic"], tuple[str, str]]
    states: Mapping[Literal["in_progress", "done", "none"], tuple[str, str]]
    en: Phrases
    zh: Phrases


@cache
def book() -> Book:
    return Book.model_validate(load("keeping.toml"))


def kind_of(title: str) -> Kind | None:
    """What a section of that heading is about, None: one that its writer thought up."""
    return next((kind for kind, titles in book().headings.items() if title in titles), None)


class Written(NamedTuple):
    """What a section should hold, and what is to be said of it in a log."""

    body: str
    note: str = ""


Change: TypeAlias = Callable[[str], Written]


class Pen:
    """The hand of ``me``, who ``leads`` others or works alone. ``now`` is the time that it writes down."""

    def __init__(self, me: str, author: Author, now: str, *, leads: bool, chinese: bool) -> None:
        self.me = me
        self.leads = leads
        self._author = author
        self._rng = author.rng
        self._now = now
        self._place = 1 if chinese else 0
        self.phrases = book().zh if chinese else book().en

    def heading(self, kind: Kind) -> str:
        return book().headings[kind][self._place]

    # -- what a layer keeps

    def tasks(self, body: str) -> Written:
        """Go on with a task, or begin one."""
        parts = entries_of(body)
        is_new = not any(part.number for part in parts)
        running = self._running(parts)
        note = ""
        if running and (len(running) >= _MOST_RUNNING or self._rng.random() < 0.8):
            at = self._rng.choice(running)
            parts[at], note = self._grown(parts[at])
        while not note or len(self._running(parts)) < _FEWEST_RUNNING:
            new, begun = self._begun(parts, self._rng.randint(10, 60) if is_new else 0)
            parts.append(new)
            note = note or begun
        old = [part for part in parts if part.number and self._percent(part) == 100][:-_MOST_DONE]
        return Written(joined([part for part in parts if part not in old], ENTRY), note)

    def negotiation(self, body: str) -> Written:
        """Keep what was agreed with a colleague or is open, in the place of what was said on it before."""
        filling = self._author.filling()
        topic, conclusion = map(filling, self._rng.choice(self.phrases.negotiations))
        parts = entries_of(body)
        number = next_number(parts)
        parts = [part for part in parts if part.value(book().fields["topic"]) != _capital(topic)]
        parties = [self.me, *self._rng.sample(self._author.team, min(len(self._author.team), 2))]
        entry = self.phrases.negotiation.format(
            number=number,
            time=self._now,
            names=", ".join(parties[: self._rng.randint(2, 3)]),
            topic=_capital(topic),
            conclusion=conclusion,
        )
        return Written(_with_entry(parts, entry, _MOST_NEGOTIATIONS))

    def insight(self, body: str) -> Written:
        """Write down what was learnt."""
        parts = entries_of(body)
        filling = self._author.filling()
        title, text = self._rng.choice(self.phrases.knowledge)
        new = Part(_capital(filling(title)), filling(text))
        parts = [part for part in parts if part.title != new.title]
        return Written(_with_entry(parts, joined([new], ENTRY), _MOST_KNOWN))

    def logged(self, body: str, note: str) -> Written:
        """Put a line into the log."""
        lines = lines_of(body)
        return Written("\n".join([*_newest(lines, _MOST_LINES, _KEPT_LINES), f"- [{self._now}] {note}"]))

    def duties(self, body: str) -> Written:
        duties = self.phrases.duties
        return Written(body.replace("{responsibilities}", duties.get(self._author.role, duties["other"])))

    # -- what the global board holds

    def decision(self, body: str) -> Written:
        """Put a decision on record."""
        parts = entries_of(body)
        words = self._words(self.phrases.decisions)
        signers = [self.me, *self._rng.sample(self._author.team, min(len(self._author.team), 3))]
        entry = self.phrases.decision.format(
            number=next_number(parts),
            time=self._now,
            proposer=self._rng.choice(signers),
            words=words,
            names=", ".join(signers[: self._rng.randint(1, 4)]),
            status=self._rng.choice(self.phrases.statuses),
        )
        return Written(_with_entry(parts, entry, _MOST_DECISIONS), words)

    def milestones(self, body: str) -> Written:
        """Tick off the next milestone, or name a new one."""
        lines = lines_of(body)
        still = [at for at, line in enumerate(lines) if line.startswith(_OPEN)]
        reached, new = self.phrases.led
        if still and (len(still) >= _MOST_OPEN or self._rng.random() < 0.45):
            words = lines[still[0]].removeprefix(_OPEN)
            lines[still[0]] = _REACHED + words
            note = reached.format(words=words)
        else:
            words = self._words(self.phrases.milestones, {line[len(_OPEN) :] for line in lines})
            lines.append(_OPEN + words)
            note = new.format(words=words)
        old = [line for line in lines if line.startswith(_REACHED)][:-_MOST_REACHED]
        return Written("\n".join(line for line in lines if line not in old), note)

    def first_milestones(self, body: str) -> Written:
        """The milestones of a board that is new: some ahead, one reached."""
        for _ in range(4):
            body = self.milestones(body).body
        if _REACHED not in body:
            body = body.replace(_OPEN, _REACHED, 1)
        return Written(body)

    def risks(self, body: str) -> Written:
        """Name a risk; the oldest one is settled when there are many."""
        lines = lines_of(body)
        line = self._words(self.phrases.risks, lines)
        kept = [each for each in lines if each != line]
        note = self._author.filling().one_of(self.phrases.noted)
        return Written("\n".join([*_newest(kept, _MOST_RISKS, _MOST_RISKS - 1), line]), note)

    def led(self, body: str, note: str) -> Written:
        """Put a line into the log above the signed entries; the oldest of them go when there are many."""
        (above, *updates) = parts_of(body, ENTRY)
        old = updates[:-_KEPT_UPDATES] if len(updates) >= MOST_UPDATES else []
        lines = _newest(lines_of(above.body), _MOST_LINES, _KEPT_LINES)
        told = [note, *([self.phrases.condensed.format(count=len(old))] if old else [])]
        lines += [f"- [{self._now}] {self.me}: {each}" for each in told]
        return Written(joined([Part("", "\n".join(lines)), *updates[len(old) :]], ENTRY))

    def overview(self, body: str) -> Written:
        return Written(self.phrases.overview.strip().format(time=self._now))

    def goals(self, body: str) -> Written:
        return Written(self.phrases.goals.strip())

    def team(self, body: str) -> Written:
        """Say who does what, as far as it is left open."""
        lines = (
            line.replace("{task}", self._author.filling().one_of(self.phrases.areas))
            if "{task}" in line
            else line
            for line in body.split("\n")
        )
        return Written("\n".join(lines))

    def update(self) -> str:
        """An entry that will be signed."""
        return _capital(self._author.filling().one_of(self.phrases.updates))

    def nothing_yet(self, body: str) -> Written:
        return Written(self.phrases.none_yet)

    # -- in parts

    def _words(self, templates: Sequence[str], known: Collection[str] = ()) -> str:
        """What one of the templates says, as far as possible not what is there."""
        tries = [_capital(self._author.filling().one_of(templates)) for _ in range(_TRIES if known else 1)]
        return next((words for words in tries if words not in known), tries[0])

    def _running(self, parts: Sequence[Part]) -> list[int]:
        return [at for at, part in enumerate(parts) if part.number and 0 <= self._percent(part) < 100]

    def _begun(self, parts: Sequence[Part], percent: int) -> tuple[Part, str]:
        states, known = book().states, {part.value(book().fields["description"]) for part in parts}
        words = self._words(self.phrases.plans if self.leads else self.phrases.tasks, known)
        number = next_number(parts)
        text = self.phrases.task.strip().format(
            number=number,
            words=words,
            status=states["in_progress"][self._place],
            percent=percent,
            blockers=states["none"][self._place],
        )
        (_, part) = parts_of(text, ENTRY)
        return part, self._told(self.phrases.begun, number=number, words=words)

    def _grown(self, part: Part) -> tuple[Part, str]:
        """A task after some work on it, and what is told of that."""
        fields, states, place = book().fields, book().states, self._place
        percent = min(100, self._percent(part) + self._rng.randint(8, 34))
        part = part.with_value(fields["progress"], f"{percent}%")
        blockers = states["none"][place]
        if percent == 100:
            part = part.with_value(fields["status"], states["done"][place])
        elif self._rng.random() < 0.25:
            blockers = self._author.filling().one_of(self.phrases.blockers)
        part = part.with_value(fields["blockers"], blockers)
        templates = self.phrases.done if percent == 100 else self.phrases.grown
        words = part.value(fields["description"])
        return part, self._told(templates, number=part.number, percent=percent, words=words)

    def _told(self, templates: Sequence[str], **given: object) -> str:
        return self._author.filling(**given).one_of(templates)

    def _percent(self, part: Part) -> int:
        """How far a task is, -1 where it does not say."""
        digits = part.value(book().fields["progress"]).removesuffix("%").strip()
        return int(digits) if digits.isdecimal() else -1


def _with_entry(parts: Sequence[Part], entry: str, most: int) -> str:
    numbered = [part for part in parts if part.title]
    old = numbered[: len(numbered) + 1 - most] if len(numbered) >= most else []
    kept = joined([part for part in parts if part not in old], ENTRY)
    return "\n\n".join(filter(None, (kept, entry.strip())))


def _newest(lines: list[str], most: int, kept: int) -> list[str]:
    return lines[-kept:] if len(lines) >= most else lines


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
