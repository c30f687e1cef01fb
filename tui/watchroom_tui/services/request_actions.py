"""Answer requests of agents. Each answer is one tool call of the person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import cast

from watchroom.features.calls.reads import RequestDetails, read_request
from watchroom.features.overview.model import Model, Need
from watchroom.features.policy.reads import GrantState
from watchroom.features.requests.reviews import decide_calls, find_indivisible, reject_calls, write_taken
from watchroom.features.requests.rows import PendingCall, parse_arguments
from watchroom.features.sessions.view import RequestView
from watchroom.model import ANSWER, Json, RequestKind
from watchroom.texts import Catalogue, catalogue

from watchroom_tui.context import Arguments, Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.dialogs.grant import GrantDialog, list_offers
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.labels import tool_name
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.services import person_calls
from watchroom_tui.services.reviews import Reviews


class NotApprovable(Exception):
    """Error for a request that must be opened first, because its line does not show every effect of an
    approval. ``reason``: the text key of the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestActions:
    """The answers of the person at ``app`` to requests. Unsent texts are kept among the drafts."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._reviews = Reviews(app)

    def approve_need(self, need: Need) -> None:
        """Approve the call of ``need`` directly from a list. Show the reason if the person must open the
        request first."""
        asked = self._find(need)
        if asked is not None and self.is_answerable(asked, "approve"):
            self._start(partial(self._approve_at_a_glance, asked))

    def reject_need(self, need: Need) -> None:
        """Reject the request of ``need``, with a reason for the agent. Show a warning if ``need`` is not a
        request."""
        asked = self._find(need)
        if asked is not None:
            self.reject(asked)

    def _find(self, need: Need) -> RequestView | None:
        """Return the request of ``need``. Show a warning and return None if ``need`` has no open request."""
        app = self._app
        if need.kind != "request":
            app.show_message(app.texts("request.open_first"), "warning")
            return None
        asked = next((each for each in app.model.requests if each.id == need.row.seq), None)
        if asked is None:
            app.show_message(app.texts("request.none"), "warning")
        return asked

    def approve(self, details: RequestDetails, ticked: Sequence[str]) -> None:
        """Approve the ``ticked`` calls with their accepted hunks, and reject the other calls. Reject the
        whole request if no call is ticked."""
        if ticked:
            self._start(partial(self._approve, details, ticked))
        else:
            self.reject(details.asked)

    def approve_as(self, details: RequestDetails) -> None:
        """Approve the only call, and let the person grant further calls like it. Show the reason if it can
        only be approved once."""
        app = self._app
        if any(each.declined for each in self._reviews.of(details).values()):
            app.show_message(app.texts("grant.reviewed"), "warning")
        elif not list_offers(details, catalogue(app.language)):
            app.show_message(app.texts("grant.only_once"), "warning")
        else:
            app.open_editor(partial(self._approve_as, details))

    async def _approve_as(self, details: RequestDetails) -> None:
        app = self._app
        choice = await app.push_screen_wait(GrantDialog(details))
        if choice is None or not self.is_answerable(details.asked, "approve"):
            return
        calls = [call.id for call in details.request.calls]
        if await self._answer(details.asked, partial(self._decisions, details, calls, {})):
            call = person_calls.grant(details.asked.id, choice)
            await app.carry_out(call.tool, call.arguments, app.texts("grant.done"))

    def revoke(self, state: GrantState) -> None:
        """Revoke the grant in ``state``."""
        call = person_calls.revoke_grant(state.row.seq)
        done = self._app.texts("grant.revoked")
        self._start(partial(self._app.carry_out, call.tool, call.arguments, done))

    def reject(self, asked: RequestView) -> None:
        """Reject all calls, or decline the question, with a reason for the agent."""
        self._app.open_editor(partial(self._reject, asked))

    def edit(self, details: RequestDetails, call_id: str, ticked: Sequence[str]) -> None:
        """Let the person edit the arguments of a call, and approve the call."""
        self._app.open_editor(partial(self._edit, details, call_id, ticked))

    def write(self, details: RequestDetails) -> None:
        """Answer with a text."""
        self._app.open_editor(partial(self._write, details))

    def choose(self, details: RequestDetails, values: Sequence[str]) -> None:
        """Answer with ``values``. Show a warning if ``values`` is empty."""
        if values:
            arguments = person_calls.choose(details.asked.id, values).arguments
            self._start(partial(self._answer, details.asked, arguments))
        else:
            self._app.show_message(self._app.texts("request.tick_first"), "warning")

    def is_answerable(self, asked: RequestView | None, kind: RequestKind | None = None) -> bool:
        """Return whether the person can answer ``asked`` now. Show the reason if not. ``kind``: the required
        kind of request, default: any."""
        app = self._app
        if not app.can_act:
            app.explain_read_only()
        elif asked is None or asked.ended is not None:
            app.show_message(app.texts("request.none"), "warning")
        elif asked.has_expired(app.now()):
            app.show_message(app.texts("request.too_late"), "warning")
        elif kind is not None and asked.kind != kind:
            ids = ("approve", "reject", "edit_arguments", "open")
            keys = {each: shown_key(each, app.keymap) for each in ids}
            app.show_message(app.texts(f"request.how.{asked.kind}", **keys), "warning")
        else:
            return True
        return False

    def _start(self, work: Callable[[], Awaitable[object]]) -> None:
        self._app.run_worker(work, group="answer")

    async def _approve_at_a_glance(self, asked: RequestView) -> None:
        try:
            await self._answer(asked, partial(self._approval, asked))
        except NotApprovable as error:
            self._app.show_message(self._app.texts(error.reason), "warning")

    def _approval(self, asked: RequestView) -> Mapping[str, Json]:
        """Return the arguments that approve the only call of ``asked``. Call this in a thread, because it
        reads the journal. Raise `NotApprovable`."""
        details = read_request(self._app.journal, asked)
        calls = details.request.calls
        if len(calls) > 1:
            raise NotApprovable("request.look_several")
        if details.outdated or any(would is not None and would.is_stale for would in details.proposals):
            raise NotApprovable("request.look_changed")
        if self._reviews.is_begun(asked.id):
            raise NotApprovable("request.look_reviewed")
        return self._decisions(details, [call.id for call in calls], {})

    async def _approve(self, details: RequestDetails, ticked: Sequence[str]) -> None:
        """Approve the ``ticked`` calls. Ask first if a partly accepted call cannot be made in part."""
        reviews = self._reviews.of(details)
        if any(each.is_partial for each in reviews.values()):
            chosen = [call for call in details.request.calls if call.id in ticked]
            rejected = await asyncio.to_thread(find_indivisible, chosen, reviews)
            if rejected and not await self._confirm_rejection(details, rejected):
                return
        await self._answer(details.asked, partial(self._decisions, details, ticked, {}))

    async def _confirm_rejection(self, details: RequestDetails, rejected: Sequence[PendingCall]) -> bool:
        texts = self._app.texts
        names = ", ".join(sanitize(tool_name(call.name, texts)) for call in rejected)
        question = texts("review.send_back_question", calls=names, agent=sanitize(details.asked.agent))
        return await self._app.push_screen_wait(ConfirmDialog(texts("review.send_back_title"), question))

    def _decisions(
        self, details: RequestDetails, ticked: Sequence[str], edited: Mapping[str, str]
    ) -> Mapping[str, Json]:
        """Return the arguments that approve the ``ticked`` calls. ``edited``: changed arguments as JSON, by
        call id. Call this in a thread, because large reviews take a while."""
        reviews, texts = self._reviews.of(details), catalogue(self._app.language)
        decisions = decide_calls(details.request.calls, reviews, texts, approved=ticked, edited=edited)
        return person_calls.decide_calls(details.asked.id, decisions).arguments

    async def _reject(self, asked: RequestView) -> None:
        if not self.is_answerable(asked):
            return
        texts = self._app.texts
        draft = self._draft(asked, "reason")
        verb = "reject" if asked.kind == "approve" else "decline"
        hint = texts(f"request.{verb}_hint")
        reason = await enter_text(self._app, draft, texts(f"request.{verb}_title"), hint, may_be_empty=True)
        if reason is not None:
            await self._answer(asked, partial(self._rejection, asked, reason), draft)

    def _rejection(self, asked: RequestView, reason: str) -> Mapping[str, Json]:
        """Return the arguments that reject all calls for ``reason``, with the comments on each call. Call
        this in a thread, because it reads the journal."""
        details = read_request(self._app.journal, asked)
        number, reviews, texts = details.asked.id, self._reviews.of(details), catalogue(self._app.language)
        if not any(each.comments for each in reviews.values()):
            return person_calls.decide(number, approved=False, reason=reason).arguments
        decisions = reject_calls(details.request.calls, reviews, texts, reason)
        return person_calls.decide_calls(number, decisions, reason).arguments

    async def _write(self, details: RequestDetails) -> None:
        asked = details.asked
        draft = self._draft(asked, "answer")
        title = self._app.texts("request.answer_title", agent=sanitize(asked.agent))
        text = await enter_text(self._app, draft, title, sanitize(details.request.prompt))
        if text is not None:
            await self._answer(asked, person_calls.reply(asked.id, text).arguments, draft)

    async def _edit(self, details: RequestDetails, call_id: str, ticked: Sequence[str]) -> None:
        texts = self._app.texts
        call = next(each for each in details.request.calls if each.id == call_id)
        title = texts("request.edit_title", tool=sanitize(call.name))
        review = self._reviews.of(details).get(call_id)
        taken = None
        if review is not None:
            taken = await asyncio.to_thread(write_taken, call, review)
        begun = json.dumps(parse_arguments(taken or call.arguments), ensure_ascii=False, indent=2)
        draft = self._draft(details.asked, call_id, begun)
        hint = texts("request.edit_hint")
        while True:
            text = await enter_text(self._app, draft, title, hint, many_lines=True)
            if text is None:
                return
            problem = _problem(text, texts)
            if problem is None:
                break
            # Keep the text, and show the problem in the hint.
            hint = problem
        chosen = ticked if call_id in ticked else [*ticked, call_id]
        await self._answer(details.asked, partial(self._decisions, details, chosen, {call_id: text}), draft)

    def _draft(self, asked: RequestView, what: str, begun: str = "") -> TextDraft:
        key = f"request {asked.id} {what}"
        label = self._app.texts("request.draft", agent=asked.agent)

        def is_open(model: Model) -> bool:
            return any(each.id == asked.id for each in model.requests)

        return self._app.drafts.find(TextDraft, key) or TextDraft(key, label, begun, is_wanted=is_open)

    async def _answer(self, asked: RequestView, arguments: Arguments, draft: TextDraft | None = None) -> bool:
        """Answer the request, and show the outcome. Return whether the answer is accepted. ``draft``: the
        draft to drop then."""
        app = self._app
        result = await app.act(ANSWER, arguments)
        if result is None:
            return False
        if result["success"]:
            outcome = app.texts(f"request.outcome.{cast(str, result['outcome'])}")
            app.show_message(app.texts("request.done", agent=sanitize(asked.agent), outcome=outcome))
            self._reviews.drop(asked.id)
            if draft is not None:
                app.drafts.drop(TextDraft, draft.key)
        else:
            app.show_failure(result)
        return bool(result["success"])


def _problem(text: str, texts: Catalogue) -> str | None:
    """Return the reason why ``text`` is invalid as arguments, or None if it is valid."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return texts("request.not_json", line=error.lineno, column=error.colno)
    except (ValueError, RecursionError):
        return texts("request.not_object")
    return None if isinstance(value, dict) else texts("request.not_object")
