"""The review of proposed writes, hunk by hunk, as questions in lines of text. Pure."""

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
"""The keys to take the hunk, decline it, comment on a line, and go back."""
_CONTEXT: Final = 2
"""Unchanged lines to show on each side of a hunk."""
_OLD: Final = "old"
"""The word before the number of a line in the old text."""


class UnusableComment(Exception):
    """The input is not a comment on a line. The exception's text describes the expected input."""


class HunkReview(NamedTuple):
    """The review of the calls in a request.

    - ``calls``: the calls.
    - ``paths``: the paths of the proposed writes, by call id.
    - ``reviews``: the reviews of the proposed writes, by call id.
    - ``at``: the index in `places` of the current hunk, None for no current hunk.
    """

    calls: tuple[PendingCall, ...] = ()
    paths: Mapping[str, str] = MappingProxyType({})
    reviews: Mapping[str, Review] = MappingProxyType({})
    at: int | None = None

    @property
    def places(self) -> list[tuple[str, int]]:
        """All hunks, as pairs of the call's id and the hunk's index."""
        return [
            (call.id, hunk)
            for call in self.calls
            if call.id in self.reviews
            for hunk in range(len(self.reviews[call.id].hunks))
        ]

    @property
    def is_begun(self) -> bool:
        """Whether any hunk was declined or commented on."""
        return any(each.is_begun for each in self.reviews.values())

    @property
    def taken(self) -> int:
        """Number of taken hunks."""
        return sum(each.taken for each in self.reviews.values())

    def move(self, step: int) -> HunkReview:
        """Return the review moved by ``step`` hunks, without a current hunk if out of range."""
        at = (self.at if self.at is not None else -1) + step
        return self._replace(at=at if 0 <= at < len(self.places) else None)

    def decide(self, *, takes: bool) -> HunkReview:
        """Return the review with the current hunk taken or declined, moved to the next hunk."""
        call, hunk = self._current_hunk()
        review = self.reviews[call]
        if (hunk not in review.declined) != takes:
            review = review.toggle(hunk)
        return self._with(call, review).move(1)

    def comment(self, typed: str, texts: Catalogue) -> HunkReview:
        """Return the review with a comment on a line of the current call.


        - ``typed``: the number of a line, then the comment. The word ``old`` before the number means the old
          text.
        - ``texts``: the catalogue for errors.

        Raise `UnusableComment`.
        """
        call, _ = self._current_hunk()
        first, _, rest = typed.partition(" ")
        is_old = first == _OLD
        number, _, remark = rest.strip().partition(" ") if is_old else (first, "", rest)
        is_number = number.isdecimal() and len(number) <= 9 and int(number) > 0
        if not is_number or not remark.strip():
            raise UnusableComment(texts("watch.hunk.no_comment"))
        key, review = LineKey(int(number) - 1, is_old), self.reviews[call]
        if review.line(key) is None:
            raise UnusableComment(texts("watch.hunk.no_line", line=number))
        try:
            return self._with(call, review.comment(key, remark))
        except ValueError as error:
            most = {"comments": MAX_COMMENTS, "characters": MAX_COMMENT_CHARACTERS}
            raise UnusableComment(texts("watch.hunk.too_much", **most)) from error

    def lines(self) -> list[tuple[str, int, str]]:
        """Return the lines of the current hunk, with `_CONTEXT` lines around it.

        The parts of a line are its kind (``added``, ``removed``, ``same``), number and text.
        """
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
        """The path of the current hunk's proposed write. Not sanitized."""
        return self.paths[self._current_hunk()[0]]

    @property
    def is_declined(self) -> bool:
        """Whether the current hunk is declined."""
        call, hunk = self._current_hunk()
        return hunk in self.reviews[call].declined

    def decisions(self, words: Catalogue, *, approved: bool, reason: str) -> list[CallDecision]:
        """Return the decisions on all calls.

        - ``words``: the catalogue for messages to agents.
        - ``approved``: whether to approve the taken hunks. Otherwise all calls are rejected.
        - ``reason``: the reason for a rejection.
        """
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
