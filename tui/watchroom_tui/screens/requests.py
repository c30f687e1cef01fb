"""The requests screen: each request with its details, answered in place."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from watchroom.model import Row
from watchroom.projections import Model, Need, RequestView

from watchroom_tui.actions import bindings
from watchroom_tui.base_screen import BaseScreen
from watchroom_tui.describe import tool_name
from watchroom_tui.readers.request import RequestDetails, read_request, request_lines
from watchroom_tui.sanitize import sanitize
from watchroom_tui.services.request_actions import RequestActions
from watchroom_tui.services.worker_main import DiffLine
from watchroom_tui.widgets.frame import Footer
from watchroom_tui.widgets.line_list import LineList
from watchroom_tui.widgets.request_lists import ChoiceList, RequestList, RequestOption
from watchroom_tui.widgets.text_view import TextView

ANSWERS: Final = {
    "approve": "approve",
    "reject": "approve",
    "edit_arguments": "approve",
    "write_answer": "prompt",
}
"""Which kind of request each action answers."""


class RequestsScreen(BaseScreen):
    SCREEN_NAME: ClassVar = "requests"
    EXTRA_SCOPES: ClassVar = ("choices",)
    BINDINGS = bindings("requests")

    def __init__(self) -> None:
        super().__init__()
        self._shown: RequestView | None = None
        self._full: RequestDetails | None = None
        self._loaded = asyncio.Event()
        self._loaded.set()
        self._answering: RequestActions | None = None

    @property
    def answering(self) -> RequestActions:
        """How this person answers."""
        if self._answering is None:
            self._answering = RequestActions(self.watchroom)
        return self._answering

    def compose_panes(self) -> ComposeResult:
        with Horizontal(id="body", classes="group"):
            yield RequestList(title="pane.requests", empty="empty.requests", id="requests", classes="pane")
            with Vertical(id="right", classes="group"):
                yield TextView(title="pane.request", empty="empty.request", id="request", classes="pane")
                yield ChoiceList(
                    title="pane.choices", empty="empty.choices", id="choices", classes="pane -away"
                )

    def show_model(self, model: Model) -> None:
        now = self.watchroom.now()
        waiting = [each for each in model.requests if not each.has_expired(now)]
        late = [each for each in model.requests if each.has_expired(now)]
        self.query_one("#requests", RequestList).show([*waiting, *late, *model.ended_requests])
        self._show_request()

    @property
    def current_need(self) -> Need | None:
        asked = self.query_one("#requests", RequestList).item
        return self.find_need(["request"], asked.row.path if asked else None)

    def go_to(self, row: Row) -> None:
        requests = self.query_one("#requests", RequestList)
        self.show_model(self.watchroom.model)
        requests.move_to(row.path)
        self.front(requests)

    def offers(self, action: str) -> bool:
        details = self._full
        kind = details.request.kind if details is not None and details.asked.ended is None else None
        if action in ("open", "filter"):
            return kind != "approve" and not isinstance(self.focused, ChoiceList)
        return action not in ANSWERS or ANSWERS[action] == kind

    @on(LineList.Highlighted, "#requests")
    def choose(self) -> None:
        self._show_request()

    @on(LineList.Opened, "#requests")
    async def open_request(self) -> None:
        """To what wants an answer: the choices, the text, or what would change."""
        await self._loaded.wait()
        if self._full is None:
            return
        if self._full.asked.ended is None and self._full.request.kind == "prompt":
            await self.action_write_answer()
        else:
            choices = self.query_one("#choices", ChoiceList)
            self.front(choices if choices.items else self.query_one("#request", TextView))

    @on(LineList.Opened, "#choices")
    async def send_choice(self) -> None:
        """Enter sends what is ticked; of single options the one under the cursor."""
        details = await self._open_request()
        choices = self.query_one("#choices", ChoiceList)
        if details is None or details.request.kind != "select":
            return
        if not details.request.multi and choices.item is not None:
            self.answering.choose(details, [choices.item.value])
        else:
            self.answering.choose(details, choices.ticked)

    async def action_approve(self) -> None:
        details = await self._open_request("approve")
        if details is not None:
            self.answering.approve(details, self._ticked(details))

    async def action_reject(self) -> None:
        details = await self._open_request("approve")
        if details is not None:
            self.answering.reject(details)

    async def action_edit_arguments(self) -> None:
        details = await self._open_request("approve")
        if details is not None:
            item = self.query_one("#choices", ChoiceList).item
            self.answering.edit(
                details, item.value if item else details.request.calls[0].id, self._ticked(details)
            )

    async def action_write_answer(self) -> None:
        details = await self._open_request("prompt")
        if details is not None:
            self.answering.write(details)

    async def action_to_session(self) -> None:
        asked = self.query_one("#requests", RequestList).item
        if asked is not None:
            await self.watchroom.navigator.go_to_session(asked.session)

    def _ticked(self, details: RequestDetails) -> list[str]:
        """The ids of the calls that are ticked; of a single one, that."""
        if len(details.request.calls) == 1:
            return [details.request.calls[0].id]
        return list(self.query_one("#choices", ChoiceList).ticked)

    async def _open_request(self, kind: str | None = None) -> RequestDetails | None:
        """The request under the cursor, if it is open and of this kind; else says what it is."""
        # What was chosen just now is still being read: a quick key means it all the same.
        await self._loaded.wait()
        app, details = self.watchroom, self._full
        if await app.wait_for_workspace() is None:
            app.explain_read_only()
        elif details is None or details.asked.ended is not None or details.asked.has_expired(app.now()):
            app.show_message(app.texts("request.none"), "warning")
        elif kind is not None and details.request.kind != kind:
            app.show_message(app.texts(f"request.how.{details.request.kind}"), "warning")
        elif kind == "approve" and not self._shows_request():
            app.show_message(app.texts("request.look_first"))
            self.front(self.query_one("#request", TextView))
        else:
            return details
        return None

    def _shows_request(self) -> bool:
        """Whether a person can see what they are about to decide on: where there is little space, the list
        may hide it."""
        return not self.has_class("-narrow") or not self.query_one("#requests").has_class("-front")

    def _show_request(self) -> None:
        asked = self.query_one("#requests", RequestList).item
        if asked == self._shown:
            return
        self._shown, self._full = asked, None
        self.query_one(Footer).refresh()
        if asked is None:
            self.query_one("#request", TextView).clear()
            self._offer([])
            self._loaded.set()
        else:
            self._loaded.clear()
            self.load(asked)

    @work(exclusive=True, group="request")
    async def load(self, asked: RequestView) -> None:
        """Show what is asked, and what it would change as things stand."""
        app = self.watchroom
        details = await asyncio.to_thread(read_request, app.journal, asked)
        changes: list[list[DiffLine] | None] = []
        for would in details.proposals:
            changed = await app.worker_process.diff(would.before, would.after) if would else None
            changes.append(changed)
        self._full = details
        lines = request_lines(details, changes, app.texts)
        title = f"{app.texts(f'request.kind.{details.request.kind}')} · {sanitize(asked.agent)}"
        self.query_one("#request", TextView).show_notice(asked.row.path, lines, title=title)
        self._offer(self._choices(details))
        self._loaded.set()
        self.query_one(Footer).refresh()

    def _choices(self, details: RequestDetails) -> list[RequestOption]:
        request = details.request
        if details.asked.ended is not None:
            return []
        if request.kind == "select":
            return [
                RequestOption(each.label, each.value, False, not request.multi) for each in request.options
            ]
        if len(request.calls) > 1:
            texts = self.watchroom.texts
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
