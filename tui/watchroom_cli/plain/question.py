"""A need as a question: its lines, the accepted answers, and the calls that answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from watchroom.features.calls.reads import RequestDetails, begin_reviews, read_request
from watchroom.features.needs.rules import NeedAnswer
from watchroom.features.overview.model import Need
from watchroom.features.requests.reviews import Review, find_indivisible
from watchroom.features.requests.rows import Option
from watchroom.features.sessions.view import RequestView
from watchroom.kernel.journal import Journal
from watchroom.kernel.reads import find_content
from watchroom.model import Row
from watchroom.texts import Catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.presentation.sanitize import sanitize, shorten
from watchroom_tui.readers.request import argument_lines
from watchroom_tui.services import person_calls
from watchroom_tui.services.person_calls import PersonCall
from watchroom_tui.worker.main import DiffLine, diff

from watchroom_cli.plain.hunk_review import HUNK_KEYS, HunkReview, UnusableComment

MAX_LINES: Final = 2000
"""Max lines of a difference or a text."""
MAX_LINE_CHARACTERS: Final = 1000
"""Max characters of a line."""
MAX_LEAD_LINES: Final = 6
"""Max lines of arguments shown with the question."""

MAX_HUNK_LINES: Final = 20
"""Max lines of a hunk shown with the question."""


class Question(NamedTuple):
    """A need that can be answered in place.

    - ``lead``: the lines that are always shown.
    - ``details``: the lines that are shown on request.
    - ``keys``: the keys of the answers accepted here, besides the keys of every question.
    - ``options``: the options, which are chosen by number.
    - ``several``: whether several options can be chosen.
    """

    need: Need
    lead: tuple[str, ...]
    details: tuple[str, ...]
    keys: tuple[str, ...]
    options: tuple[Option, ...] = ()
    several: bool = False
    incoming: str = ""
    """The incoming text of a conflict."""
    version: int = 0
    """The current version in a conflict."""
    review: HunkReview = HunkReview()
    """The review of the proposed writes."""


class UnusableAnswer(Exception):
    """The input is not an answer. The exception's text describes the expected input."""


def read_question(
    journal: Journal, need: Need, texts: Catalogue, begun: Mapping[str, Review] = MappingProxyType({})
) -> Question:
    """Return the question for ``need``. Reads the journal.

    ``begun``: the unfinished reviews of its calls, by call id.
    """
    if need.kind == "request":
        return _ask_request(journal, need, texts, begun)
    if "merge" in need.answers:
        return _ask_conflict(journal, need, texts)
    return Question(need, (), tuple(_details(journal, need, texts)), _keys(need))


def review_hunks(question: Question, key: str, text: str, texts: Catalogue) -> Question | None:
    """Return the next question of a review by hunks, None if the input does not belong to the review.

    - ``question``: the current question.
    - ``key``, ``text``: the typed answer.

    Raise `UnusableAnswer`.
    """
    review = question.review
    if key not in question.keys or key not in ("h", *HUNK_KEYS):
        return None
    if key == ";":
        try:
            return _ask_hunk(question, review.comment(text, texts), texts)
        except UnusableComment as problem:
            raise UnusableAnswer(str(problem)) from problem
    decides = key in ("t", "d")
    review = review.decide(takes=key == "t") if decides else review.move(-1 if key == "b" else 1)
    return _ask_hunk(question, review, texts)


def answer_call(question: Question, key: str, text: str, texts: Catalogue, words: Catalogue) -> PersonCall:
    """Return the call that answers ``question``.

    - ``key``, ``text``: the typed answer.
    - ``words``: the catalogue for messages to agents about hunks.

    Raise `UnusableAnswer`.
    """
    row = question.need.row
    if question.options and (key + text).replace(" ", "").replace(",", "").isdecimal():
        return person_calls.choose(row.seq, _chosen(question, f"{key} {text}", texts))
    if key not in question.keys:
        raise UnusableAnswer(texts("watch.unknown", given=shorten(f"{key} {text}".strip(), 60)))
    if key == "w" and not text:
        raise UnusableAnswer(texts("watch.empty"))
    if key == "w" and question.need.kind == "request":
        return person_calls.reply(row.seq, text)
    if key == "w":
        return person_calls.write_message(question.need.agent, text)
    if question.need.kind == "parked" and key in ("a", "p"):
        return person_calls.resume(question.need.agent, at_reset=key == "a")
    if key in ("a", "r") and question.review.is_begun:
        decisions = question.review.decisions(words, approved=key == "a", reason=text)
        return person_calls.decide_calls(row.seq, decisions, text)
    if key in ("a", "r"):
        return person_calls.decide(row.seq, approved=key == "a", reason=text)
    if key == "m":
        return person_calls.acknowledge(row.seq)
    if key == "c":
        return person_calls.take_current(row)
    message = texts("watch.take_message", who=row.actor)
    return person_calls.take_incoming(row, question.incoming, question.version, message)


