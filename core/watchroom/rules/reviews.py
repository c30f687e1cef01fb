"""The review of what a call would write: which changes a person takes, and what they say of its lines. Pure.

A hunk is one change: lines that stand together and differ. Any choice of hunks gives a text, since each
replaces lines of its own of the text before.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from watchroom.merge import LineChange, split_lines
from watchroom.rules.proposals import replace_content
from watchroom.rules.requests import CallDecision, PendingCall, parse_arguments
from watchroom.texts import Catalogue

MOST_COMMENTS: Final = 100
MOST_COMMENT_CHARACTERS: Final = 1000
MOST_REASON_CHARACTERS: Final = 20_000
"""Of all that is said of one call."""
_NOTHING_EDITED: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_RANGES: Final = 300
_MOST_QUOTED: Final = 80


class LineKey(NamedTuple):
    """A line, counted from 0, of the text that a call would write; with ``is_old`` of the one that it would
    replace."""

    line: int
    is_old: bool = False


class LineComment(NamedTuple):
    """What a person says of a line."""

    key: LineKey
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """A review of the change from ``before`` to ``after``, whose ``hunks`` are in order. ``declined`` are the
    indices of those that are not taken; ``comments`` are in the order of their lines."""

    before: str
    after: str
    hunks: tuple[LineChange, ...]
    declined: frozenset[int] = frozenset()
    comments: tuple[LineComment, ...] = ()

    @property
    def taken(self) -> int:
        """How many hunks are taken."""
        return len(self.hunks) - len(self.declined)

    @property
    def is_begun(self) -> bool:
        """Whether the person has said anything: without that, all is taken."""
        return bool(self.declined or self.comments)

    @property
    def is_partial(self) -> bool:
        """Whether some hunks are taken, and others are not."""
        return 0 < len(self.declined) < len(self.hunks)

    @property
    def is_rejected(self) -> bool:
        """Whether there are hunks, and none is taken."""
        return bool(self.hunks) and not self.taken

    def toggle(self, hunk: int) -> Review:
        """The review in which ``hunk`` (an index) is declined if it was taken, and taken if it was
        declined. Raises IndexError where there is no such hunk."""
        if not 0 <= hunk < len(self.hunks):
            raise IndexError(hunk)
        return replace(self, declined=self.declined ^ {hunk})

    def comment(self, key: LineKey, text: str) -> Review:
        """The review in which ``text`` is what is said of the line ``key``; nothing if it is empty. Raises
        ValueError for more than `MOST_COMMENTS` comments, or `MOST_COMMENT_CHARACTERS`."""
        others = [each for each in self.comments if each.key != key]
        said = text.strip()
        if len(said) > MOST_COMMENT_CHARACTERS or (said and len(others) >= MOST_COMMENTS):
            raise ValueError(f"{len(others)} comments, {len(said)} characters")
        added = [LineComment(key, said)] if said else []
        return replace(self, comments=tuple(sorted([*others, *added], key=lambda each: each.key)))

    def comment_on(self, key: LineKey) -> str:
        """What is said of the line ``key``, empty for nothing."""
        return next((each.text for each in self.comments if each.key == key), "")

    def line(self, key: LineKey) -> str | None:
        """The line ``key`` with its end, None where there is none."""
        return _Lines.of(self).at(key)

    def hunk_of(self, key: LineKey) -> int | None:
        """The index of the hunk that adds the line ``key``, or removes it; None if none does."""
        if key.is_old:
            index = bisect_right(self.hunks, key.line, key=lambda hunk: hunk.old_end)
            begins = index < len(self.hunks) and self.hunks[index].old_start <= key.line
        else:
            index = bisect_right(self.hunks, key.line, key=lambda hunk: hunk.new_end)
            begins = index < len(self.hunks) and self.hunks[index].new_start <= key.line
        return index if begins else None

    def carry_over(self, before: str, after: str, hunks: Sequence[LineChange]) -> Review:
        """The review of the change from ``before`` to ``after``, with its ``hunks``, that says the same: the
        same hunks are declined, wherever they stand by now, and comments are on the lines that stay."""
        if (before, after) == (self.before, self.after):
            return self
        moved = Review(before, after, tuple(hunks))
        mine, theirs = _Lines.of(self), _Lines.of(moved)
        declined = {mine.of_hunk(self.hunks[index]) for index in self.declined}
        again = [index for index, hunk in enumerate(moved.hunks) if theirs.of_hunk(hunk) in declined]
        comments = [each for each in self.comments if mine.at(each.key) == theirs.at(each.key)]
        return replace(moved, declined=frozenset(again), comments=tuple(comments))

    def text(self) -> str:
        """The text with the hunks that are taken, and without the others."""
        if not self.declined:
            return self.after
        whole = _Lines.of(self)
        lines: list[str] = []
        at = 0
        for index, hunk in enumerate(self.hunks):
            before, after = whole.of_hunk(hunk)
            lines += whole.old[at : hunk.old_start]
            lines += before if index in self.declined else after
            at = hunk.old_end
        return "".join((*lines, *whole.old[at:]))


class _Lines(NamedTuple):
    """Both texts of a review as lines."""

    old: Sequence[str]
    new: Sequence[str]

    @classmethod
    def of(cls, review: Review) -> _Lines:
        return cls(split_lines(review.before), split_lines(review.after))

    def at(self, key: LineKey) -> str | None:
        lines = self.old if key.is_old else self.new
        return lines[key.line] if key.line < len(lines) else None

    def of_hunk(self, hunk: LineChange) -> tuple[tuple[str, ...], tuple[str, ...]]:
        old, new = self.old[hunk.old_start : hunk.old_end], self.new[hunk.new_start : hunk.new_end]
        return tuple(old), tuple(new)


def decide_call(call: PendingCall, review: Review, texts: Catalogue) -> CallDecision:
    """The decision on ``call`` that ``review`` comes to, with what its model is told in the words of
    ``texts``.

    The call is approved with the hunks that are taken, and rejected where none is, or where its arguments
    cannot say only these."""
    is_whole = not review.declined
    arguments = None if is_whole else write_taken(call, review)
    is_approved = is_whole or arguments is not None
    reason = describe_review(review, texts, is_writable=is_approved)
    return CallDecision(call.id, is_approved, reason, arguments)


def decide_calls(
    calls: Iterable[PendingCall],
    reviews: Mapping[str, Review],
    texts: Catalogue,
    *,
    approved: Container[str],
    edited: Mapping[str, str] = _NOTHING_EDITED,
) -> list[CallDecision]:
    """The decisions on all ``calls`` of a request, of which those in ``approved`` (ids) are approved: with
    other arguments where ``edited`` has any (JSON), else with what their review in ``reviews`` takes. What is
    said of lines is told of the others too, in the words of ``texts``."""
    decisions = []
    for call in calls:
        review = reviews.get(call.id)
        if call.id in approved and call.id not in edited and review is not None:
            decisions.append(decide_call(call, review, texts))
        else:
            said = describe_comments(review, texts) if review is not None else ""
            decisions.append(CallDecision(call.id, call.id in approved, said, edited.get(call.id)))
    return decisions


def reject_calls(
    calls: Iterable[PendingCall], reviews: Mapping[str, Review], texts: Catalogue, reason: str
) -> list[CallDecision]:
    """The decisions that reject all ``calls`` for ``reason``, each with what its review in ``reviews`` says
    of lines, in the words of ``texts``."""
    decisions = []
    for call in calls:
        review = reviews.get(call.id)
        said = describe_comments(review, texts) if review is not None else ""
        decisions.append(CallDecision(call.id, False, "\n".join(each for each in (reason, said) if each)))
    return decisions


def can_write_part(call: PendingCall, after: str) -> bool:
    """Whether ``call``, which would write the text ``after``, can be made with some of its hunks alone."""
    arguments = parse_arguments(call.arguments)
    replaced = replace_content(call.name, arguments, "")
    return replaced is not None and arguments.get("content") == after


def find_indivisible(calls: Iterable[PendingCall], reviews: Mapping[str, Review]) -> list[PendingCall]:
    """Return those of ``calls`` of which ``reviews`` (by call id) takes a part that the call cannot write
    alone. `decide_call` rejects these."""
    return [
        call
        for call in calls
        if (review := reviews.get(call.id)) is not None
        and review.is_partial
        and not can_write_part(call, review.after)
    ]


def write_taken(call: PendingCall, review: Review) -> str | None:
    """The arguments (JSON) with which ``call`` writes only the hunks that are taken in ``review``; None where
    these are all or none, or where its arguments cannot say it."""
    if not review.is_partial or not can_write_part(call, review.after):
        return None
    taken = replace_content(call.name, parse_arguments(call.arguments), review.text())
    return json.dumps(taken, ensure_ascii=False)


def describe_review(review: Review, texts: Catalogue, *, is_writable: bool = True) -> str:
    """What ``review`` comes to, in the words of ``texts``, for the agent that made the call: which hunks were
    taken and which were not, by their lines, and each comment; empty if the person has said nothing.

    ``is_writable``: the call can be made with the hunks that are taken alone. Without that it is not made."""
    lines = []
    if review.is_partial:
        key = "review.partly_taken" if is_writable else "review.not_in_part"
        count = len(review.hunks)
        lines = [texts(key, taken=review.taken, count=count, declined=len(review.declined))]
        lines.append(texts("review.declined", places=_describe_places(review, texts, is_declined=True)))
        lines.append(texts("review.taken", places=_describe_places(review, texts, is_declined=False)))
    elif review.is_rejected:
        lines = [texts("review.none_taken", count=len(review.hunks))]
    elif review.comments and is_writable:
        lines = [texts("review.all_taken")]
    return "\n".join((*lines, *_describe_comments(review, texts)))


def describe_comments(review: Review, texts: Catalogue) -> str:
    """The comments of ``review`` alone, in the words of ``texts``; empty if there are none."""
    return "\n".join(_describe_comments(review, texts))


def _describe_comments(review: Review, texts: Catalogue) -> Iterator[str]:
    if not review.comments:
        return
    lines = _Lines.of(review)
    for key, text in review.comments:
        quoted = (lines.at(key) or "").strip()
        quote = quoted[:_MOST_QUOTED] + "…" * (len(quoted) > _MOST_QUOTED)
        name = "review.comment_old" if key.is_old else "review.comment"
        yield texts(name, line=key.line + 1, quote=quote, text=text)


def _describe_places(review: Review, texts: Catalogue, *, is_declined: bool) -> str:
    """The lines of the hunks that are declined, or of those that are taken: of the agent's text, and, where a
    hunk has none there, of the text before."""
    hunks = [each for at, each in enumerate(review.hunks) if (at in review.declined) == is_declined]
    added = [(each.new_start, each.new_end) for each in hunks if each.new_start < each.new_end]
    removed = [(each.old_start, each.old_end) for each in hunks if each.new_start == each.new_end]
    places = []
    if added:
        places.append(texts("review.lines", lines=_format_ranges(added, texts)))
    if removed:
        places.append(texts("review.removals", lines=_format_ranges(removed, texts)))
    return texts("review.and").join(places)


def _format_ranges(ranges: Sequence[tuple[int, int]], texts: Catalogue) -> str:
    shown: Iterable[str] = (
        f"{start + 1}-{end}" if end - start > 1 else f"{end}" for start, end in ranges[:_MOST_RANGES]
    )
    more = len(ranges) - _MOST_RANGES
    return ", ".join((*shown, texts("review.more", count=more)) if more > 0 else shown)
