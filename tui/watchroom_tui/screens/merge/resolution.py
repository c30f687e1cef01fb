"""Resolve a conflict: commit, dismiss or revert, each after a confirmation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from watchroom.algorithms.merge import diff_result, join_current, join_regions
from watchroom.model import Json
from watchroom.texts import catalogue

from watchroom_tui.dialogs.commit import CommitDialog, PreviewDialog
from watchroom_tui.dialogs.confirm import ConfirmDialog
from watchroom_tui.formatters.diff_drawing import DiffDrawing, DiffInput
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.merge.draft import MergeDraft
from watchroom_tui.screens.merge.state import CHOICE_KINDS, ChoiceKind, count_choices

if TYPE_CHECKING:
    from watchroom_tui.base_screen import BaseScreen

MOST_MESSAGE: Final = 2000


class ConflictResolution:
    """Settles the merge of ``screen``. ``go_to_open`` moves the cursor to the first open region."""

    def __init__(self, screen: BaseScreen, draft: MergeDraft, go_to_open: Callable[[], None]) -> None:
        self._screen = screen
        self._app = screen.dashboard
        self._texts = screen.dashboard.texts
        self._draft = draft
        self._go_to_open = go_to_open

    async def preview(self) -> None:
        """Show the changes of a commit."""
        title = f"{self._title()} · {self._texts('help.close')}"
        await self._app.push_screen(PreviewDialog(await self._changes(), title))

    async def commit(self) -> None:
        """Commit the result as the next version if no region is open and the person confirms."""
        draft, app = self._draft, self._app
        if not self._is_open_conflict():
            return
        has_text = not (draft.sides.is_deletion or draft.sides.is_no_text)
        if not has_text and not draft.state.is_touched:
            self._say_no_text()
            return
        if draft.left:
            self._tell("merge.still_open" if draft.left > 1 else "merge.one_still_open", count=draft.left)
            self._go_to_open()
            return
        if not self._can_act():
            return
        sides = draft.sides
        result, is_current, taken = await asyncio.to_thread(_decided, draft)
        if not has_text and not result:
            self._say_no_text()
            return
        if is_current and sides.current is not None:
            await (self.revert() if sides.is_outside else self.dismiss())
            return
        message = await app.push_screen_wait(
            CommitDialog(await self._changes(), self._title(), self._proposed_message(taken))
        )
        if message is None:
            return
        said = self._taken_text(taken)
        if sides.is_own:
            self._end(
                "whiteboard_write",
                "merge.committed",
                said,
                board=sides.incoming.path,
                content=result,
                message=message,
                expected_version=sides.version,
            )
            return
        self._end(
            "resolve_conflict",
            "merge.committed",
            said,
            filepath=sides.incoming.path,
            content=result,
            message=message,
            expected_version=sides.version,
            conflicts=[sides.incoming.seq],
        )

    async def dismiss(self) -> None:
        """Dismiss the conflict and keep the current version. The refused write stays in the journal."""
        row = self._draft.sides.incoming
        if self._draft.sides.is_outside:
            await self.revert()
        elif self._draft.sides.is_own:
            if await self._confirm("dismiss"):
                self._draft.is_done = True
                self._app.drafts.drop(MergeDraft, row.seq)
                self._app.show_model()
        elif self._is_open_conflict() and self._can_act() and await self._confirm("dismiss"):
            self._end("dismiss_conflict", "merge.dismissed", "", conflict=row.seq)

    async def revert(self) -> None:
        """Restore the file from the journal if the incoming edit is external."""
        row = self._draft.sides.incoming
        if not self._draft.sides.is_outside:
            self._tell("merge.nothing_to_revert")
        elif self._is_open_conflict() and self._can_act() and await self._confirm("revert"):
            self._end("revert_outside_edit", "merge.reverted", "", filepath=row.path, conflict=row.seq)

    def _proposed_message(self, taken: Mapping[ChoiceKind, int]) -> str:
        """Return the proposed message: the number of changes taken from each side."""
        return sanitize(self._texts("merge.proposed", taken=self._taken_text(taken)))[:MOST_MESSAGE]

    def _taken_text(self, taken: Mapping[ChoiceKind, int]) -> str:
        """Return a phrase with the number of changes taken from each side. Not sanitized."""
        sides, texts = self._draft.sides, self._texts
        current = sides.current.actor if sides.current else ""
        named = [
            texts(f"merge.taken.{which}", count=taken[which], current=current, incoming=sides.incoming.actor)
            for which in CHOICE_KINDS
            if taken.get(which)
        ]
        return texts("merge.taken.separator").join(named) or texts("merge.taken.none")

    async def _changes(self) -> DiffDrawing:
        """Return the difference from the current version to the result so far."""
        regions = self._draft.state.regions

        def compare() -> DiffDrawing:
            return DiffDrawing(DiffInput(*diff_result(regions)), side_by_side=False)

        return await asyncio.to_thread(compare)

    def _title(self) -> str:
        sides = self._draft.sides
        title = f"{self._draft.label}  v{sides.version} → v{sides.version + 1}"
        if not self._draft.changes_style:
            return title
        texts, styles = catalogue(self._app.language), self._draft.styles
        return f"{title} · {styles.current.describe(texts)} → {styles.merged.describe(texts)}"

    def _say_no_text(self) -> None:
        """Report that there is no text to commit. An empty file is never the intent."""
        sides = self._draft.sides
        key = "merge.deleted" if sides.is_deletion else "merge.no_text"
        self._app.show_message(self._texts(key, path=self._draft.label), "warning")

    def _is_open_conflict(self) -> bool:
        """Return whether the conflict is still open. Show a message if it is not."""
        if self._draft.is_settled:
            row = self._draft.sides.incoming
            self._app.show_message(
                self._texts("merge.settled", path=self._draft.label, author=row.actor), "warning"
            )
        return not self._draft.is_settled

    def _can_act(self) -> bool:
        if not self._app.can_act:
            self._app.explain_read_only()
        return self._app.can_act

    async def _confirm(self, what: str) -> bool:
        sides, texts = self._draft.sides, self._texts
        is_of_revert = what == "dismiss" and "revert" in sides.incoming.detail
        question = texts(
            "merge.dismiss_reverted_question" if is_of_revert else f"merge.{what}_question",
            path=sanitize(self._draft.label),
            author=sanitize(sides.incoming.actor),
            version=sides.version,
        )
        title = texts(f"merge.{what}_title")
        return await self._screen.app.push_screen_wait(ConfirmDialog(title, question))

    def _end(self, tool: str, key: str, taken: str, **arguments: Json) -> None:
        """Call ``tool``. On success, show the message ``key`` with the phrase ``taken``."""
        self._draft.is_committing = True
        answer = self._app.act(tool, arguments)
        self._app.run_worker(self._report_result(answer, key, taken), group="ending")

    async def _report_result(
        self, coming: Awaitable[Mapping[str, Json] | None], key: str, taken: str
    ) -> None:
        draft, app = self._draft, self._app
        answer = await asyncio.shield(coming)
        draft.is_committing = False
        if answer is None:
            return
        draft.is_done = bool(answer["success"])
        if draft.is_done:
            row = draft.sides.incoming
            app.drafts.drop(MergeDraft, row.seq)
            version = answer.get("version")
            said = {"path": draft.label, "author": row.actor, "version": version, "taken": taken}
            app.show_message(self._texts(key, **said))
            if isinstance(version, int) and row.zone in ("collab", "repo") and self._screen.is_in_front:
                app.show_model()
                app.navigator.go_to_version(row.path, version)
                return
        elif answer.get("is_conflict"):
            self._tell("merge.not_committed")
        else:
            app.show_failure(answer)
        # Show the newest model, because the screen ignored models during the call.
        app.show_model()

    def _tell(self, key: str, **values: int) -> None:
        self._app.show_message(self._texts(key, **values), "warning")


def _decided(draft: MergeDraft) -> tuple[str, bool, Mapping[ChoiceKind, int]]:
    """Return the resolved text, whether it is the current text, and the number of changes of each choice."""
    regions = draft.state.regions
    is_current = not draft.changes_style and join_regions(regions) == join_current(regions)
    return draft.result(), is_current, count_choices(regions)
