"""Actions of the person on needs of other machines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.dialogs.machine_need import MachineNeedDialog
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.machines import RemoteNeed, machine_text, sent_text
from watchroom_tui.presentation.sanitize import sanitize, shorten

if TYPE_CHECKING:
    from watchroom.features.overview.model import Model
    from watchroom.serving.machines.messages import FarAnswer, FarOption


class MachineActions:
    """Answers needs of other machines for the person at ``app``."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app

    def show(self, item: RemoteNeed) -> None:
        """Show the whole need. The person can answer it there."""
        self._app.run_worker(self._show(item), group="machine")

    async def _show(self, item: RemoteNeed) -> None:
        decision = await self._app.push_screen_wait(MachineNeedDialog(item))
        if decision == "approve":
            self.approve(item)
        elif decision == "reject":
            self.reject(item)
        elif decision == "seen":
            self.mark_as_seen(item)
        elif decision is not None:
            self.answer(item)

    def approve_at_a_glance(self, item: RemoteNeed) -> None:
        """Approve the only call of a request. Ask the person to open the request if it has several calls, or
        if it has changed since."""
        if not item.need.is_simple:
            self._app.show_message(self._app.texts("machine.look_first"), "warning")
        else:
            self.approve(item)

    def approve(self, item: RemoteNeed) -> None:
        """Approve all calls of a request that the person sees completely."""
        if self.is_answerable(item, "approve"):
            self._send(item, "approve")

    def reject(self, item: RemoteNeed) -> None:
        """Reject all calls, or decline the question, with a reason for the agent."""
        if self.is_answerable(item, "reject"):
            self._app.open_editor(partial(self._reject, item))

    def answer(self, item: RemoteNeed) -> None:
        """Answer a question, or choose."""
        decision: FarAnswer = "choose" if "choose" in item.need.answers else "reply"
        if self.is_answerable(item, decision):
            self._app.open_editor(partial(self._choose if decision == "choose" else self._reply, item))

    def mark_as_seen(self, item: RemoteNeed) -> None:
        """Mark a need as seen, after a confirmation."""
        if self.is_answerable(item, "seen"):
            self._app.run_worker(self._mark_as_seen(item), group="seen", exclusive=True)

    def is_answerable(self, item: RemoteNeed, decision: FarAnswer) -> bool:
        """Return whether the person can give this answer now. Show the reason if not."""
        app, texts = self._app, self._app.texts
        if not app.can_act:
            app.explain_read_only()
        elif not item.view.is_connected:
            app.show_message(machine_text(item.view, app.version, texts), "warning")
        elif sent := sent_text(item.view, item.need.row, texts):
            app.show_message(sent, "warning")
        elif decision not in item.answers:
            app.show_message(texts("machine.answer_there", name=sanitize(item.view.name)), "warning")
        else:
            return True
        return False

    def _send(
        self, item: RemoteNeed, decision: FarAnswer, text: str = "", values: Sequence[str] = ()
    ) -> None:
        self._app.answer_machine(item, decision, text, values)

    async def _reject(self, item: RemoteNeed) -> None:
        texts = self._app.texts
        verb = "reject" if "approve" in item.need.answers else "decline"
        draft = self._draft(item, "reason")
        hint = texts(f"request.{verb}_hint")
        reason = await enter_text(self._app, draft, texts(f"request.{verb}_title"), hint, may_be_empty=True)
        if reason is not None:
            self._finish(item, draft, "reject", reason)

    async def _reply(self, item: RemoteNeed) -> None:
        draft = self._draft(item, "answer")
        title = self._app.texts("request.answer_title", agent=item.party)
        text = await enter_text(self._app, draft, title, shorten(item.need.matter))
        if text is not None:
            self._finish(item, draft, "reply", text)

    async def _choose(self, item: RemoteNeed) -> None:
        texts, options = self._app.texts, item.need.options
        draft = self._draft(item, "choice")
        listed = [f"{number} {sanitize(each.label)}" for number, each in enumerate(options, 1)]
        hint = "\n".join([shorten(item.need.matter), *listed])
        title = texts("machine.choose_several" if item.need.multi else "machine.choose_one", agent=item.party)
        while (text := await enter_text(self._app, draft, title, hint)) is not None:
            chosen = _chosen(text, options)
            if chosen and (item.need.multi or len(chosen) == 1):
                self._finish(item, draft, "choose", "", chosen)
                return
            self._app.show_message(texts("machine.no_choice", most=len(options)), "warning")

    async def _mark_as_seen(self, item: RemoteNeed) -> None:
        texts = self._app.texts
        question = texts("seen.question", subject=item.party, what=shorten(item.need.matter))
        if await self._app.push_screen_wait(ConfirmDialog(texts("seen.title"), question)):
            self._send(item, "seen")

    def _finish(
        self, item: RemoteNeed, draft: TextDraft, decision: FarAnswer, text: str, values: Sequence[str] = ()
    ) -> None:
        if self.is_answerable(item, decision):
            self._send(item, decision, text, values)
            self._app.drafts.drop(TextDraft, draft.key)

    def _draft(self, item: RemoteNeed, what: str) -> TextDraft:
        key = f"machine {item.view.name} {item.need.row} {what}"

        def is_open(_model: Model) -> bool:
            return any(each.identity == item.identity for each in self._app.remote_needs)

        label = self._app.texts("request.draft", agent=item.party)
        return self._app.drafts.find(TextDraft, key) or TextDraft(key, label, is_wanted=is_open)


def _chosen(text: str, options: Sequence[FarOption]) -> list[str]:
    """Return the values of the options with the numbers in ``text``, empty if a number is wrong."""
    words = text.replace(",", " ").split()
    numbers = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 4]
    is_valid = len(numbers) == len(words) == len({*numbers}) and all(
        0 < each <= len(options) for each in numbers
    )
    return [options[each - 1].value for each in numbers] if is_valid else []
