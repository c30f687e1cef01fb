"""Hand the work of an agent over: show the briefing, and ask for the receiver and a note."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static
from watchroom.errors import WatchroomError
from watchroom.features.handoffs.rows import HAND_OVER
from watchroom.kernel.journal import Journal
from watchroom.model import MESSAGE, Json
from watchroom.texts import catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from watchroom.history.briefing import Briefing
    from watchroom.texts import Language


class HandOverDialog(ModalDialog[tuple[str, str] | None]):
    """Form for the receiver and a note, below the briefing, which includes the note. The result is the
    receiver and the text of the briefing, None if the person goes back.

    - ``briefing``: what is known about the agent's work.
    - ``agents``: the agents that can be the receiver.
    - ``language``: the language of the workspace, in which agents read.
    """

    BINDINGS = bindings("writing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("writing",)

    def __init__(self, briefing: Briefing, agents: Sequence[str], language: Language) -> None:
        super().__init__()
        self._briefing = briefing
        self._agents = agents
        self._language: Language = language

    def compose(self) -> ComposeResult:
        texts, agent = self.dashboard.texts, sanitize(self._briefing.agent)
        known = ", ".join(map(sanitize, self._agents))
        with Vertical(id="handing"):
            yield TextPane(title="pane.text", empty="empty.detail", id="briefing", classes="pane")
            for name in ("to", "note"):
                field = Input(id=name, select_on_focus=False)
                field.border_title = content(texts(f"hand_over.{name}", known=known))
                yield field
            said = Static(Content(texts("hand_over.about", agent=agent)), id="said", markup=False)
            said.border_subtitle = content(self.key_hints())
            yield said

    def on_mount(self) -> None:
        super().on_mount()
        self._show_briefing()
        receiver = self.query_one("#to", Input)
        if len(self._agents) == 1:
            receiver.value = self._agents[0]
        receiver.focus()

    @on(Input.Changed, "#note")
    def _show_briefing(self) -> None:
        lines = sanitize_lines(self._write_text())
        title = self.dashboard.texts("hand_over.title", agent=sanitize(self._briefing.agent))
        shown: list[Line] = [[Span(" "), Span(line, _style(line))] for line in lines]
        self.query_one("#briefing", TextPane).show_notice("briefing", shown, title=title)

    def _write_text(self) -> str:
        from watchroom.history.briefing import format_briefing

        return format_briefing(
            self._briefing, catalogue(self._language), self.query_one("#note", Input).value
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether ``action`` is available. Enter hands over from every field."""
        return action not in ("send", "new_line")

    def action_send_line(self) -> None:
        self.call_after_keys(self._hand_over)

    def _hand_over(self) -> None:
        receiver = self.query_one("#to", Input).value.strip()
        if receiver in self._agents:
            self.dismiss((receiver, self._write_text()))
            return
        known = ", ".join(map(sanitize, self._agents))
        said = self.query_one("#said", Static)
        said.update(Content(self.dashboard.texts("hand_over.unknown", to=sanitize(receiver), known=known)))
        said.add_class("-error")


def _style(line: str) -> str:
    if line.startswith("#"):
        return "strong"
    return "dim" if line.startswith("  >") else ""


async def hand_over(app: Dashboard, agent: str) -> None:
    """Show the briefing on the work of ``agent``, and hand the work over if the person wants. Await this in a
    worker."""
    texts, name = app.texts, sanitize(agent)
    workspace = await app.wait_for_workspace()
    if workspace is None:
        app.explain_read_only()
        return
    others = [each.agent.id for each in app.model.agents if each.agent.id != agent and not each.is_ended]
    if not others:
        app.show_message(texts("hand_over.nobody"), "warning")
        return
    app.show_message(texts("hand_over.reading", agent=name))
    try:
        briefing = await asyncio.to_thread(_read, app.journal, agent)
    except WatchroomError as error:
        app.show_message(sanitize(error.message(app.language)), "error")
        return
    language = workspace.config.language
    answer = await app.push_screen_wait(HandOverDialog(briefing, others, language))
    if answer is None:
        return
    receiver, text = answer
    fields = {"agent_id": agent, "to_agent": receiver, "briefing": text}
    values = {"agent": name, "to": sanitize(receiver)}
    if not await app.carry_out(HAND_OVER, fields, texts("hand_over.done", **values)):
        return
    view = app.model.agent(receiver)
    if view is None or view.session is None:
        app.show_message(texts("hand_over.not_woken", **values), "warning")
        return
    wake = await asyncio.to_thread(_write_wake_message, agent, language)
    arguments: dict[str, Json] = {"to": receiver, "payload": {"text": wake}}
    await app.carry_out(MESSAGE, arguments, texts("hand_over.done", **values))


def _read(journal: Journal, agent: str) -> Briefing:
    # Slow to load.
    from watchroom.history.briefing import read_briefing

    return read_briefing(journal, agent)


def _write_wake_message(agent: str, language: Language) -> str:
    from watchroom.history.briefing import write_wake_message

    return write_wake_message(agent, catalogue(language))
