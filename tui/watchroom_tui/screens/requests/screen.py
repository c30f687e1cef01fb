"""The requests screen: requests, their details, and their answers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from watchroom.errors import JournalDamaged, JournalError
from watchroom.features.calls.reads import RequestDetails, read_request
from watchroom.features.overview.model import Model, Need
from watchroom.features.policy.reads import read_grants
from watchroom.features.sessions.view import RequestView
from watchroom.model import RequestKind, Row

from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.context import SessionTarget
from watchroom_tui.formatters.columns import format_age
from watchroom_tui.formatters.labels import tool_name
from watchroom_tui.keys.actions import Action, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.request import RequestPage, RequestRow
from watchroom_tui.screens.requests.lists import ChoiceList, GrantList, RequestList, RequestOption
from watchroom_tui.screens.requests.review_view import ReviewView
from watchroom_tui.services.request_actions import RequestActions
from watchroom_tui.services.reviews import Reviews
from watchroom_tui.widgets.containers import Horizontal, Vertical
from watchroom_tui.widgets.frame import Footer
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.worker.main import DiffLine

ANSWERS: Final = {
    "approve": "approve",
    "approve_as": "approve",
    "edit_arguments": "approve",
    "write_answer": "prompt",
}
"""The kind of request that each action answers. Other actions apply to every kind."""


class RequestsScreen(BaseScreen):
    CSS_PATH = "requests.tcss"
    SCREEN_NAME: ClassVar = "requests"
    EXTRA_SCOPES: ClassVar = ("choices", "review", "grants")
    BINDINGS = bindings("requests")

    def __init__(self) -> None:
        super().__init__()
        self._shown: RequestView | None = None
        self._full: RequestDetails | None = None
        self._page: RequestPage | None = None
        self._loaded = asyncio.Event()
        self._loaded.set()
        self._answering = RequestActions(self.dashboard)
        self._reviews = Reviews(self.dashboard)

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield RequestList(title="pane.requests", empty="empty.requests", id="requests", classes="pane")
            yield GrantList(title="pane.grants", empty="empty.grants", id="grants", classes="pane -away")
            with Vertical(id="right", classes="group"):
                yield ReviewView(
                    self, title="pane.request", empty="empty.request", id="request", classes="pane"
                )
                yield ChoiceList(
                    title="pane.choices", empty="empty.choices", id="choices", classes="pane -away"
                )

    def show_time(self) -> None:
        self.load_grants()
        # The time left changes only if a request expires.
        if any(each.expires is not None for each in self.dashboard.model.requests):
            self.show_model(self.dashboard.model)
            self._show_deadline()

    def _show_deadline(self) -> None:
        """Show the time left to answer the shown request."""
        asked, now = self._shown, self.dashboard.now()
        text = ""
        if asked is not None and asked.ended is None and asked.expires is not None:
            key = "request.outcome.expired" if asked.has_expired(now) else "request.left"
            text = self.dashboard.texts(key, time=format_age(now, asked.expires))
        self.query_one("#request", ReviewView).show_deadline(text)

    def show_model(self, model: Model) -> None:
        now = self.dashboard.now()
        order = {need.row.path: at for at, need in enumerate(self.dashboard.needs)}
        waiting = sorted(
            (each for each in model.requests if not each.has_expired(now)),
            key=lambda each: order.get(each.row.path, len(order)),
        )
        late = [each for each in model.requests if each.has_expired(now)]
        self.query_one("#requests", RequestList).show([*waiting, *late, *model.ended_requests])
        self._show_request()
        self.load_grants()

    @work(exclusive=True, group="grants")
    async def load_grants(self) -> None:
        """Show the grants that still allow calls."""
        grants = await asyncio.to_thread(read_grants, self.dashboard.journal)
        pane = self.query_one("#grants", GrantList)
        if not grants and pane.has_focus:
            self.front(self.query_one("#requests", RequestList))
        pane.set_class(not grants, "-away")
        pane.show(grants)
        self.recount()

    @on(GrantList.Revoked)
    def revoke_grant(self, event: GrantList.Revoked) -> None:
        if self.dashboard.can_act:
            self._answering.revoke(event.state)
        else:
            self.dashboard.explain_read_only()

    @property
    def current_need(self) -> Need | None:
        asked = self.query_one("#requests", RequestList).item
        return self.find_need(["request"], asked.row.path if asked else None)

    def go_to_row(self, row: Row) -> None:
        requests = self.query_one("#requests", RequestList)
        self.show_model(self.dashboard.model)
        requests.move_to(row.path)
        self.front(requests)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        details = self._full
        if details is None:
            # Allow a quick key: the action waits until the request is read.
            answers = action in ANSWERS or action in ("reject", "to_session")
            return not answers or self.query_one("#requests", RequestList).item is not None
        asked = details.asked
        is_open = asked.ended is None and not asked.has_expired(self.dashboard.now())
        kind = details.request.kind if is_open else None
        if action == "reject":
            return kind is not None
        return action not in ANSWERS or ANSWERS[action] == kind

    def label_of(self, action: Action) -> str:
        details, focused = self._full, self.focused
        if action.id != "open" or details is None or focused is None or not self.dashboard.can_act:
            return super().label_of(action)
        is_open = details.asked.ended is None and not details.asked.has_expired(self.dashboard.now())
        verbs = {"prompt": "reply", "select": "choose"}
        verb = verbs.get(details.request.kind) if is_open and focused.id in ("requests", "choices") else None
        return self.dashboard.texts(f"needs.enter.{verb}") if verb else super().label_of(action)

    @on(ItemList.Highlighted, "#requests")
    def choose(self) -> None:
        self._show_request()

    @on(ItemList.Opened, "#requests")
    async def open_request(self) -> None:
        """Let the person answer a prompt, or go to the choices or the text of the request."""
        await self._wait_until_loaded()
        if self._full is None:
            return
        if self._full.asked.ended is None and self._full.request.kind == "prompt":
            await self.action_write_answer()
        else:
            choices = self.query_one("#choices", ChoiceList)
            self.front(choices if choices.items else self.query_one("#request", ReviewView))

    @on(ItemList.Opened, "#choices")
    async def send_choice(self) -> None:
        """Send the ticked options. Send the option under the cursor if only one can be chosen."""
        details = await self._open_request()
        choices = self.query_one("#choices", ChoiceList)
        if details is None or details.request.kind != "select":
            return
        if not details.request.multi and choices.item is not None:
            self._answering.choose(details, [choices.item.value])
        else:
            self._answering.choose(details, choices.ticked)

    async def action_approve(self) -> None:
        details = await self._open_request("approve")
        if details is not None:
            self._answering.approve(details, self._ticked(details))

    async def action_approve_as(self) -> None:
        details = await self._open_request("approve")
        if details is not None:
            self._answering.approve_as(details)

    async def action_reject(self) -> None:
        details = await self._open_request()
        if details is not None:
            self._answering.reject(details.asked)

    async def action_edit_arguments(self) -> None:
        details = await self._open_request("approve")
        if details is not None:
            item = self.query_one("#choices", ChoiceList).item
            self._answering.edit(
                details, item.value if item else details.request.calls[0].id, self._ticked(details)
            )

    async def action_write_answer(self) -> None:
        details = await self._open_request("prompt")
        if details is not None:
            self._answering.write(details)

    async def action_to_session(self) -> None:
        asked = self.query_one("#requests", RequestList).item
        if asked is not None:
            await self.dashboard.navigator.go_to("agents", SessionTarget(asked.session))

    def _ticked(self, details: RequestDetails) -> list[str]:
        """Return the ids of the ticked calls, or the id of the only call."""
        if len(details.request.calls) == 1:
            return [details.request.calls[0].id]
        return list(self.query_one("#choices", ChoiceList).ticked)

    async def _open_request(self, kind: RequestKind | None = None) -> RequestDetails | None:
        """Return the loaded request if it is answerable and of ``kind``, else None."""
        # The selected request may still be loading. A quick key applies to it.
        await self._wait_until_loaded()
        details = self._full
        if details is None or not self._answering.is_answerable(details.asked, kind):
            return None
        return details

    async def _wait_until_loaded(self) -> None:
        """Wait until the selected request is loaded, or cannot be read. Read it again if it could not be
        read."""
        self._show_request()
        await self._loaded.wait()

    def _show_request(self) -> None:
        asked = self.query_one("#requests", RequestList).item
        if asked == self._shown:
            return
        self._shown, self._full = asked, None
        self.query_one(Footer).refresh()
        if asked is None:
            self.query_one("#request", ReviewView).clear()
            self._offer([])
            self._loaded.set()
        else:
            self._loaded.clear()
            self.load(asked)

    @work(exclusive=True, group="request")
    async def load(self, asked: RequestView) -> None:
        """Show the request ``asked`` and its changes to the current files."""
        try:
            await self._load(asked)
        except JournalError as error:
            # A damaged request stays unreadable, and each attempt shows a notice.
            if not isinstance(error, JournalDamaged):
                self._shown = None
            self._loaded.set()
            raise

    async def _load(self, asked: RequestView) -> None:
        app = self.dashboard
        details = await asyncio.to_thread(read_request, app.journal, asked)
        changes: list[list[DiffLine] | None] = []
        for would in details.proposals:
            changed = await app.worker_process.diff(would.before, would.after) if would else None
            changes.append(changed)
        await self._reviews.open(details)
        choices = self._choices(details)
        page = partial(RequestPage, details, changes, app.texts, with_options=not choices)
        self._page = await asyncio.to_thread(page)
        self._full = details
        self._draw_request(details)
        self._show_deadline()
        self._offer(choices)
        self._loaded.set()
        self.query_one(Footer).refresh()

    def _draw_request(self, details: RequestDetails) -> None:
        texts, reviews = self.dashboard.texts, self._reviews.of(details)
        title = f"{texts(f'request.kind.{details.request.kind}')} · {sanitize(details.asked.agent)}"
        count = sum(len(each.hunks) for each in reviews.values())
        if count:
            taken = sum(each.taken for each in reviews.values())
            title += " · " + texts(
                "review.taken" if count > 1 else "review.taken_one", taken=taken, count=count
            )
        if self._page is not None:
            view = self.query_one("#request", ReviewView)
            view.show_request(details.asked.row.path, self._page.draw(reviews), title=title)

    def toggle_hunk(self, call: str, hunk: int) -> None:
        """Decline or accept a hunk. Nothing is sent yet."""
        details = self._full
        if not self.dashboard.can_act:
            self.dashboard.explain_read_only()
        elif details is None:
            self.dashboard.show_message(self.dashboard.texts("request.look_first"))
        elif self._reviews.toggle(details, call, hunk):
            self._draw_request(details)

    def comment_on(self, row: RequestRow) -> None:
        """Let the person comment on a line. Nothing is sent yet."""
        self.dashboard.open_editor(partial(self._comment, row), self)

    async def _comment(self, row: RequestRow) -> None:
        details = await self._open_request("approve")
        if details is None or not await self._reviews.comment(details, row):
            return
        if details is self._full:
            self._draw_request(details)
            self.query_one("#request", ReviewView).show_hunk()

    def _choices(self, details: RequestDetails) -> list[RequestOption]:
        request = details.request
        if details.asked.ended is not None:
            return []
        if request.kind == "select":
            return [
                RequestOption(each.label, each.value, False, not request.multi) for each in request.options
            ]
        if len(request.calls) > 1:
            texts = self.dashboard.texts
            return [
                RequestOption(tool_name(call.name, texts), call.id, True, False) for call in request.calls
            ]
        return []

    def _offer(self, choices: list[RequestOption]) -> None:
        offered = self.query_one("#choices", ChoiceList)
        offered.set_class(not choices, "-away")
        is_select = self._full is not None and self._full.request.kind == "select"
        self.query_one("#right").set_class(is_select and bool(choices), "-select")
        if not choices and (offered.has_focus or offered.has_class("-front")):
            self._put_in_front(self.query_one("#requests", RequestList))
            if offered.has_focus:
                self.query_one("#requests", RequestList).focus()
        prompt = self._full.request.prompt.strip() if self._full else ""
        offered.offer(choices, sanitize(prompt.split("\n", 1)[0]))
        self.recount()
