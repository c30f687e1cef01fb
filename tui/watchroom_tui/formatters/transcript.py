"""A session as a transcript: texts, calls, results, questions and answers. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from rich.cells import cell_len
from watchroom.features.requests.rows import PendingCall, call_subject, parse_json
from watchroom.kernel.rules.details import get_list, get_object, get_text
from watchroom.model import HUMAN_PREFIX, Row, parse_object
from watchroom.texts import Catalogue

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import fit
from watchroom_tui.formatters.drawing import Cell, Drawing
from watchroom_tui.formatters.labels import tool_name
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines

TranscriptEntryKind: TypeAlias = Literal["said", "call", "note", "stream"]

NAME_WIDTH: Final = 11
MAX_UNFOLDED: Final = 400
"""Maximum number of lines for the arguments and result of a call."""


class TranscriptEntry(NamedTuple):
    """An entry of a transcript.

    - ``key``: the version of its step's row, followed by its place in the step.
    - ``who``: the agent or person.
    - ``mark``: the sign before the text.
    - ``more``: the text below an unfolded call.
    """

    key: str
    kind: TranscriptEntryKind
    who: str
    mark: Span
    text: str
    more: str = ""
    style: str = ""

    @property
    def step(self) -> int:
        """The version of its step's row."""
        return int(self.key.partition(".")[0])

    @property
    def is_named(self) -> bool:
        """Whether the entry shows the name of an agent or a person."""
        return self.kind != "said" or self.mark.style not in ("accent", "dim") or HUMAN_PREFIX in self.who


class SessionStep(NamedTuple):
    """A step of a session: its row, and its record in the journal."""

    row: Row
    record: Mapping[str, Any]


def make_session_step(row: Row, text: str) -> SessionStep:
    """Return the step whose row contains ``text``. Its record is empty if the text is damaged."""
    return SessionStep(row, parse_object(text) or {})


def make_entries(agent: str, steps: Sequence[SessionStep], texts: Catalogue) -> list[TranscriptEntry]:
    """Return the entries of the session's transcript."""
    found: list[TranscriptEntry] = []
    calls: dict[str, int] = {}
    # A transcript can report the result of a call before a hook reports the call.
    early: dict[str, str] = {}
    for row, record in steps:
        number = row.version or 0
        for event in _objects(record, "events"):
            note = _note(f"{number}", event, texts)
            if note is not None:
                found.append(note)
        for place, message in enumerate(_objects(record, "messages")):
            key = f"{number}.{place}"
            if message.get("role") == "tool":
                call_id, content = get_text(message, "tool_call_id"), get_text(message, "content")
                at = calls.get(call_id)
                if at is None:
                    early[call_id] = content
                else:
                    found[at] = _with_result(found[at], content, texts)
                continue
            found.extend(_message_entries(key, agent, message, texts))
            for order, call in enumerate(_objects(message, "tool_calls")):
                calls[get_text(call, "id")] = len(found)
                entry = _call(f"{key}.{order}", agent, call, texts)
                result = early.pop(get_text(call, "id"), None)
                found.append(entry if result is None else _with_result(entry, result, texts))
    return found


def entry_of_step(entries: Sequence[TranscriptEntry], step: int) -> TranscriptEntry | None:
    """Return the first entry of a step. A step of results has no entry; then return the last entry before it.

    ``step``: the version of its row.
    """
    before = [each for each in entries if each.step <= step]
    return next((each for each in before if each.step == step), before[-1] if before else None)


def _message_entries(
    key: str, agent: str, message: Mapping[str, Any], texts: Catalogue
) -> Iterable[TranscriptEntry]:
    text, role = get_text(message, "content"), message.get("role")
    if not text.strip():
        return
    if role == "assistant":
        yield TranscriptEntry(key, "said", agent, Span("▍", agent_class(agent)), text)
    elif role == "user":
        author = get_text(message, "author")
        yield TranscriptEntry(
            key, "said", author or texts("session.task"), Span("▍", "accent"), text, style="strong"
        )
    else:
        yield TranscriptEntry(key, "said", "system", Span("▍", "dim"), text, style="dim")


def _call(key: str, agent: str, call: Mapping[str, Any], texts: Catalogue) -> TranscriptEntry:
    function = get_object(call, "function")
    asked = PendingCall(get_text(call, "id"), get_text(function, "name"), get_text(function, "arguments"))
    text = f"{tool_name(asked.name, texts)} {call_subject(asked)}".strip()
    return TranscriptEntry(key, "call", agent, Span("…", "warning"), text, format_json(asked.arguments))


