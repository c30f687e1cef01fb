"""Bringing an earlier version back: what that would change, and the question."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from watchroom import Json, Workspace
from watchroom.model import Row
from watchroom.texts import Catalogue

from watchroom_tui.comparing import Compared, Comparison
from watchroom_tui.safe import safe
from watchroom_tui.screens.question import QuestionScreen
from watchroom_tui.spans import Span
from watchroom_tui.versions import Pair, Unreadable, read_texts
from watchroom_tui.widgets.drawing_view import DrawingView


class RollbackScreen(QuestionScreen):
    """Commits in the person's name, if the file still is as it was shown; ends with whether it did."""

    def __init__(self, wanted: Row, workspace: Workspace, words: Catalogue) -> None:
        super().__init__(words("files.rollback_title"), words("files.comparing"))
        self._wanted = wanted
        self._workspace = workspace
        self._seen: Row | None = None
        self._is_committing = False

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield DrawingView(title="pane.diff", empty="files.comparing", id="changes", classes="pane")
            yield from super().compose()

    def on_mount(self) -> None:
        self.load("")

    @work(exclusive=True, group="preview")
    async def load(self, notice: str) -> None:
        """Show what would change from the current version to the wanted one, say ``notice``, and ask."""
        app, words, wanted = self.watchroom, self.watchroom.words, self._wanted
        journal = self._workspace.journal

        def read_head() -> Row | None:
            return journal.head(wanted.zone, wanted.path)

        head = await asyncio.to_thread(read_head)
        if head is None:
            raise RuntimeError(f"{wanted.path} has versions but no current one")
        try:
            texts = await asyncio.to_thread(read_texts, journal, Pair(head, wanted))
        except Unreadable as error:
            app.tell(words("files.unreadable", version=f"v{error.row.version}"), "error")
            self.dismiss(False)
            return
        changed = await app.worker_process.changes(texts.old, texts.new)
        view = self.query_one("#changes", DrawingView)
        title = f"{safe(wanted.path)}  v{head.version} → v{wanted.version}"
        if changed:
            compared = Compared(texts.old_lines, texts.new_lines, changed)
            view.show_drawing(head.seq, Comparison(compared, side_by_side=False), title=title)
        else:
            text = words("files.no_changes", version=f"v{head.version}")
            view.show_words(head.seq, [[], [Span(" "), Span(text, "dim")]], title=title)
        question = words(
            "files.rollback_question",
            path=safe(wanted.path),
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
        app, words, wanted = self.watchroom, self.watchroom.words, self._wanted
        result = await asyncio.to_thread(self._roll_back, seen)
        if result.get("is_conflict"):
            self._is_committing, self._seen = False, None
            who = safe(str(result["current_author"]))
            self.load(words("files.moved", version=result["current_version"], who=who))
            return
        if not result["success"]:
            app.tell(f"{result['message']} {result['suggestion']}", "error")
        else:
            done = words(
                "files.rolled_back",
                path=safe(wanted.path),
                version=wanted.version,
                new=result["new_version"],
            )
            app.tell(done)
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
