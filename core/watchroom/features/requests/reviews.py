"""The review of a call that writes a file: the hunks that a person accepts, and comments on lines. Pure.

A hunk is a group of adjacent lines that differ. Hunks never overlap, so every choice of hunks is a text.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from watchroom.algorithms.merge import LineChange, split_lines
from watchroom.features.requests.rows import CallDecision, PendingCall, parse_arguments
from watchroom.features.requests.rules import replace_content
from watchroom.texts import Catalogue

MAX_COMMENTS: Final = 100
MAX_COMMENT_CHARACTERS: Final = 1000
MAX_REASON_CHARACTERS: Final = 20_000
"""Maximum characters of the whole reason for a decision on a call."""
_NOTHING_EDITED: Final[Mapping[str, str]] = MappingProxyType({})
_MAX_RANGES: Final = 300
_MAX_QUOTED_CHARACTERS: Final = 80


class LineKey(NamedTuple):
    """The number of a line, from 0, in the text that a call would write. With ``is_old``, in the text that
    the call would replace."""

    line: int
    is_old: bool = False


class LineComment(NamedTuple):
    """A person's comment on a line."""

    key: LineKey
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """A review of the change from the text ``before`` to the text ``after``.

    - ``hunks``: the changes, in the order of their lines.
    - ``declined``: the indices of the hunks that are not taken.
    - ``comments``: the comments, in the order of their lines.
    """

    before: str
    after: str
    hunks: tuple[LineChange, ...]
    declined: frozenset[int] = frozenset()
    comments: tuple[LineComment, ...] = ()

    @property
    def taken(self) -> int:
        """The number of hunks that are taken."""
        return len(self.hunks) - len(self.declined)

    @property
    def is_begun(self) -> bool:
        """Whether the person has declined a hunk or made a comment."""
        return bool(self.declined or self.comments)

    @property
    def is_partial(self) -> bool:
        """Whether some hunks are taken and others are declined."""
        return 0 < len(self.declined) < len(self.hunks)

    @property
    def is_rejected(self) -> bool:
        """Whether there are hunks and all are declined."""
        return bool(self.hunks) and not self.taken

    def toggle(self, hunk: int) -> Review:
        """Return the review with the hunk at the index ``hunk`` declined if it was taken, or taken if it was
        declined. Raise IndexError if it does not exist."""
        if not 0 <= hunk < len(self.hunks):
            raise IndexError(hunk)
        return replace(self, declined=self.declined ^ {hunk})

    def comment(self, key: LineKey, text: str) -> Review:
        """Return the review with the comment ``text`` on the line ``key``; an empty ``text`` removes it.
        Raise ValueError for more than `MAX_COMMENTS` comments or `MAX_COMMENT_CHARACTERS` characters."""
        others = [each for each in self.comments if each.key != key]
        stripped = text.strip()
        if len(stripped) > MAX_COMMENT_CHARACTERS or (stripped and len(others) >= MAX_COMMENTS):
            raise ValueError(f"{len(others)} comments, {len(stripped)} characters")
        added = [LineComment(key, stripped)] if stripped else []
        return replace(self, comments=tuple(sorted([*others, *added], key=lambda each: each.key)))

    def comment_on(self, key: LineKey) -> str:
        """Return the comment on the line ``key``; empty if there is none."""
        return next((each.text for each in self.comments if each.key == key), "")

    def line(self, key: LineKey) -> str | None:
        """Return the line ``key`` with its line end; None if it does not exist."""
        return _Lines.of(self).at(key)

    def hunk_of(self, key: LineKey) -> int | None:
        """Return the index of the hunk that adds or removes the line ``key``; None if no hunk does."""
        if key.is_old:
            index = bisect_right(self.hunks, key.line, key=lambda hunk: hunk.old_end)
            begins = index < len(self.hunks) and self.hunks[index].old_start <= key.line
        else:
            index = bisect_right(self.hunks, key.line, key=lambda hunk: hunk.new_end)
            begins = index < len(self.hunks) and self.hunks[index].new_start <= key.line
        return index if begins else None

    def carry_over(self, before: str, after: str, hunks: Sequence[LineChange]) -> Review:
        """Return this review for a newer change from ``before`` to ``after`` with ``hunks``.

        Declined hunks with the same lines stay declined, even in another place. Comments stay on unchanged
        lines.
        """
        if (before, after) == (self.before, self.after):
            return self
        moved = Review(before, after, tuple(hunks))
        mine, theirs = _Lines.of(self), _Lines.of(moved)
        declined = {mine.of_hunk(self.hunks[index]) for index in self.declined}
        again = [index for index, hunk in enumerate(moved.hunks) if theirs.of_hunk(hunk) in declined]
        comments = [each for each in self.comments if mine.at(each.key) == theirs.at(each.key)]
        return replace(moved, declined=frozenset(again), comments=tuple(comments))

    def text(self) -> str:
        """Return the text with the taken hunks, and without the declined hunks."""
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
    """Return the decision on ``call`` according to its ``review``. ``texts``: the agent's language.

    The call is approved with the taken hunks. It is rejected if no hunk is taken, or if its arguments cannot
    express only the taken hunks. The reason describes the hunks and the comments.
    """
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
    """Return the decisions on all calls of a request.

    - ``calls``: the calls of the request.
    - ``reviews``: the reviews of calls by call id. Their comments are in the reasons of all decisions.
    - ``texts``: the agent's language.
    - ``approved``: the ids of the approved calls; the others are rejected.
    - ``edited``: new arguments (JSON) of approved calls by call id; they override the review.
    """
    decisions = []
    for call in calls:
        review = reviews.get(call.id)
        if call.id in approved and call.id not in edited and review is not None:
            decisions.append(decide_call(call, review, texts))
        else:
            comments = describe_comments(review, texts) if review is not None else ""
            decisions.append(CallDecision(call.id, call.id in approved, comments, edited.get(call.id)))
    return decisions