def _with_result(entry: TranscriptEntry, content: str, texts: Catalogue) -> TranscriptEntry:
    mark, said = _outcome(content, texts)
    given = f"{entry.more}\n{texts('session.gave')}\n{format_json(content)}"
    return entry._replace(mark=mark, text=f"{entry.text}  {said}".rstrip(), more=given)


def _outcome(content: str, texts: Catalogue) -> tuple[Span, str]:
    """Return the sign for the result of a call, and a short text about the result."""
    try:
        result = parse_json(content)
    except (ValueError, RecursionError):
        return Span("✓", "ok"), ""
    inner = result.get("result", result) if isinstance(result, dict) else result
    if not isinstance(inner, dict):
        return Span("✓", "ok"), _short(str(inner))
    if inner.get("success") is False:
        error = str(inner.get("error", ""))
        mark = Span("⊘", "error") if error == "rejected" else Span("✗", "error")
        return mark, f"{error}: {_short(str(inner.get('message', '')))}"
    version = inner.get("version", inner.get("new_version"))
    edited = (
        f" {texts('session.edited')}" if isinstance(result, dict) and "edited_arguments" in result else ""
    )
    return Span("✓", "ok"), (f"→ v{version}" if isinstance(version, int) else "") + edited


_NOTES: Final[Mapping[str, Span]] = {
    "human_approve_required": Span("◐", "warning"),
    "human_prompt_required": Span("◐", "warning"),
    "human_select_required": Span("◐", "warning"),
    "llm_incomplete": Span("◐", "warning"),
    "human_answered": Span("◑", "ok"),
    "thought": Span("·", "dim"),
    "plan_changed": Span("☰", "dim"),
    "paused": Span("⏸", "warning"),
    "resumed": Span("●", "ok"),
    "rate_limited": Span("⧖", "warning"),
    "cancelled": Span("✖", "error"),
    "error": Span("✖", "error"),
    "done": Span("✓", "ok"),
}


_PLAN_MARKS: Final = {"pending": "☐", "in_progress": "▶", "completed": "☑"}


def _note(key: str, event: Mapping[str, Any], texts: Catalogue) -> TranscriptEntry | None:
    kind = get_text(event, "type")
    mark = _NOTES.get(kind)
    if mark is None:
        return None
    said = ""
    if kind == "human_answered":
        said = _answer_text(get_object(event, "answer"), texts)
    elif kind == "error":
        error = get_object(event, "error")
        said = f"{get_text(error, 'code')}: {get_text(error, 'message')}"
    elif kind in ("thought", "rate_limited"):
        said = get_text(event, "text").strip()
    elif kind == "plan_changed":
        entries = _objects(event, "entries")
        said = "".join(
            f"\n{_PLAN_MARKS.get(get_text(each, 'status'), '☐')} {get_text(each, 'text')}" for each in entries
        )
    elif kind.startswith("human_"):
        said = get_text(event, "prompt")
    else:
        said = get_text(event, "reason")
    who = get_text(event, "by")
    style = "error" if mark.style == "error" else "dim"
    text = f"{texts(f'session.event.{kind}')}{': ' if said else ''}{said}"
    return TranscriptEntry(f"{key}.{kind}", "note", who, mark, text, style=style)


def _answer_text(answer: Mapping[str, Any], texts: Catalogue) -> str:
    if answer.get("expired"):
        return texts("request.outcome.expired")
    values = [each for each in get_list(answer, "values") if isinstance(each, str)]
    return (
        get_text(answer, "text") or ", ".join(values) or _decision_text(_objects(answer, "decisions"), texts)
    )


def _decision_text(decisions: Sequence[Mapping[str, Any]], texts: Catalogue) -> str:
    said = []
    for decision in decisions:
        text = texts("session.approved" if decision.get("approved") is True else "session.rejected")
        if decision.get("arguments") is not None:
            text = texts("session.approved_edited")
        reason = get_text(decision, "reason")
        said.append(f"{text} ({reason})" if reason else text)
    return ", ".join(said)


