"""The review of what calls would write, one hunk after the other, as questions of lines. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from watchroom.algorithms.merge import split_lines
from watchroom.features.requests.reviews import (
    MAX_COMMENT_CHARACTERS,
    MAX_COMMENTS,
    LineKey,
    Review,
    decide_calls,
    reject_calls,
)
from watchroom.features.requests.rows import CallDecision, PendingCall
from watchroom.texts import Catalogue

HUNK_KEYS: Final = ("t", "d", ";", "b")
"""Take the hunk, decline it, comment on a line, go back."""
_CONTEXT: Final = 2
"""So many lines that stay are said on each side of a hunk."""
_OLD: Final = "old"
"""Before the number of a line of the text that would be replaced."""


class UnusableComment(Exception):
    """What was typed is no comment on a line; the text says what would be."""


class HunkReview(NamedTuple):
    """The reviews of ``calls``, by their ids, whose ``paths`` say where they would write; ``at`` is the place
    of the hunk that is asked about, None where none is."""

    calls: tuple[PendingCall, ...] = ()
    paths: Mapping[str, str] = MappingProxyType({})
    reviews: Mapping[str, Review] = MappingProxyType({})
    at: int | None = None

    @property
    def places(self) -> list[tuple[str, int]]:
        """All hunks, as the ids of their calls and their indices there."""
        return [
            (call.id, hunk)
            for call in self.calls
            if call.id in self.reviews
            for hunk in range(len(self.reviews[call.id].hunks))
        ]

    @property
    def is_begun(self) -> bool:
        """Whether anything was declined, or said."""
        return any(each.is_begun for each in self.reviews.values())

    @property
    def taken(self) -> int:
        """How many hunks are taken."""
        return sum(each.taken for each in self.reviews.values())

    def move(self, step: int) -> HunkReview:
        """The review at the hunk ``step`` further; at none before the first one and after the last."""
        at = (self.at if self.at is not None else -1) + step
        return self._replace(at=at if 0 <= at < len(self.places) else None)

    def decide(self, *, takes: bool) -> HunkReview:
        """The review in which the hunk that is asked about is taken or declined, at the next one."""
        call, hunk = self._current_hunk()
        review = self.reviews[call]
        if (hunk not in review.declined) != takes:
            review = review.toggle(hunk)
        return self._with(call, review).move(1)

    def comment(self, typed: str, texts: Catalogue) -> HunkReview:
        """The review with the comment that was ``typed``: the number of a line, and what there is to say of
        it. Raises `UnusableComment`."""
        call, _ = self._current_hunk()
        first, _, rest = typed.partition(" ")
        is_old = first == _OLD
        number, _, said = rest.strip().partition(" ") if is_old else (first, "", rest)
        is_number = number.isdecimal() and len(number) <= 9 and int(number) > 0
        if not is_number or not said.strip():
            raise UnusableComment(texts("watch.hunk.no_comment"))
        key, review = LineKey(int(number) - 1, is_old), self.reviews[call]
        if review.line(key) is None:
            raise UnusableComment(texts("watch.hunk.no_line", line=number))
        try:
            return self._with(call, review.comment(key, said))
        except ValueError as error:
            most = {"comments": MAX_COMMENTS, "characters": MAX_COMMENT_CHARACTERS}
            raise UnusableComment(texts("watch.hunk.too_much", **most)) from error

    def lines(self) -> list[tuple[str, int, str]]:
        """The lines of the hunk that is asked about, and those around it: what becomes of each (``added``,
        ``removed``, ``same``), its number, and its text."""
        call, index = self._current_hunk()
        review = self.reviews[call]
        hunk, old, new = review.hunks[index], split_lines(review.before), split_lines(review.after)
        before = range(max(0, hunk.new_start - _CONTEXT), hunk.new_start)
        after = range(hunk.new_end, min(len(new), hunk.new_end + _CONTEXT))
        return [
            *(("same", at + 1, new[at]) for at in before),
            *(("removed", at + 1, old[at]) for at in range(hunk.old_start, hunk.old_end)),
            *(("added", at + 1, new[at]) for at in range(hunk.new_start, hunk.new_end)),
            *(("same", at + 1, new[at]) for at in after),
        ]

    @property
    def path(self) -> str:
        """Where the call would write whose hunk is asked about. Not safe yet."""
        return self.paths[self._current_hunk()[0]]

    @property
    def is_declined(self) -> bool:
        """Whether the hunk that is asked about is declined so far."""
        call, hunk = self._current_hunk()
        return hunk in self.reviews[call].declined

    def decisions(self, words: Catalogue, *, approved: bool, reason: str) -> list[CallDecision]:
        """The decisions on all calls that the review comes to, with what agents are told in ``words``: with
        what is taken if ``approved``, else all are rejected for ``reason``."""
        if not approved:
            return reject_calls(self.calls, self.reviews, words, reason)
        ids = [call.id for call in self.calls]
        return decide_calls(self.calls, self.reviews, words, approved=ids)

    def _current_hunk(self) -> tuple[str, int]:
        if self.at is None:
            raise RuntimeError("no hunk is asked about")
        return self.places[self.at]

    def _with(self, call: str, review: Review) -> HunkReview:
        return self._replace(reviews=MappingProxyType({**self.reviews, call: review}))
