"""The editor: replaces and appends text, and offers a choice if a text occurs several times (EDIT).

It only edits its own buffer. A `DataSourceBinding` connects the buffer to a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.algorithms.editing.response import (
    NO_FLAG,
    OperationResult,
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.algorithms.editing.selections import (
    Selections,
    choose_tag,
    find_matches,
    is_valid_for,
    list_candidates,
)
from watchroom.algorithms.merge import TextStyle
from watchroom.errors import NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES
from watchroom.texts import Catalogue, Language, catalogue

_MAX_QUOTED: Final = 120
"""Maximum characters of the buffer or of an argument that a response quotes."""
_MAX_SIMILAR: Final = 3
"""Maximum number of similar lines that are suggested if a text was not found."""
_MIN_LIKENESS: Final = 60.0
"""Minimum similarity of a suggested line, in percent."""
_MAX_COMPARED: Final = 200
"""Maximum characters of each line that are compared."""


class TextChange(NamedTuple):
    """A change of a text: ``removed`` code points at position ``at`` were replaced by ``text``."""

    at: int
    removed: int
    text: str

    def apply(self, content: str) -> str:
        """Return ``content`` after the change."""
        return content[: self.at] + self.text + content[self.at + self.removed :]


class ContentChanged(NamedTuple):
    """An event: the content of a buffer has changed.

    - ``version``: the new version of the content.
    - ``timestamp``: nanoseconds since the epoch.
    - ``metrics``: the metrics of the change.
    - ``change``: None if the whole content was replaced.
    """

    version: int
    timestamp: int
    metrics: TextEditMetrics
    change: TextChange | None = None


class BufferMessages:
    """The summaries and the guidance for the buffer ``name``, by code and in ``language`` (EDIT-4.1)."""

    def __init__(self, name: str, language: Language) -> None:
        self.name = name
        self.language: Language = language
        self._texts: Catalogue = catalogue(language)

    def summary(self, code: str, **values: object) -> str:
        """Return a one-line summary for ``code``."""
        return self._texts(f"editing.summary.{code}", buffer=self.name, **values)

    def guidance(self, code: str, **values: object) -> str | None:
        """Return guidance for the next step; None if no guidance is needed."""
        key = f"editing.guidance.{code}"
        return self._texts(key, buffer=self.name, **values) if key in self._texts else None

    def describe_style(self, style: TextStyle) -> str:
        """Return a short description of ``style``."""
        return style.describe(self._texts)


class TextEditor:
    """The editor of a buffer that one agent edits exclusively (EDIT-7.1). Not thread-safe.

    - ``content``: the initial text. Raises `NotText` or `TooLarge` if it cannot be stored.
    - ``name``: the name of the buffer, as in its tools: ``{name}_replace``.
    - ``language``: the language of the responses.
    - ``clock``: returns nanoseconds since the epoch.
    - ``version``: the version of ``content``.
    - ``selections_lapsed``: the value of the earlier editor that this editor continues.
    """

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
        self._subscribers: list[Callable[[ContentChanged], None]] = []

    @property
    def name(self) -> str:
        """The name of the buffer."""
        return self._messages.name

    @property
    def version(self) -> int:
        """The version of the content. Each change increments it."""
        return self._version

    @property
    def state(self) -> WorkflowState:
        """``SELECTION_PENDING`` while a choice is open, otherwise ``IDLE``."""
        return WorkflowState.SELECTION_PENDING if self._selections else WorkflowState.IDLE

    @property
    def selections(self) -> Selections | None:
        """The open selections; None if no choice is open."""
        return self._selections

    @property
    def selections_lapsed(self) -> bool:
        """Whether a change of the text invalidated the last selections before a choice."""
        return self._selections_lapsed

    def snapshot(self) -> str:
        """Return the content."""
        return self._text

    def subscribe(self, on_change: Callable[[ContentChanged], None]) -> Callable[[], None]:
        """Call ``on_change`` with each change. Return an unsubscribe function."""
        self._subscribers.append(on_change)
        return lambda: self._subscribers.remove(on_change)

    def replace(self, old_text: str, new_text: str) -> TextEditResponse:
        """Replace ``old_text`` by ``new_text`` if it occurs exactly once.

        If it occurs several times, the first few occurrences become selections. They replace an earlier open
        choice.
        """
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
        """Replace the selection ``selection_id`` (from 1) by ``new_text``, default the text from
        `replace`."""
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
        """Append ``text`` without changing it."""
        problem = self._find_problem(text)
        if problem:
            return self._no_op(problem)
        if not text:
            return self._no_op("nothing_to_append")
        return self._replace_range(len(self._text), 0, text, "appended")

    def discard_selection(self) -> TextEditResponse:
        """Close the open choice without changing the text."""
        if self._selections is None:
            return self._no_op(self._no_selection_code())
        self._selections = None
        return self._respond(TextEditStatus.SUCCESS, "selection_discarded")

    def try_update(self, content: str) -> OperationResult[bool]:
        """Replace the whole text by ``content``, unless it cannot be stored.

        The value of the result is True if the text changed. The message mentions invalidated selections.
        """
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
        """Drop invalid selections. This is the first pass (EDIT-7.2)."""
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
        if self._subscribers:
            metrics = TextEditMetrics(delta=delta, new_length=len(content))
            changed = ContentChanged(self._version, self._clock(), metrics, change)
            for on_change in tuple(self._subscribers):
                on_change(changed)

    def _find_problem(self, text: str) -> str:
        """Return the code of the reason why ``text`` cannot be stored; empty if it can."""
        try:
            validation.encode_text(text)
        except TooLarge:
            return "too_large"
        except NotText:
            return "not_text"
        return ""

    def _respond_not_found(self, needle: str) -> TextEditResponse:
        if _matches_except_line_ends(self._text, needle):
            return self._respond(TextEditStatus.NO_MATCH, "line_ends")
        similar = _find_similar_lines(self._text, needle)
        if not similar:
            return self._respond(TextEditStatus.NO_MATCH, "no_match", needle=_shorten(needle))
        lines = "; ".join(f"{number}: `{_shorten(line.strip())}`" for number, line in similar)
        return self._respond(TextEditStatus.NO_MATCH, "no_match_near", needle=_shorten(needle), lines=lines)

    def _no_selection_code(self) -> str:
        return "selection_lapsed" if self._selections_lapsed else "no_selection"

    def _no_op(self, code: str) -> TextEditResponse:
        """Return a response with the reason why nothing was done."""
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
        # All values are our own, so validation would only cost time.
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


def _matches_except_line_ends(text: str, needle: str) -> bool:
    """Return whether ``needle`` would occur in ``text`` if both had the same line ends."""
    plain = needle.replace("\r\n", "\n")
    return (plain != needle and plain in text) or (plain.replace("\n", "\r\n") in text and "\n" in plain)


def _find_similar_lines(text: str, needle: str) -> list[tuple[int, str]]:
    """Return the lines of ``text`` that are most similar to the longest line of ``needle``, best first.

    Each is (number from 1, line).
    """
    # Loaded on demand, because most searched texts are found.
    from rapidfuzz import fuzz, process

    wanted = max((line.strip() for line in needle.split("\n")), key=len)[:_MAX_COMPARED]
    if not wanted:
        return []
    lines = [line[:_MAX_COMPARED] for line in text.split("\n")]
    found = process.extract(
        wanted, lines, scorer=fuzz.ratio, processor=str.strip, limit=_MAX_SIMILAR, score_cutoff=_MIN_LIKENESS
    )
    return [(index + 1, line) for line, _, index in found]


def _shorten(text: str) -> str:
    """Return ``text`` as one line of at most `_MAX_QUOTED` characters, with control characters escaped."""
    line = text.replace("\r", "\\r").replace("\n", "\\n").replace("`", "'")
    line = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)
    return line if len(line) <= _MAX_QUOTED else line[:_MAX_QUOTED] + "…"