def _objects(among: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in the array ``name``. Skip other values."""
    return [each for each in get_list(among, name) if isinstance(each, Mapping)]


def format_json(text: str) -> str:
    """Return JSON in a readable form: one name per line, and texts without escapes."""
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        return text
    return "\n".join(_pretty_lines(value, ""))


def _pretty_lines(value: object, indent: str) -> Iterable[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str) and "\n" in each:
                yield f"{indent}{name}:"
                yield from (f"{indent}  {line}" for line in each.split("\n"))
            elif isinstance(each, dict | list) and each:
                yield f"{indent}{name}:"
                yield from _pretty_lines(each, indent + "  ")
            else:
                yield f"{indent}{name}: {_plain(each)}"
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, dict | list):
                yield f"{indent}-"
                yield from _pretty_lines(each, indent + "  ")
            else:
                yield f"{indent}- {_plain(each)}"
    else:
        yield f"{indent}{_plain(value)}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    return text.split("\n", 1)[0][:160]


class _Row(NamedTuple):
    entry: TranscriptEntry
    text: str
    is_first: bool
    style: str


class Transcript(Drawing):
    """The rows of a transcript. Calls are folded unless ``unfolded`` contains their keys."""

    def __init__(self, entries: Sequence[TranscriptEntry], unfolded: frozenset[str] = frozenset()) -> None:
        self._rows = [row for entry in entries for row in _rows(entry, entry.key in unfolded)]

    def saying(self, agent: str, text: str) -> Transcript:
        """Return this transcript, followed by the text that the agent's model is writing."""
        longer = Transcript(())
        stream = TranscriptEntry("stream", "stream", agent, Span("▍", "accent"), text + "▌")
        longer._rows = [*self._rows, *_rows(stream, is_unfolded=False)]
        return longer

    def __len__(self) -> int:
        return len(self._rows)

    def key_at(self, index: int) -> str:
        """Return the key of the entry at a row, empty if the row does not exist."""
        return self._rows[index].entry.key if 0 <= index < len(self._rows) else ""

    def kind_at(self, index: int) -> TranscriptEntryKind | None:
        return self._rows[index].entry.kind if 0 <= index < len(self._rows) else None

    def moved(self, before: Drawing, anchor: int) -> int | None:
        """Return the row in the same entry as before, at the same distance from the entry's first row."""
        if not isinstance(before, Transcript):
            return None
        key = before.key_at(anchor)
        first, first_before = self.row_of(key), before.row_of(key)
        if first is None or first_before is None:
            return None
        row = first + anchor - first_before
        return row if self.key_at(row) == key else first

    def row_of(self, key: str) -> int | None:
        """Return the first row of an entry, None if it is not shown."""
        return next((at for at, row in enumerate(self._rows) if row.entry.key == key), None)

    def gutter(self, index: int) -> int:
        return NAME_WIDTH + 3

    def longest(self) -> int:
        return max((cell_len(row.text) for row in self._rows[-2000:]), default=0)

    def cell_texts(self, index: int) -> Sequence[str]:
        return [self._rows[index].text]

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        row = self._rows[index]
        before = self._rows[index - 1].entry.who if index else ""
        name = row.entry.who if row.is_first and (row.entry.who != before or is_top) else ""
        shown = sanitize(name.removeprefix(HUMAN_PREFIX))
        style = agent_class(row.entry.who) if row.entry.is_named else "dim"
        # Each line of a text repeats the mark, to make the end of the text visible.
        goes_on = row.entry.mark if row.entry.mark.text == "▍" else Span(" ")
        mark = row.entry.mark if row.is_first else goes_on
        gutter: Line = [Span(fit(shown, NAME_WIDTH) + " ", style), mark, Span(" ")]
        more: Line = [Span(" " * (NAME_WIDTH + 1)), goes_on, Span(" ")]
        return [Cell(gutter, [Span(row.text, row.style)], "", more)]


def _rows(entry: TranscriptEntry, is_unfolded: bool) -> Iterable[_Row]:
    if entry.kind == "call":
        sign = "▾" if is_unfolded else "▸"
        yield _Row(entry, f"{sign} {sanitize(entry.text)}", True, entry.style)
        if is_unfolded:
            lines = sanitize_lines(entry.more)
            yield from (_Row(entry, f"    {line}", False, "dim") for line in lines[:MAX_UNFOLDED])
            if len(lines) > MAX_UNFOLDED:
                yield _Row(entry, f"    … +{len(lines) - MAX_UNFOLDED}", False, "dim")
        return
    for number, line in enumerate(sanitize_lines(entry.text.strip("\n"))):
        yield _Row(entry, line, number == 0, entry.style)
