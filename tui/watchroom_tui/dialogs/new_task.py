"""Start a task: text, folder and model."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Checkbox, Input, Static, TextArea
from watchroom.features.trees.place import repository_of

from watchroom_tui.context import Dashboard, TaskTarget
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.dialogs.text_input import TextDraft
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.editor import SourceArea
from watchroom_tui.widgets.line_widget import content
from watchroom_tui.worker.task_launcher import TaskNotLaunched, TaskOrder, launch_task

_DRAFT: Final = "new task"


class SpaceCheckbox(Checkbox, inherit_bindings=False):
    """Checkbox that only the space key toggles, because Enter submits the form."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "toggle_button", show=False)]
    BUTTON_INNER = " "

    def watch_value(self) -> None:
        # Textual shows the state only by colour.
        self.BUTTON_INNER = "X" if self.value else " "
        super().watch_value()


class NewTaskDialog(ModalDialog[str | None]):
    """Form for a new task. The result is the id of the started task, or None if the person goes back. The id
    is empty if it is not known yet. The form shows a refusal, and keeps the entered values.

    - ``draft``: keeps the text of the task.
    - ``root``: the workspace's folder.
    - ``folder``: the folder to suggest.
    """

    BINDINGS = bindings("writing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("writing",)

    def __init__(self, draft: TextDraft, root: str, folder: str) -> None:
        super().__init__()
        self._draft = draft
        self._root = root
        self._folder = folder
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
            yield SpaceCheckbox(content(texts("new_task.simulate")), id="simulate")
            said = Static(Content(texts("new_task.about")), id="said", markup=False)
            said.border_subtitle = content(self.key_hints())
            yield said

    def on_mount(self) -> None:
        # A quick key may have closed the dialog before the editor was mounted.
        if self._text.is_attached:
            self._text.load_source(self._draft.text)
            self._text.move_cursor(self._text.document.end)
            self._text.focus()

    @on(TextArea.Changed)
    def keep(self) -> None:
        """Save the text in the draft at once, so that quitting asks about the text."""
        self._draft.text = self._text.source

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether ``action`` is available. Enter starts the task in every field."""
        return action != "send"

    def action_new_line(self) -> None:
        if self._text.has_focus:
            self._text.insert("\n")

    def action_send_line(self) -> None:
        self.call_after_keys(self._begin)

    def _begin(self) -> None:
        if not self._is_beginning:
            self._is_beginning = True
            self._say(self.dashboard.texts("new_task.begins"))
            self.begin_task()

    @work(group="new-task")
    async def begin_task(self) -> None:
        """Start the task, and close the dialog. Show the reason if the task cannot be started."""
        app = self.dashboard
        folder, model = (self.query_one(f"#{name}", Input).value for name in ("folder", "model"))
        is_simulated = self.query_one("#simulate", Checkbox).value
        order = TaskOrder(self._text.source, folder, model, is_simulated)
        launch = partial(launch_task, order, self._root, app.person, app.texts, app.language)
        try:
            task = await asyncio.to_thread(launch)
        except TaskNotLaunched as error:
            self._refuse(str(error))
        except OSError as error:
            self._refuse(app.texts("new_task.not_started", reason=error.strerror or error))
        else:
            self.dismiss(task.id)

    def _refuse(self, reason: str) -> None:
        self._say(sanitize(reason), is_error=True)
        self._is_beginning = False

    def _say(self, text: str, *, is_error: bool = False) -> None:
        said = self.query_one("#said", Static)
        said.update(Content(text))
        said.set_class(is_error, "-error")


async def begin_task(app: Dashboard) -> None:
    """Ask for a task, start it in its own process, and go to it. Await this in a worker."""
    workspace = await app.wait_for_workspace()
    if workspace is None:
        app.explain_read_only()
        return
    root = str(workspace.root)
    draft = app.drafts.find(TextDraft, _DRAFT) or TextDraft(_DRAFT, app.texts("new_task.title"))
    app.drafts.keep(_DRAFT, draft)
    # Suggest a folder next to the workspace or repository, because a task's folder must not contain their
    # files.
    place = repository_of(root)
    folder = f"{root if place is None else place.main}-task-{len(app.model.tasks) + 1}"
    begun = await app.push_screen_wait(NewTaskDialog(draft, root, folder))
    if begun is not None or not draft.is_begun:
        app.drafts.drop(TextDraft, _DRAFT)
    if begun is not None:
        app.show_message(app.texts("new_task.begun"))
        await app.navigator.go_to("tasks", TaskTarget(begun))
