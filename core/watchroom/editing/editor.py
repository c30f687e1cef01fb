"""The editor: replaces, appends, and where a text stands several times has the model choose (spec 4).

It edits its own buffer and nothing else. What stands beneath it, and when that is written, is the business
of a `DataSourceBinding`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from watchroom import validation
from watchroom.editing.buffer import ContentChanged, TextChange
from watchroom.editing.buffer_messages import BufferMessages
from watchroom.editing.response import (
    NO_FLAG,
    OperationResult,
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.editing.selections import Selections, choose_tag, find_matches, is_valid_for, list_candidates
from watchroom.editing.similar_lines import find_similar_lines, matches_except_line_ends
from watchroom.errors import NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES
from watchroom.texts import Language

_SHORT: Final = 120


class TextEditor:
    """Edits the text that one agent has to itself; an `ExclusiveBuffer`. Belongs to one thread at a time.

    ``name`` is the buffer's, as its tools have it: ``{name}_replace``. ``clock`` gives nanoseconds since the
    epoch; ``version`` is that of ``content``, where an editor goes on from an earlier one. Raises
    `NotText`, `TooLarge` for a content that cannot be kept.
    """

    def __init__(
        self,
        content: str = "",
        *,
        name: str = "buffer",
        language: Language = "en",
        clock: Callable[[], int] = time.time_ns,
        version: int = 1,
    ) -> None:
        self._bytes = len(validation.encode_text(content))
        self._text = content
        self._version = version
        self._words = BufferMessages(name, language)
        self._clock = clock
        self._selections: Selections | None = None
        self._lapsed = False
        self._listeners: list[Callable[[ContentChanged], None]] = []

    @property
    def name(self) -> str:
        return self._words.name

    @property
    def version(self) -> int:
        return self._version

    @property
    def state(self) -> WorkflowState:
        return WorkflowState.SELECTION_PENDING if self._selections else WorkflowState.IDLE

    @property
    def selections(self) -> Selections | None:
        """The places that wait for a choice."""
        return self._selections

    def snapshot(self) -> str:
        return self._text

    def subscribe(self, listener: Callable[[ContentChanged], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def replace(self, old_text: str, new_text: str) -> TextEditResponse:
        """Replace ``old_text``, if it stands exactly once. Where it stands more often the first few places
        become selections; an earlier choice that was still open is given up for them."""
        problem = self._problem_with(new_text)
        if problem:
            return self._nothing(problem)
        if not old_text:
            return self._nothing("empty_needle")
        if old_text == new_text:
            return self._nothing("same_text")
        found = find_matches(self._text, old_text)
        if not found.count:
            return self._not_found(old_text)
        if found.count == 1:
            return self._write(found.starts[0], len(old_text), new_text, "replaced")
        tag = choose_tag(self._text)
        self._selections = Selections(self._version, old_text, new_text, found.starts, found.count, tag)
        shown = len(found.starts)
        code = "multi_match" if shown == found.count else "multi_match_more"
        return self._told(
            TextEditStatus.MULTI_MATCH,
            code,
            count=found.count,
            shown=shown,
            choices=list_candidates(self._text, self._selections),
        )

    def replace_selection(self, selection_id: int, new_text: str | None = None) -> TextEditResponse:
        """Replace the chosen place: with what `replace` was given, or with ``new_text``."""
        selections = self._selections
        if selections is None:
            lapsed, self._lapsed = self._lapsed, False
            return self._told(
                TextEditStatus.NO_MATCH, "selection_lapsed" if lapsed else "no_selection", hints=True
            )
        if not is_valid_for(self._text, self._version, selections):
            self._selections = None
            return self._told(TextEditStatus.NO_MATCH, "selection_lapsed", hints=True)
        start = selections.start_of(selection_id)
        if start is None:
            choices = list_candidates(self._text, selections)
            return self._told(
                TextEditStatus.NO_MATCH,
                "selection_unknown",
                number=selection_id,
                shown=len(choices),
                choices=choices,
                count=selections.count,
            )
        text = selections.replacement if new_text is None else new_text
        problem = self._problem_with(text)
        if problem:
            return self._nothing(problem)
        if text == selections.needle:
            return self._nothing("same_text")
        return self._write(start, len(selections.needle), text, "selection_replaced", number=selection_id)

    def append(self, text: str) -> TextEditResponse:
        """Put ``text`` at the end, as it is."""
        problem = self._problem_with(text)
        if problem:
            return self._nothing(problem)
        if not text:
            return self._nothing("nothing_to_append")
        return self._write(len(self._text), 0, text, "appended")

    def discard_selection(self) -> TextEditResponse:
        """Give up the choice that is open; the text stays as it is."""
        if self._selections is None:
            return self._nothing("no_selection")
        self._selections = None
        return self._told(TextEditStatus.SUCCESS, "selection_discarded")

    def try_update(self, content: str) -> OperationResult[bool]:
        """Take a content from outside, as a whole. Selections lapse with it."""
        problem = self._problem_with(content, whole=True)
        if problem:
            return OperationResult(
                error_code=problem,
                message=self._words.summary(problem),
                diagnostic_hint=f"v{self._version}",
            )
        if content == self._text:
            return OperationResult(value=False)
        self._take(content, len(content.encode()), None)
        return OperationResult(value=True)

    def update(self) -> None:
        """The first pass (spec 4 §7.2): selections that hold no longer go."""
        if self._selections is not None and not is_valid_for(self._text, self._version, self._selections):
            self._selections, self._lapsed = None, True

    def _write(
        self, start: int, length: int, text: str, code: str, *, number: int | None = None
    ) -> TextEditResponse:
        removed = self._text[start : start + length]
        size = self._bytes - len(removed.encode()) + len(text.encode())
        if size > MAX_TEXT_BYTES:
            return self._nothing("too_large")
        change = TextChange(start, length, text)
        self._take(change.apply(self._text), size, change)
        if code == "selection_replaced":
            self._lapsed = False
        return self._told(TextEditStatus.SUCCESS, code, delta=len(text) - length, number=number)

    def _take(self, content: str, size: int, change: TextChange | None) -> None:
        delta = len(content) - len(self._text)
        self._lapsed = self._selections is not None
        self._selections = None
        self._text, self._bytes = content, size
        self._version += 1
        if self._listeners:
            metrics = TextEditMetrics(delta=delta, new_length=len(content))
            changed = ContentChanged(self._version, self._clock(), metrics, change)
            for listener in tuple(self._listeners):
                listener(changed)

    def _problem_with(self, text: str, *, whole: bool = False) -> str:
        """Why the text cannot be taken, empty if it can."""
        try:
            validation.encode_text(text)
        except TooLarge:
            return "too_large"
        except NotText:
            return "not_text"
        return ""

    def _not_found(self, needle: str) -> TextEditResponse:
        if matches_except_line_ends(self._text, needle):
            return self._told(TextEditStatus.NO_MATCH, "line_ends")
        near = find_similar_lines(self._text, needle)
        if not near:
            return self._told(TextEditStatus.NO_MATCH, "no_match", needle=_shown(needle))
        lines = "; ".join(f"{each.number}: `{_shown(each.text.strip())}`" for each in near)
        return self._told(TextEditStatus.NO_MATCH, "no_match_near", needle=_shown(needle), lines=lines)

    def _nothing(self, code: str) -> TextEditResponse:
        """Nothing was done."""
        return self._told(TextEditStatus.NO_OP, code, hints=code in ("too_large", "not_text"))

    def _told(
        self,
        status: TextEditStatus,
        code: str,
        *,
        delta: int = 0,
        count: int | None = None,
        choices: tuple[TextEditCandidate, ...] | None = None,
        hints: bool = False,
        **values: object,
    ) -> TextEditResponse:
        flags = TextEditFlag.SELECTION_PENDING if self._selections else NO_FLAG
        if hints:
            flags |= TextEditFlag.DIAGNOSTIC_HINT
        # Nothing in it comes from outside, so nothing has to be validated.
        return TextEditResponse.model_construct(
            status=status,
            workflow_state=self.state,
            flags=flags,
            summary=self._words.summary(code, count=count, delta=f"{delta:+}", **values),
            guidance=self._words.guidance(code, count=count, **values),
            metrics=TextEditMetrics.model_construct(
                delta=delta, new_length=len(self._text), selection_count=count
            ),
            candidates=choices,
            code=code,
        )


def _shown(text: str) -> str:
    """A text in a line, short."""
    line = text.replace("\r", "\\r").replace("\n", "\\n").replace("`", "'")
    line = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)
    return line if len(line) <= _SHORT else line[:_SHORT] + "…"
