"""Reviews of calls before an answer: accepted hunks, and comments on lines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from watchroom.features.calls.reads import RequestDetails
from watchroom.features.overview.model import Model
from watchroom.features.requests.reviews import MAX_COMMENT_CHARACTERS, MAX_COMMENTS, Review

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.request import RequestRow


class ReviewDraft:
    """The unsent reviews of the calls of one request, by call id. ``label``: the displayed label of the
    request."""

    def __init__(self, request: int, label: str) -> None:
        self.label = label
        self.reviews: Mapping[str, Review] = {}
        self._request = request

    @property
    def is_begun(self) -> bool:
        """Whether the person declined a hunk or wrote a comment."""
        return any(each.is_begun for each in self.reviews.values())

    def is_unsaved(self, model: Model) -> bool:
        """Return whether the person began a review, and the request is still open."""
        return self.is_begun and any(each.id == self._request for each in model.requests)


class Reviews:
    """The reviews of the person at ``app``, kept among the drafts until the request is answered."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._opened: int | None = None

    async def open(self, details: RequestDetails) -> None:
        """Create a review for each call of ``details`` that would change a text. Keep reviews in progress."""
        number = details.asked.id
        # Drop unused reviews, because both texts of a change may be long.
        if self._opened not in (None, number) and not self.is_begun(self._opened):
            self.drop(self._opened)
        self._opened = number
        if details.asked.ended is not None or details.request.kind != "approve":
            self.drop(number)
            return
        begun, reviews = self.of(details), {}
        for call, would in zip(details.request.calls, details.proposals, strict=True):
            hunks = await self._app.worker_process.changes(would.before, would.after) if would else []
            if would is None or not hunks:
                continue
            earlier = begun.get(call.id) or Review(would.before, would.after, tuple(hunks))
            reviews[call.id] = await asyncio.to_thread(earlier.carry_over, would.before, would.after, hunks)
        self._keep(details, reviews)

    def of(self, details: RequestDetails) -> Mapping[str, Review]:
        """Return the reviews of the calls of ``details``, by call id. Empty if the request has ended."""
        draft = self._app.drafts.find(ReviewDraft, details.asked.id)
        return draft.reviews if draft is not None and details.asked.ended is None else {}

    def is_begun(self, request: int) -> bool:
        """Return whether the person has begun to review a request. ``request``: the number of the request."""
        draft = self._app.drafts.find(ReviewDraft, request)
        return draft is not None and draft.is_begun

    def drop(self, request: int) -> None:
        """Drop the reviews of a request. ``request``: the number of the request."""
        self._app.drafts.drop(ReviewDraft, request)

    def toggle(self, details: RequestDetails, call: str, hunk: int) -> bool:
        """Decline a hunk, or accept a declined hunk. Return False if ``call`` has no review.

        - ``call``: the id of the call.
        - ``hunk``: the index of the hunk.
        """
        reviews = self.of(details)
        if call not in reviews:
            return False
        self._keep(details, {**reviews, call: reviews[call].toggle(hunk)})
        return True

    async def comment(self, details: RequestDetails, row: RequestRow) -> bool:
        """Ask the person for a comment on the line of ``row``. Return whether the comment was changed. Await
        this in a worker."""
        app, key, before = self._app, row.key, self.of(details).get(row.call)
        if key is None or before is None:
            return False
        name = f"comment {details.asked.id} {row.call} {key.line} {key.is_old}"
        label = app.texts("request.draft", agent=details.asked.agent)
        draft = app.drafts.find(TextDraft, name) or TextDraft(name, label, before.comment_on(key))
        title = app.texts("review.comment_old" if key.is_old else "review.comment", line=key.line + 1)
        hint = sanitize("".join(span.text for span in row.line[1:])) or app.texts("review.empty_line")
        text = await enter_text(app, draft, title, hint, may_be_empty=True)
        # The request may have been answered meanwhile.
        reviews = self.of(details)
        if text is None or row.call not in reviews:
            return False
        try:
            commented = reviews[row.call].comment(key, text)
        except ValueError:
            most = {"comments": MAX_COMMENTS, "characters": MAX_COMMENT_CHARACTERS}
            app.show_message(app.texts("review.too_much", **most), "error")
            return False
        app.drafts.drop(TextDraft, name)
        self._keep(details, {**reviews, row.call: commented})
        return True

    def _keep(self, details: RequestDetails, reviews: Mapping[str, Review]) -> None:
        request = details.asked.id
        label = self._app.texts("request.draft", agent=details.asked.agent)
        draft = self._app.drafts.find(ReviewDraft, request) or ReviewDraft(request, label)
        draft.reviews = reviews
        self._app.drafts.keep(request, draft)
