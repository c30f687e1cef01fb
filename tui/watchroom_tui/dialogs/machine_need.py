"""A need of another machine, with everything that the machine has sent about it."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from watchroom.features.needs.rules import NeedAnswer

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.machines import RemoteNeed
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane

_ANSWERS: Final = ("approve", "reject", "seen")


class MachineNeedDialog(ModalDialog[NeedAnswer | None]):
    """Shows ``item``. The result is the kind of the person's answer, None if the person goes back."""

    BINDINGS = bindings("machine_need")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("machine_need",)

    def __init__(self, item: RemoteNeed) -> None:
        super().__init__()
        self._item = item

    def compose(self) -> ComposeResult:
        yield TextPane(title="pane.needs", empty="empty.detail", id="detail", classes="pane")

    def on_mount(self) -> None:
        super().on_mount()
        need, texts = self._item.need, self.dashboard.texts
        lines: list[Line] = [[Span(sanitize(each))] for each in need.details]
        if need.is_cut:
            lines.append([Span(texts("machine.cut", name=sanitize(self._item.view.name)), "warning")])
        pane = self.query_one("#detail", TextPane)
        pane.show_notice(need.row, lines, title=f"{self._item.party} · {sanitize(need.kind)}")
        pane.border_subtitle = content(self.key_hints())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        answers = self._item.answers
        if action == "answer":
            return "reply" in answers or "choose" in answers
        return action in answers if action in _ANSWERS else True

    def action_approve(self) -> None:
        self.dismiss("approve")

    def action_reject(self) -> None:
        self.dismiss("reject")

    def action_seen(self) -> None:
        self.dismiss("seen")

    def action_answer(self) -> None:
        self.dismiss("choose" if "choose" in self._item.need.answers else "reply")

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)
