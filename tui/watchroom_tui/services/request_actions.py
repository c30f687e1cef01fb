"""Answer requests of agents. Each answer is one tool call of the person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from watchroom.model import ANSWER, Json
from watchroom.rules.requests import parse_arguments

from watchroom_tui.dialogs.text_input import TextInputDialog
from watchroom_tui.readers.request import RequestDetails
from watchroom_tui.sanitize import sanitize

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp


class RequestActions:
    """What was written and not sent is kept for when the person comes back to it."""

    def __init__(self, app: WatchroomApp) -> None:
        self._app = app
        self._drafts: dict[tuple[int, str], str] = {}

    def approve(self, details: RequestDetails, ticked: Sequence[str]) -> None:
        """Approve of the ticked calls; of the others the agent is told that they were rejected."""
        if not ticked:
            self.reject(details)
        else:
            self._start(partial(self._decide, details, ticked, {}))

    def reject(self, details: RequestDetails) -> None:
        """Reject all calls, with a reason that the agent reads."""
        self._start(partial(self._reject, details))

    def edit(self, details: RequestDetails, call_id: str, ticked: Sequence[str]) -> None:
        """Approve of a call with other arguments than the agent wrote."""
        self._start(partial(self._edit, details, call_id, ticked))

    def write(self, details: RequestDetails) -> None:
        """Answer with a text."""
        self._start(partial(self._write, details))

    def choose(self, details: RequestDetails, values: Sequence[str]) -> None:
        """Answer with these values."""
        if values:
            self._start(partial(self._choose, details, values))
        else:
            self._app.show_message(self._app.texts("request.tick_first"), "warning")

    async def _choose(self, details: RequestDetails, values: Sequence[str]) -> None:
        await self._send(details, {"values": list(values)})

    def _start(self, work: Callable[[], Awaitable[object]]) -> None:
        self._app.run_worker(work, group="answer")

    async def _decide(
        self, details: RequestDetails, ticked: Sequence[str], edited: Mapping[str, str]
    ) -> bool:
        """Whether the decisions were taken."""
        decisions: list[Mapping[str, Json]] = [
            {"call_id": call.id, "approved": call.id in ticked, "arguments": edited.get(call.id)}
            for call in details.request.calls
        ]
        return await self._send(details, {"decisions": decisions})

    async def _reject(self, details: RequestDetails) -> None:
        texts = self._app.texts
        title = texts("request.reject_title", agent=sanitize(details.asked.agent))
        hint = texts("request.reject_hint")
        reason = await self._written(details, "reason", title, hint, "", may_be_empty=True)
        if reason is not None and not await self._send(details, {"approved": False, "reason": reason}):
            self._drafts[details.asked.id, "reason"] = reason

    async def _write(self, details: RequestDetails) -> None:
        title = self._app.texts("request.answer_title", agent=sanitize(details.asked.agent))
        text = await self._written(details, "answer", title, sanitize(details.request.prompt), "")
        if text is not None and not await self._send(details, {"text": text}):
            self._drafts[details.asked.id, "answer"] = text

    async def _edit(self, details: RequestDetails, call_id: str, ticked: Sequence[str]) -> None:
        texts = self._app.texts
        call = next(each for each in details.request.calls if each.id == call_id)
        title = texts("request.edit_title", tool=sanitize(call.name))
        text = json.dumps(parse_arguments(call.arguments), ensure_ascii=False, indent=2)
        hint = texts("request.edit_hint")
        while True:
            text_or_none = await self._written(details, call_id, title, hint, text, many_lines=True)
            if text_or_none is None:
                return
            problem = _problem(text_or_none)
            if problem is None:
                break
            # What was written stays, and the person sees what is wrong with it.
            text, hint = text_or_none, texts("request.not_json", problem=sanitize(problem))
        chosen = ticked if call_id in ticked else [*ticked, call_id]
        if not await self._decide(details, chosen, {call_id: text_or_none}):
            self._drafts[details.asked.id, call_id] = text_or_none

    async def _written(
        self,
        details: RequestDetails,
        what: str,
        title: str,
        hint: str,
        text: str,
        *,
        many_lines: bool = False,
        may_be_empty: bool = False,
    ) -> str | None:
        key = (details.asked.id, what)
        begun = self._drafts.pop(key, text)
        screen = TextInputDialog(title, hint, begun, many_lines=many_lines, may_be_empty=may_be_empty)
        written = await self._app.push_screen_wait(screen)
        if written is None and screen.draft != text:
            self._drafts[key] = screen.draft
        return written

    async def _send(self, details: RequestDetails, answer: Mapping[str, Json]) -> bool:
        """Whether the answer was taken."""
        app = self._app
        workspace = await app.wait_for_workspace()
        if workspace is None:
            return False
        tools = workspace.tools_for_human(app.person)
        arguments = {"request": details.asked.id, **answer}
        result = await asyncio.to_thread(tools.dispatch_tool_call, ANSWER, arguments)
        if result["success"]:
            outcome = app.texts(f"request.outcome.{cast(str, result['outcome'])}")
            app.show_message(app.texts("request.done", agent=sanitize(details.asked.agent), outcome=outcome))
        else:
            app.show_message(f"{result['message']} {result['suggestion']}", "error")
        return bool(result["success"])


def _problem(text: str) -> str | None:
    """What keeps ``text`` from being arguments, None if nothing does."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None if isinstance(value, dict) else type(value).__name__
