"""The editor: replaces, appends, and lets the model choose where a text occurs several times (EDIT).

It edits its own buffer only. The file behind it is the business of a `DataSourceBinding`."""

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

    ``content`` is the initial text, and ``version`` its version. ``name`` is the buffer's, as in its tools:
    ``{name}_replace``. Responses are in ``language``. ``clock`` gives nanoseconds since the epoch.
    ``selections_lapsed`` continues an earlier editor. Raises `NotText`, `TooLarge` for a content that cannot
    be stored."""

    def __init__(
        self,
        content: str = "",
        *,
        name: str = "buffer",
        language: Language = "en",
        clock: Callable[[], int] = time.time_ns,
        version: int = 1,
        selections_lapsed: bool = False,
    ) -> None:
        self._bytes = len(validation.encode_text(content))
        self._text = content
        self._version = version
        self._messages = BufferMessages(name, language)
        self._clock = clock
        self._selections: Selections | None = None
        self._selections_lapsed = selections_lapsed
        self._listeners: list[Callable[[ContentChanged], None]] = []

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self._messages.name

    @property
    def version(self) -> int:
        """The version of the content."""
        return self._version

    @property
    def state(self) -> WorkflowState:
        """``SELECTION_PENDING`` while a choice is open, else ``IDLE``."""
        return WorkflowState.SELECTION_PENDING if self._selections else WorkflowState.IDLE

    @property
    def selections(self) -> Selections | None:
        """The places that wait for a choice, None if there are none."""
        return self._selections

    @property
    def selections_lapsed(self) -> bool:
        """Whether a change of the text made the last selections invalid before one of them was chosen."""
        return self._selections_lapsed

    def snapshot(self) -> str:
        """The content."""
        return self._text

    def subscribe(self, listener: Callable[[ContentChanged], None]) -> Callable[[], None]:
        """Call ``listener`` with each change. Returns a function that ends the subscription."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def replace(self, old_text: str, new_text: str) -> TextEditResponse:
        """Replace ``old_text`` by ``new_text``, if it occurs exactly once. If it occurs more often, the first
        few places become selections, in place of an earlier choice that was still open."""
        problem = self._find_problem(new_text)
        if problem:
            return self._no_op(problem)
        if not old_text:
            return self._no_op("empty_needle")
        if old_text == new_text:
            return self._no_op("same_text")
        found = find_matches(self._text, old_text)
        if not found.count:
            return self._respond_not_found(old_text)
        if found.count == 1:
            return self._replace_range(found.starts[0], len(old_text), new_text, "replaced")
        tag = choose_tag(self._text)
        self._selections = Selections(self._version, old_text, new_text, found.starts, found.count, tag)
        self._selections_lapsed = False
        shown = len(found.starts)
        code = "multi_match" if shown == found.count else "multi_match_more"
        return self._respond(
            TextEditStatus.MULTI_MATCH,
            code,
            count=found.count,
            shown=shown,
            choices=list_candidates(self._text, self._selections),
        )

    def replace_selection(self, selection_id: int, new_text: str | None = None) -> TextEditResponse:
        """Replace the place ``selection_id`` (from 1) by ``new_text``, or by what `replace` was given."""
        self.update()
        selections = self._selections
        if selections is None:
            return self._respond(TextEditStatus.NO_MATCH, self._no_selection_code(), hints=True)
        start = selections.start_of(selection_id)
        if start is None:
            choices = list_candidates(self._text, selections)
            return self._respond(
                TextEditStatus.NO_MATCH,
                "selection_unknown",
                number=selection_id,
                shown=len(choices),
                choices=choices,
                count=selections.count,
            )
        text = selections.replacement if new_text is None else new_text
        problem = self._find_problem(text)
        if problem:
            return self._no_op(problem)
        if text == selections.needle:
            return self._no_op("same_text")
        return self._replace_range(
            start, len(selections.needle), text, "selection_replaced", number=selection_id
        )

    def append(self, text: str) -> TextEditResponse:
        """Append ``text`` unchanged."""
        problem = self._find_problem(text)
        if problem:
            return self._no_op(problem)
        if not text:
            return self._no_op("nothing_to_append")
        return self._replace_range(len(self._text), 0, text, "appended")

    def discard_selection(self) -> TextEditResponse:
        """Give up the choice that is open; the text stays as it is."""
        if self._selections is None:
            return self._no_op(self._no_selection_code())
        self._selections = None
        return self._respond(TextEditStatus.SUCCESS, "selection_discarded")

    def try_update(self, content: str) -> OperationResult[bool]:
        """Replace the whole text by ``content``, from outside. The value says whether the text changed. If
        open selections lapse by it, the message says so."""
        problem = self._find_problem(content)
        if problem:
            return OperationResult(
                error_code=problem,
                message=self._messages.summary(problem),
                diagnostic_hint=f"v{self._version}",
            )
        if content == self._text:
            return OperationResult(value=False)
        lapses = self._selections is not None
        self._set_content(content, len(content.encode()), None)
        message = self._messages.guidance("selection_lapsed") if lapses else None
        return OperationResult(value=True, message=message or "")

    def update(self) -> None:
        """The first pass (EDIT-7.2): selections that are no longer valid lapse."""
        if self._selections is not None and not is_valid_for(self._text, self._version, self._selections):
            self._selections, self._selections_lapsed = None, True

    def _replace_range(
        self, start: int, length: int, text: str, code: str, *, number: int | None = None
    ) -> TextEditResponse:
        removed = self._text[start : start + length]
        size = self._bytes - len(removed.encode()) + len(text.encode())
        if size > MAX_TEXT_BYTES:
            return self._no_op("too_large")
        if code == "selection_replaced":
            self._selections = None
        lapses = self._selections is not None
        change = TextChange(start, length, text)
        self._set_content(change.apply(self._text), size, change)
        return self._respond(
            TextEditStatus.SUCCESS,
            code,
            guidance="selection_lapsed" if lapses else code,
            delta=len(text) - length,
            number=number,
        )

    def _set_content(self, content: str, size: int, change: TextChange | None) -> None:
        delta = len(content) - len(self._text)
        if self._selections is not None:
            self._selections, self._selections_lapsed = None, True
        self._text, self._bytes = content, size
        self._version += 1
        if self._listeners:
            metrics = TextEditMetrics(delta=delta, new_length=len(content))
            changed = ContentChanged(self._version, self._clock(), metrics, change)
            for listener in tuple(self._listeners):
                listener(changed)

    def _find_problem(self, text: str) -> str:
        """Why the text cannot be taken, empty if it can."""
        try:
            validation.encode_text(text)
        except TooLarge:
            return "too_large"
        except NotText:
            return "not_text"
        return ""

    def _respond_not_found(self, needle: str) -> TextEditResponse:
        if matches_except_line_ends(self._text, needle):
            return self._respond(TextEditStatus.NO_MATCH, "line_ends")
        near = find_similar_lines(self._text, needle)
        if not near:
            return self._respond(TextEditStatus.NO_MATCH, "no_match", needle=_shorten(needle))
        lines = "; ".join(f"{each.number}: `{_shorten(each.text.strip())}`" for each in near)
        return self._respond(TextEditStatus.NO_MATCH, "no_match_near", needle=_shorten(needle), lines=lines)

    def _no_selection_code(self) -> str:
        return "selection_lapsed" if self._selections_lapsed else "no_selection"

    def _no_op(self, code: str) -> TextEditResponse:
        """Nothing was done."""
        return self._respond(TextEditStatus.NO_OP, code, hints=code in ("too_large", "not_text"))

    def _respond(
        self,
        status: TextEditStatus,
        code: str,
        *,
        guidance: str = "",
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
            summary=self._messages.summary(code, count=count, delta=f"{delta:+}", **values),
            guidance=self._messages.guidance(guidance or code, count=count, **values),
            metrics=TextEditMetrics.model_construct(
                delta=delta, new_length=len(self._text), selection_count=count
            ),
            candidates=choices,
            code=code,
        )


def _shorten(text: str) -> str:
    """A text in a line, short."""
    line = text.replace("\r", "\\r").replace("\n", "\\n").replace("`", "'")
    line = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)
    return line if len(line) <= _SHORT else line[:_SHORT] + "…"
