"""What agents need people for: a decision, a word, an approval; and what they make of the answer."""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from watchroom.model import HUMAN_PREFIX, Json
from watchroom.runtime import ASK_PERSON
from watchroom.simulation import shared
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Change
from watchroom.simulation.material import load
from watchroom.simulation.private import log_down
from watchroom.simulation.steps import (
    Remark,
    Result,
    Script,
    Task,
    entries_in,
    names_in,
    number_in,
    succeeded,
    text_in,
)
from watchroom.simulation.story import piece

_LONGEST: Final = 200
_FEWEST_VERSIONS: Final = 3
_BUSIEST: Final = 3
_PUBLISHER: Final = "writer"


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Question(_Data):
    """A question, and the line in which its answer is kept."""

    kind: Literal["choose", "several", "write"]
    about: str
    ask: str
    line: str
    roles: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def start(self) -> str:
        """How its line starts, whatever is answered."""
        return self.line.partition("{")[0]


class Answers(_Data):
    """Where answers are kept, and what is said there."""

    path: str
    title: str
    message: str
    start: str
    note: str
    note_message: str
    heed: str
    heed_message: str


class Release(_Data):
    """A text that goes out only when a person approves: its draft, and the slots of the next ones."""

    path: str
    message: str
    changes: tuple[str, ...]
    text: str
    next: str
    titles: tuple[str, ...]
    leads: tuple[str, ...]
    quotes: tuple[str, ...]


class Needs(_Data):
    """Everything in people.toml."""

    questions: tuple[Question, ...] = Field(alias="question")
    answers: Answers
    release: Release


@cache
def needs() -> Needs:
    return Needs.model_validate(load("people.toml"))


def kinds_for(desk: AgentContext) -> tuple[str, ...]:
    """What this agent may need people for."""
    if desk.me == _PUBLISHER:
        return ("publish", "roll_back")
    return ("roll_back", *sorted({question.kind for question in _questions(desk)}))


def ask(desk: AgentContext, kind: str) -> Script[None]:
    """Have a person do or decide something of that kind."""
    if kind == "publish":
        yield from _publish(desk)
    elif kind == "roll_back":
        yield from _take_back(desk)
    else:
        yield from _question(desk, kind)


def heed(desk: AgentContext, who: str, text: str) -> Script[None]:
    """Keep what a person said."""
    answers = needs().answers
    yield Task("heed", who)
    line, message = answers.heed.format(who=who, text=text), answers.heed_message.format(who=who)
    yield from log_down(desk, line, message)


def _questions(desk: AgentContext, kind: str = "") -> list[Question]:
    return [
        question
        for question in needs().questions
        if (desk.role in question.roles or not question.roles) and kind in ("", question.kind)
    ]


def _question(desk: AgentContext, kind: str) -> Script[None]:
    """Ask what nobody has decided yet, and write the answer down where all can read it."""
    answers = needs().answers
    yield Task("decided")
    yield from shared.survey(desk)
    found: Result = {}
    if answers.path in desk.shared:
        found = yield from desk.call("collab_read", filepath=answers.path)
    decided = text_in(found, "content")
    questions = _questions(desk, kind)
    question = desk.rng.choice([each for each in questions if each.start not in decided] or questions)
    yield Task("question", question.about)
    options: list[Json] | None = list(question.options) or None
    result = yield from desk.call(
        ASK_PERSON, question=question.ask, options=options, several=True if kind == "several" else None
    )
    if not succeeded(result):
        yield Remark("nobody", {"about": question.about})
        return
    answer = text_in(result, "answer") or desk.listed(names_in(result, "answer"))
    answer = " ".join(answer.split())[:_LONGEST].rstrip(".。")
    who = text_in(result, "by").removeprefix(HUMAN_PREFIX)
    yield Remark("answered", {"who": who, "answer": answer, "file": answers.path})
    lines = (decided or answers.title).rstrip("\n").split("\n")
    kept = [line for line in lines if not line.startswith(question.start)]
    change = Change(
        "\n".join((*kept, question.line.format(answer=answer, who=who))) + "\n",
        answers.message.format(who=who, about=question.about) if decided else answers.start,
    )
    yield from shared.commit(desk, answers.path, decided, change, number_in(found, "version"))


def _publish(desk: AgentContext) -> Script[None]:
    """Rework the press release; a person decides whether it goes out so."""
    release = needs().release
    yield Task("draft")
    yield from shared.survey(desk)
    if release.path not in desk.shared:
        draft = Change(release.text.lstrip("\n"), release.message)
        yield from shared.commit(desk, release.path, "", draft, 0)
    yield Task("publish", asks=("collab_write",))
    found = yield from desk.call("collab_read", filepath=release.path)
    filling = desk.author.filling()
    parts = {
        "title": filling.one_of(release.titles),
        "lead": filling.one_of(release.leads),
        "quote": filling.one_of(release.quotes),
    }
    text = desk.author.material.filling(desk.rng, **{**filling, **parts})(release.next.lstrip("\n"))
    result = yield from desk.call(
        "collab_write",
        filepath=release.path,
        content=text,
        message=filling.one_of(release.changes),
        expected_version=number_in(found, "version"),
    )
    yield from _take_in(desk, release.path, result)


def _take_back(desk: AgentContext) -> Script[None]:
    """Take back the last changes of a file that has many of them, if a person agrees."""
    yield Task("roll_back", asks=("collab_rollback",))
    left_alone = (piece("announcement").filename, needs().release.path, needs().answers.path)
    found = yield from shared.survey(desk)
    versions = {
        text_in(entry, "filepath"): number_in(entry, "version") for entry in entries_in(found, "files")
    }
    fitting = [
        (version, path)
        for path, version in versions.items()
        if version >= _FEWEST_VERSIONS and path not in left_alone
    ]
    if not fitting:
        return
    version, path = desk.rng.choice(sorted(fitting)[-_BUSIEST:])
    yield from desk.call("collab_history", filepath=path, limit=5)
    target = version - desk.rng.randint(1, 2)
    message = desk.say("rollback", version=target)
    result = yield from desk.call("collab_rollback", filepath=path, to_version=target, message=message)
    yield from _take_in(desk, path, result)


def _take_in(desk: AgentContext, path: str, result: Result) -> Script[None]:
    """What became of an act that a person had to approve."""
    answers = needs().answers
    if result.get("error") == "no_answer":
        yield Remark("expired", {"file": path})
    elif result.get("error") == "rejected":
        reason = text_in(result, "message").replace(HUMAN_PREFIX, "")
        yield Remark("rejected", {"file": path, "problem": reason})
        line = answers.note.format(file=path, reason=reason)
        yield from log_down(desk, line, answers.note_message.format(file=path))
    elif succeeded(result):
        kind = "edited" if "edited" in result else "approved"
        version = number_in(result, "version") or number_in(result, "new_version")
        yield Remark(kind, {"file": path, "version": version})