def reject_calls(
    calls: Iterable[PendingCall], reviews: Mapping[str, Review], texts: Catalogue, reason: str
) -> list[CallDecision]:
    """Return decisions that reject all calls of a request.

    - ``calls``: the calls of the request.
    - ``reviews``: the reviews of calls by call id. Their comments are added to the reason.
    - ``texts``: the agent's language.
    - ``reason``: the reason of all decisions.
    """
    decisions = []
    for call in calls:
        review = reviews.get(call.id)
        comments = describe_comments(review, texts) if review is not None else ""
        decisions.append(CallDecision(call.id, False, "\n".join(each for each in (reason, comments) if each)))
    return decisions


def can_write_part(call: PendingCall, after: str) -> bool:
    """Return whether ``call`` can write some of its hunks without the others. ``after``: the text that it
    would write."""
    arguments = parse_arguments(call.arguments)
    replaced = replace_content(call.name, arguments, "")
    return replaced is not None and arguments.get("content") == after


def find_indivisible(calls: Iterable[PendingCall], reviews: Mapping[str, Review]) -> list[PendingCall]:
    """Return the ``calls`` that can only be written whole, although only some of their hunks were taken.
    `decide_call` rejects them.

    ``reviews``: the reviews by call id.
    """
    return [
        call
        for call in calls
        if (review := reviews.get(call.id)) is not None
        and review.is_partial
        and not can_write_part(call, review.after)
    ]


def write_taken(call: PendingCall, review: Review) -> str | None:
    """Return the arguments (JSON) with which ``call`` writes only the taken hunks of ``review``.

    Return None if all or no hunks are taken, or if the arguments of the call cannot express the choice.
    """
    if not review.is_partial or not can_write_part(call, review.after):
        return None
    taken = replace_content(call.name, parse_arguments(call.arguments), review.text())
    return json.dumps(taken, ensure_ascii=False)


def describe_review(review: Review, texts: Catalogue, *, is_writable: bool = True) -> str:
    """Return a description of ``review`` for the agent: the lines of the taken and declined hunks, and each
    comment. Return an empty text if the person declined nothing and made no comment.

    - ``texts``: the agent's language.
    - ``is_writable``: whether the call is made with the taken hunks; default True.
    """
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
    """Return the comments of ``review`` in the language of ``texts``; empty without comments."""
    return "\n".join(_describe_comments(review, texts))


def _describe_comments(review: Review, texts: Catalogue) -> Iterator[str]:
    if not review.comments:
        return
    lines = _Lines.of(review)
    for key, text in review.comments:
        quoted = (lines.at(key) or "").strip()
        quote = quoted[:_MAX_QUOTED_CHARACTERS] + "…" * (len(quoted) > _MAX_QUOTED_CHARACTERS)
        name = "review.comment_old" if key.is_old else "review.comment"
        yield texts(name, line=key.line + 1, quote=quote, text=text)


def _describe_places(review: Review, texts: Catalogue, *, is_declined: bool) -> str:
    """Return the lines of the declined hunks, or of the taken hunks. They are lines of the agent's text. If a
    hunk only removes lines, they are lines of the old text."""
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
        f"{start + 1}-{end}" if end - start > 1 else f"{end}" for start, end in ranges[:_MAX_RANGES]
    )
    more = len(ranges) - _MAX_RANGES
    return ", ".join((*shown, texts("review.more", count=more)) if more > 0 else shown)
