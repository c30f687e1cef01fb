"""Comments on lines that agents changed. People write, edit and remove comments, and send them together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from watchroom.features.trees.comments import (
    COMMENT,
    MAX_CHARACTERS,
    MAX_COMMENTS,
    MAX_QUOTED_CHARACTERS,
    SENT,
    TreeComment,
    find_unsent,
    write_prompt,
)
from watchroom.features.trees.rows import split_repo_path
from watchroom.model import MESSAGE, Json
from watchroom.texts import catalogue as core_texts

from watchroom_tui.context import Dashboard
from watchroom_tui.dialogs.confirm import LinesConfirmDialog
from watchroom_tui.dialogs.text_input import TextDraft, enter_text
from watchroom_tui.formatters.drawing import DrawnLine
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

if TYPE_CHECKING:
    from watchroom.features.trees.reads import ChangedFile

_QUOTE: Final = ">"


class ChangeComments:
    """The comments of the person at ``app``."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app

    def list_unsent(self, agent: str) -> list[TreeComment]:
        """Return the unsent comments for ``agent``."""
        return find_unsent(self._app.model.comments, agent)

    async def write(self, file: ChangedFile, agent: str, lines: Sequence[DrawnLine]) -> None:
        """Ask the person for a comment to ``agent`` on ``lines`` of ``file``. Await this in a worker."""
        tree, path = split_repo_path(file.head.path)
        quote = "\n".join(each.text for each in lines)[:MAX_QUOTED_CHARACTERS]
        first = lines[0]
        await self.edit(TreeComment(uuid4().hex, tree, path, agent, first.at + 1, first.is_old, quote, ""))

    async def edit(self, comment: TreeComment) -> None:
        """Let the person edit ``comment``. An empty text removes the comment. Await this in a worker."""
        app, texts = self._app, self._app.texts
        # Each new comment has a new id, so its draft is found by its place.
        place = f"{comment.line} {comment.is_old}" if not comment.text else comment.id
        key = f"comment {comment.tree} {comment.path} {place}"
        label = texts("change_comments.draft", agent=comment.agent)
        draft = app.drafts.find(TextDraft, key) or TextDraft(key, label, comment.text)
        title = texts(
            "change_comments.title_old" if comment.is_old else "change_comments.title",
            line=comment.line,
            agent=sanitize(comment.agent),
        )
        quoted = (sanitize(each.strip()) for each in comment.quote.split("\n"))
        hint = next(filter(None, quoted), texts("review.empty_line"))
        text = await enter_text(app, draft, title, hint, may_be_empty=True)
        if text is None:
            return
        if len(text) > MAX_CHARACTERS:
            app.show_message(texts("change_comments.too_long", characters=MAX_CHARACTERS), "error")
            return
        if (text.strip() or comment.text) and not await app.carry_out(COMMENT, _arguments(comment, text)):
            return
        app.drafts.drop(TextDraft, key)

    async def send(self, agent: str, reading: str) -> None:
        """Show the prompt with the comments for ``agent``, and send it if the person confirms. Await this in
        a worker. ``reading``: a sanitized text about the time at which the agent reads the prompt."""
        app, texts = self._app, self._app.texts
        comments = self.list_unsent(agent)[:MAX_COMMENTS]
        folders = {each.id: each.folder for each in app.model.trees}
        prompt = write_prompt(comments, core_texts(app.language), folders)
        question = texts("change_comments.question", count=len(comments), agent=sanitize(agent))
        title = texts("change_comments.send_title", agent=sanitize(agent))
        if not await app.push_screen_wait(
            LinesConfirmDialog(title, f"{question} {reading}", _prompt_lines(prompt))
        ):
            return
        if not await app.carry_out(MESSAGE, {"to": agent, "payload": {"text": prompt}}):
            return
        sent: dict[str, Json] = {
            "tree": comments[0].tree,
            "agent": agent,
            "comments": [each.id for each in comments],
        }
        await app.carry_out(SENT, sent, f"{texts('session.sent')} {reading}")


def _arguments(comment: TreeComment, text: str) -> dict[str, Json]:
    fields = comment.detail
    return {**fields, "tree": comment.tree, "text": text.strip()}


def _prompt_lines(prompt: str) -> list[Line]:
    return [[Span(f" {line}", "dim" if line.startswith(_QUOTE) else "")] for line in sanitize_lines(prompt)]