def keys_line(question: Question, texts: Catalogue) -> str:
    """Return the line with the accepted answers."""
    numbers = "numbers" if question.several else "number"
    first = [texts(f"watch.key.{numbers}", count=len(question.options))] if question.options else []
    is_message = "message" in question.need.answers
    names = {"w": "message_w" if is_message else "w", ";": "comment"}
    if "leave" in question.need.answers:
        names["a"] = "leave_a"
    named = [names.get(key, key) for key in question.keys]
    shown = ["s"] if question.details else []
    keys = [texts(f"watch.key.{key}") for key in (*named, *shown, "l", "help", "q")]
    return texts("watch.separator").join([*first, *keys])


def _chosen(question: Question, typed: str, texts: Catalogue) -> Sequence[str]:
    numbers = [int(each) for each in typed.replace(",", " ").split()]
    if any(not 1 <= each <= len(question.options) for each in numbers):
        raise UnusableAnswer(texts("watch.no_option", count=len(question.options)))
    if len(numbers) > 1 and not question.several:
        raise UnusableAnswer(texts("watch.one_option"))
    return [question.options[each - 1].value for each in dict.fromkeys(numbers)]


_KEYS: Final[Mapping[NeedAnswer, str]] = {
    "approve": "a",
    "reject": "r",
    "reply": "w",
    "message": "w",
    "seen": "m",
    "leave": "a",
}
"""The key to type for each answer. The other answers are typed as numbers, or are not possible here."""


def _keys(need: Need) -> tuple[str, ...]:
    keys = tuple(_KEYS[answer] for answer in need.answers if answer in _KEYS)
    is_resumable = need.kind == "parked" and "resume" in need.answers
    return (*keys, "p") if is_resumable else keys


def _ask_request(journal: Journal, need: Need, texts: Catalogue, begun: Mapping[str, Review]) -> Question:
    asked = RequestView(need.row)
    read = read_request(journal, asked)
    # The sentence about the need already contains a prompt of one line.
    prompt = _indent(read.request.prompt) if read.request.prompt.strip() != need.row.message else []
    lead, details = _bound_lead(prompt, texts), prompt if len(prompt) > MAX_LEAD_LINES else []
    lead += [
        texts("watch.option", number=number, label=shorten(option.label))
        for number, option in enumerate(read.request.options, 1)
    ]
    for position in range(len(read.request.calls)):
        arguments, changes = _call_lines(read, position, texts)
        lead += _bound_lead(arguments, texts)
        details += [*arguments, *changes]
    review = _review(read, begun)
    if review.is_begun:
        lead += _taken_lines(review, texts)
    return Question(
        need,
        tuple(lead),
        tuple(details),
        (*_keys(need), "h") if review.reviews else _keys(need),
        read.request.options,
        read.request.multi,
        review=review,
    )


def _review(read: RequestDetails, begun: Mapping[str, Review]) -> HunkReview:
    """Return the review of the proposed writes. Keep decisions of begun reviews if the text is unchanged."""
    reviews = {
        call: begun[call].carry_over(review.before, review.after, review.hunks) if call in begun else review
        for call, review in begin_reviews(read).items()
    }
    calls = zip(read.request.calls, read.proposals, strict=True)
    paths = {call.id: would.path for call, would in calls if would is not None}
    return HunkReview(read.request.calls, MappingProxyType(paths), MappingProxyType(reviews))


def _ask_hunk(question: Question, review: HunkReview, texts: Catalogue) -> Question:
    """Return the question about the current hunk of ``review``. Ask about all calls if no hunk is current."""
    if review.at is None:
        keys = (*_keys(question.need), "h")
        return question._replace(
            lead=tuple(_taken_lines(review, texts)), details=(), keys=keys, review=review
        )
    place = {"number": review.at + 1, "count": len(review.places), "path": shorten(review.path)}
    head = texts("watch.hunk.declined" if review.is_declined else "watch.hunk.head", **place)
    lines = [
        texts(f"watch.diff.{kind}", number=number) + _shorten_line(text.removesuffix("\n"))
        for kind, number, text in review.lines()[:MAX_LINES]
    ]
    return question._replace(
        lead=(head, *_bound_lead(lines, texts, MAX_HUNK_LINES)),
        details=tuple(lines) if len(lines) > MAX_HUNK_LINES else (),
        keys=HUNK_KEYS,
        review=review,
    )


