"""Begin a task: what is to be done, in which folder, with which model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Checkbox, Input, Static, TextArea

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.dialogs.text_input import TextDraft
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.editor import SourceArea
from watchroom_tui.widgets.line_widget import content


class NewTask(NamedTuple):
    """What a person entered: the ``text`` of the task, its ``folder``, a ``model`` (empty for none), and
    whether simulated developers work on it."""

    text: str
    folder: str
    model: str
    is_simulated: bool


class _SpaceCheckbox(Checkbox, inherit_bindings=False):
    """A box that only space ticks: enter begins the task."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "toggle_button", show=False)]
    BUTTON_INNER = " "

    def watch_value(self) -> None:
        # Textual shows the state by colour alone.
        self.BUTTON_INNER = "X" if self.value else " "
        super().watch_value()


class NewTaskRefused(Exception):
    """Why a task cannot be begun, as people read it."""


class NewTaskDialog(ModalDialog[str | None]):
    """Ends with the id of the task that was begun, empty where it is not known yet; with None if the person
    goes back. What is wrong is shown, and everything that was entered stays."""

    BINDINGS = bindings("writing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("writing",)

    def __init__(self, draft: TextDraft, folder: str, begin: Callable[[NewTask], str]) -> None:
        """``draft`` keeps the text of the task; ``folder`` is offered. ``begin`` is called in a thread: it
        begins the task and returns its id, or raises `NewTaskRefused`."""
        super().__init__()
        self._draft = draft
        self._folder = folder
        self._begin = begin
        self._text = SourceArea(id="text", soft_wrap=True, show_line_numbers=False)
        self._is_beginning = False

    def compose(self) -> ComposeResult:
        texts = self.dashboard.texts
        with Vertical(id="new-task"):
            self._text.border_title = content(texts("new_task.text"))
            yield self._text
            for name, value in (("folder", self._folder), ("model", "")):
                field = Input(value, id=name, select_on_focus=False)
                field.border_title = content(texts(f"new_task.{name}"))
                yield field
            yield _SpaceCheckbox(content(texts("new_task.simulate")), id="simulate")
            said = Static(Content(texts("new_task.about")), id="said", markup=False)
            said.border_subtitle = content(self.key_hints())
            yield said

    def on_mount(self) -> None:
        # A quick key may have closed it before there was anything to write in.
        if self._text.is_attached:
            self._text.load_source(self._draft.text)
            self._text.move_cursor(self._text.document.end)
            self._text.focus()

    @on(TextArea.Changed)
    def keep(self) -> None:
        """What is written is kept at once: quitting asks about it."""
        self._draft.text = self._text.source

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter begins the task in every field."""
        return action != "send"

    def action_new_line(self) -> None:
        if self._text.has_focus:
            self._text.insert("\n")

    def action_send_line(self) -> None:
        if not self._is_beginning:
            self._is_beginning = True
            self._say(self.dashboard.texts("new_task.begins"))
            self.begin_task()

    @work(group="new-task")
    async def begin_task(self) -> None:
        """Begin what was entered, and close; or say why that cannot be."""
        folder, model = (self.query_one(f"#{name}", Input).value for name in ("folder", "model"))
        is_simulated = self.query_one("#simulate", Checkbox).value
        entered = NewTask(self._text.source, folder, model, is_simulated)
        try:
            task = await asyncio.to_thread(self._begin, entered)
        except NewTaskRefused as error:
            self._say(sanitize(str(error)), is_error=True)
            self._is_beginning = False
        else:
            self.dismiss(task)

    def _say(self, text: str, *, is_error: bool = False) -> None:
        said = self.query_one("#said", Static)
        said.update(Content(text))
        said.set_class(is_error, "-error")
