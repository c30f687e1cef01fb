"""Restore an earlier version: shows what changes, and asks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from watchroom import Json, Workspace
from watchroom.model import Row
from watchroom.texts import Catalogue

from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.diff_drawing import DiffDrawing, DiffInput
from watchroom_tui.readers.versions import UnreadableVersionError, VersionPair, read_version_texts
from watchroom_tui.sanitize import sanitize
from watchroom_tui.styled_text import Span
from watchroom_tui.widgets.line_view import LineView


class RestoreDialog(ConfirmDialog):
    """Commits in the person's name, if the file still is as it was shown; ends with whether it did."""

    def __init__(self, wanted: Row, workspace: Workspace, texts: Catalogue) -> None:
        super().__init__(texts("files.rollback_title"), texts("files.comparing"))
        self._wanted = wanted
        self._workspace = workspace
        self._seen: Row | None = None
        self._is_committing = False

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LineView(title="pane.diff", empty="files.comparing", id="changes", classes="pane")
            yield from super().compose()

    def on_mount(self) -> None:
        self.load("")

    @work(exclusive=True, group="preview")
    async def load(self, notice: str) -> None:
        """Show what would change from the current version to the wanted one, say ``notice``, and ask."""
        app, texts, wanted = self.watchroom, self.watchroom.texts, self._wanted
        journal = self._workspace.journal

        def read_head() -> Row | None:
            return journal.head(wanted.zone, wanted.path)

        head = await asyncio.to_thread(read_head)
        if head is None:
            raise RuntimeError(f"{wanted.path} has versions but no current one")
        try:
            contents = await asyncio.to_thread(read_version_texts, journal, VersionPair(head, wanted))
        except UnreadableVersionError as error:
            app.show_message(texts("files.unreadable", version=f"v{error.row.version}"), "error")
            self.dismiss(False)
            return
        changed = await app.worker_process.changes(contents.old, contents.new)
        view = self.query_one("#changes", LineView)
        title = f"{sanitize(wanted.path)}  v{head.version} → v{wanted.version}"
        if changed:
            compared = DiffInput(contents.old_lines, contents.new_lines, changed)
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
        """Roll back, unless the file moved since it was shown: then show it anew, and ask again."""
        app, texts, wanted = self.watchroom, self.watchroom.texts, self._wanted
        result = await asyncio.to_thread(self._roll_back, seen)
        if result.get("is_conflict"):
            self._is_committing, self._seen = False, None
            who = sanitize(str(result["current_author"]))
            self.load(texts("files.moved", version=result["current_version"], who=who))
            return
        if not result["success"]:
            app.show_message(f"{result['message']} {result['suggestion']}", "error")
        else:
            done = texts(
                "files.rolled_back",
                path=sanitize(wanted.path),
                version=wanted.version,
                new=result["new_version"],
            )
            app.show_message(done)
        self.dismiss(bool(result["success"]))

    def _roll_back(self, seen: Row) -> Mapping[str, Json]:
        tools = self._workspace.tools_for_human(self.watchroom.person)
        if seen.zone == "board":
            return tools.dispatch_tool_call(
                "whiteboard_restore",
                {
                    "board": seen.path,
                    "version": self._wanted.version,
                    "expected_version": seen.version,
                },
            )
        return tools.dispatch_tool_call(
            "collab_rollback",
            {
                "filepath": seen.path,
                "to_version": self._wanted.version,
                "expected_version": seen.version,
            },
        )