def _taken_lines(review: HunkReview, texts: Catalogue) -> list[str]:
    """Return a line with the number of taken hunks, and lines about calls that cannot be made in part.
    Approval would reject these calls."""
    comments = sum(len(each.comments) for each in review.reviews.values())
    count = len(review.places)
    return [
        texts("watch.hunk.taken", taken=review.taken, count=count, comments=comments),
        *(
            texts("watch.hunk.not_in_part", call=sanitize(labels.tool_name(call.name, texts)))
            for call in find_indivisible(review.calls, review.reviews)
        ),
    ]


def _bound_lead(lines: list[str], texts: Catalogue, max_lines: int = MAX_LEAD_LINES) -> list[str]:
    """Return the first ``max_lines`` lines, and a line with the number of omitted lines."""
    if len(lines) <= max_lines:
        return lines
    return [*lines[:max_lines], texts("watch.more_lines", count=len(lines) - max_lines)]


def _call_lines(read: RequestDetails, position: int, texts: Catalogue) -> tuple[list[str], list[str]]:
    """Return the lines of a call's arguments, and the lines of the proposed change."""
    call, would = read.request.calls[position], read.proposals[position]
    name = texts("watch.call", label=labels.tool_name(call.name, texts), name=call.name)
    arguments = [sanitize(name), *_indent("\n".join(argument_lines(call, would)))]
    if would is None:
        return arguments, []
    changed = diff(would.before, would.after)
    counts = {kind: sum(line.kind == kind for line in changed) for kind in ("added", "removed")}
    head = would.head
    version = head.version if head else 0
    who = head.actor if head else ""
    write = texts(f"watch.would.{'change' if head else 'make'}", path=would.path, version=version, who=who)
    arguments += [sanitize(write), texts("watch.would.count", **counts)]
    if would.is_stale:
        arguments.append(texts("request.stale", expected=would.expected, current=version))
    elif call.id in read.outdated:
        arguments.append(texts("request.outdated"))
    return arguments, diff_sentences(changed, texts)


def _details(journal: Journal, need: Need, texts: Catalogue) -> list[str]:
    """Return the lines to show for ``need``: of a message, a handoff or a check's output, or of the
    difference that an unchecked write made."""
    row = need.row
    has_text = need.kind in ("message", "handoff", "stalled", "unchecked", "unproven")
    content = find_content(journal, row) if has_text else None
    if need.kind != "unchecked":
        return _indent(content or "")
    before = journal.version(row.zone, row.path, (row.version or 1) - 1)
    return diff_sentences(diff(find_content(journal, before) or "", content or ""), texts)


def _ask_conflict(journal: Journal, need: Need, texts: Catalogue) -> Question:
    row = need.row
    head = journal.head(row.zone, row.path)
    current, incoming = find_content(journal, head) or "", find_content(journal, row) or ""
    is_text = person_calls.has_text(row)
    lead = [_side("current", head, texts), _side("incoming", row, texts)]
    return Question(
        need,
        tuple(lead),
        tuple(diff_sentences(diff(current, incoming), texts)) if is_text else (),
        ("c", "i") if is_text else ("c",),
        incoming=incoming,
        version=(head.version or 0) if head else 0,
    )


def _side(name: str, row: Row | None, texts: Catalogue) -> str:
    if row is None:
        return texts("watch.side.nothing")
    version = row.version if name == "current" else row.base
    key = name if row.message else f"{name}_untold"
    return texts(f"watch.side.{key}", who=sanitize(row.actor), version=version, message=shorten(row.message))


def diff_sentences(lines: Sequence[DiffLine], texts: Catalogue) -> list[str]:
    """Return a diff as sentences: the kind, number and text of each line."""
    told = [
        texts(f"watch.diff.{line.kind}", number=line.old if line.kind == "removed" else line.new)
        + _shorten_line(line.text)
        for line in lines[:MAX_LINES]
        if line.kind != "hunk"
    ]
    if len(lines) > MAX_LINES:
        told.append(texts("request.more", count=len(lines) - MAX_LINES))
    return told or [texts("request.no_changes")]


def _indent(text: str) -> list[str]:
    """Return an agent's text indented, so that its lines cannot imitate lines of Watchroom."""
    return [f"  {_shorten_line(line)}" for line in text.split("\n", MAX_LINES)[:MAX_LINES]] if text else []


def _shorten_line(line: str) -> str:
    shown = line.removesuffix("\r")
    return sanitize(shown if len(shown) <= MAX_LINE_CHARACTERS else shown[: MAX_LINE_CHARACTERS - 1] + "…")
