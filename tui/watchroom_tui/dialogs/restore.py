"""Restore an earlier version after a preview of the changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import ClassVar

from textual import work
from watchroom import Json
from watchroom.features.overview.reads import UnreadableVersionError, VersionPair, read_current
from watchroom.model import Row
from watchroom.texts import Catalogue

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import SheetDialog
from watchroom_tui.formatters.diff_drawing import DiffDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.readers.comparison import compare_pair


class RestoreDialog(SheetDialog):
    """Preview and restoration of the version ``wanted``, as the person. The result is whether the version was
    restored."""

    TEXT_TITLE: ClassVar = "pane.diff"
    TEXT_MISSING: ClassVar = "files.comparing"

    def __init__(self, wanted: Row, texts: Catalogue) -> None:
        super().__init__(texts("files.rollback_title"), texts("files.comparing"))
        self._wanted = wanted
        self._seen: Row | None = None
        self._is_committing = False

    def on_mount(self) -> None:
        self.load("")

    @work(exclusive=True, group="preview")
    async def load(self, notice: str) -> None:
        """Preview the changes, and ask for confirmation. ``notice``: a text above the question."""
        app, texts, wanted = self.dashboard, self.dashboard.texts, self._wanted
        head = await asyncio.to_thread(read_current, app.journal, wanted)
        if head is None:
            raise RuntimeError(f"{wanted.path} has versions but no current one")
        try:
            compared = await compare_pair(app, VersionPair(head, wanted))
        except UnreadableVersionError as error:
            app.show_message(texts("files.unreadable", version=f"v{error.row.version}"), "error")
            self.dismiss(False)
            return
        view = self.text_view
        title = f"{sanitize(wanted.path)}  v{head.version} → v{wanted.version}"
        if compared.changed:
            view.show_drawing(head.seq, DiffDrawing(compared, side_by_side=False), title=title)
        else:
            text = texts("files.no_changes", version=f"v{head.version}")
            view.show_notice(head.seq, [[], [Span(" "), Span(text, "dim")]], title=title)
        question = texts(
            "files.rollback_question",
            path=sanitize(wanted.path),
            version=wanted.version,
            next=(head.version or 0) + 1,
        )
        self.ask(f"{notice}\n\n{question}" if notice else question)
        self._seen = head

    def action_answer(self, answer: bool) -> None:
        if not answer:
            self.dismiss(False)
        elif self._seen is not None and not self._is_committing:
            self._is_committing = True
            self.commit(self._seen)

    @work(group="commit")
    async def commit(self, seen: Row) -> None:
        """Restore the version. Show the preview and ask again if the file has changed since."""
        app, texts, wanted = self.dashboard, self.dashboard.texts, self._wanted
        result = await app.act(*self._roll_back(seen))
        if result is None:
            self.dismiss(False)
            return
        if result.get("is_conflict"):
            self._is_committing, self._seen = False, None
            who = sanitize(str(result["current_author"]))
            self.load(texts("files.moved", version=result["current_version"], who=who))
            return
        if not result["success"]:
            app.show_failure(result)
        else:
            done = texts(
                "files.rolled_back",
                path=sanitize(wanted.path),
                version=wanted.version,
                new=result["new_version"],
            )
            app.show_message(done)
        self.dismiss(bool(result["success"]))

    def _roll_back(self, seen: Row) -> tuple[str, Mapping[str, Json]]:
        """Return the name and the arguments of the tool that restores the version."""
        expected, version = seen.version, self._wanted.version
        if seen.zone == "board":
            return "whiteboard_restore", {
                "board": seen.path,
                "version": version,
                "expected_version": expected,
            }
        return "collab_rollback", {
            "filepath": seen.path,
            "to_version": version,
            "expected_version": expected,
        }


def ask_to_restore(app: Dashboard, wanted: Row, head: Row) -> None:
    """Preview the restoration of ``wanted``, and ask for confirmation. Show the reason if it cannot be
    restored. ``head``: the current version."""
    texts = app.texts
    if not app.can_act:
        app.explain_read_only()
    elif wanted.version is None:
        app.show_message(texts("files.refused"), "warning")
    elif wanted.version == head.version:
        app.show_message(texts("files.current", version=wanted.version), "warning")
    else:
        app.push_screen(RestoreDialog(wanted, texts))
