"""Enter a text: a message, an answer, a reason, or changed arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static, TextArea
from watchroom.features.overview.model import Model

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.widgets.editor import SourceArea
from watchroom_tui.widgets.line_widget import content

ENTER_SENDS: Final = {"send_line": True, "new_line": True, "send": False}
"""The actions of the dialog. True: available while Enter sends. False: available while Enter begins a new
line."""


class TextDraft:
    """An unsent text of a person.

    - ``key``: the key among the drafts.
    - ``label``: the displayed purpose of the text.
    - ``text``: the text so far.
    """

    def __init__(
        self, key: str, label: str, text: str = "", *, is_wanted: Callable[[Model], bool] | None = None
    ) -> None:
        """``is_wanted``: callback that returns whether the text is still needed, default: always."""
        self.key = key
        self.label = label
        self.text = text
        self._begun = text
        self._is_wanted = is_wanted

    @property
    def is_begun(self) -> bool:
        """Whether the person changed the text."""
        return self.text != self._begun

    def is_unsaved(self, model: Model) -> bool:
        """Return whether the person changed the text, and the text is still needed."""
        return self.is_begun and (self._is_wanted is None or self._is_wanted(model))


HINT_SECONDS: Final = 1.0
"""Seconds between two updates of a hint."""


async def enter_text(
    dashboard: Dashboard,
    draft: TextDraft,
    title: str,
    hint: str | Callable[[], str],
    *,
    many_lines: bool = False,
    may_be_empty: bool = False,
) -> str | None:
    """Let the person edit ``draft``. Return the text, or None if the person goes back. Await this in a
    worker.

    The draft is kept among the dashboard's drafts until the caller drops it.

    - ``title``, ``hint``: sanitized texts. A callable is asked for the hint once per second.
    - ``many_lines``: whether Enter begins a new line. Default: Enter sends.
    - ``may_be_empty``: whether an empty text can be sent, default: no.
    """
    dashboard.drafts.keep(draft.key, draft)
    dialog = TextInputDialog(title, hint, draft, many_lines=many_lines, may_be_empty=may_be_empty)
    text = await dashboard.push_screen_wait(dialog)
    if text is None and not draft.is_begun:
        dashboard.drafts.drop(TextDraft, draft.key)
    return text


class TextInputDialog(ModalDialog[str | None]):
    """Dialog for a text. The result is the text, or None if the person goes back. ``draft`` keeps the text so
    far."""

    BINDINGS = bindings("writing")
    SCOPES: ClassVar[tuple[Scope, ...]] = ("writing",)

    def __init__(
        self,
        title: str,
        hint: str | Callable[[], str],
        draft: TextDraft,
        *,
        many_lines: bool = False,
        may_be_empty: bool = False,
    ) -> None:
        super().__init__()
        self._draft = draft
        self._title = title
        self._hint = hint
        self._many_lines = many_lines
        self._may_be_empty = may_be_empty
        self._writer = SourceArea(id="text", classes="pane", soft_wrap=True, show_line_numbers=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="writing", classes="-tall" if self._many_lines else ""):
            with VerticalScroll(id="hint", can_focus=False):
                yield Static(Content(self._hint_text()), id="hint-text", markup=False)
            self._writer.border_title = content(self._title)
            self._writer.border_subtitle = content(self.key_hints())
            yield self._writer

    def on_mount(self) -> None:
        if callable(self._hint):
            self.set_interval(HINT_SECONDS, self._update_hint)
        # A quick key may have closed the dialog before the editor was mounted.
        if self._writer.is_attached:
            self._writer.load_source(self._draft.text)
            self._writer.move_cursor(self._writer.document.end)
            self._writer.focus()

    def _hint_text(self) -> str:
        return self._hint() if callable(self._hint) else self._hint

    def _update_hint(self) -> None:
        """Update the hint, because an agent can end while the person writes to it."""
        self.query_one("#hint-text", Static).update(Content(self._hint_text()))

    @on(TextArea.Changed)
    def keep(self) -> None:
        """Save the text in the draft at once, so that quitting asks about the text."""
        self._draft.text = self._writer.source

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether ``action`` is available. Enter sends, or begins a new line."""
        return action not in ENTER_SENDS or ENTER_SENDS[action] != self._many_lines

    def action_new_line(self) -> None:
        self.call_after_keys(self._begin_line)

    def action_send_line(self) -> None:
        self.action_send()

    def action_send(self) -> None:
        self.call_after_keys(self._send)

    def _begin_line(self) -> None:
        self._writer.insert("\n")

    def _send(self) -> None:
        self._draft.text = text = self._writer.source
        if text.strip() or self._may_be_empty:
            self.dismiss(text)
        else:
            self.dashboard.show_message(self.dashboard.texts("writing.empty"), "warning")
