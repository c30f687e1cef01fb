"""What the rows of a journal say to those who search: of a version the lines that it added, of a step what
was said and called, of a request, a message or a command its text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from watchroom import validation
from watchroom.errors import JournalDamaged
from watchroom.journal import Journal
from watchroom.model import PRINTED, STREAM, Json, Row, Zone
from watchroom.search.added_lines import Passage, added_passages
from watchroom.search.document_passages import DocumentPassages

_TEXT_ZONES: Final[frozenset[Zone]] = frozenset({"private", "handoff", "collab", "board", "file", "config"})
"""Whose rows carry texts as people and agents wrote them, version after version."""
_SILENT_ZONES: Final[frozenset[Zone]] = frozenset({"token", "lease"})
_RECORD_ZONES: Final[frozenset[Zone]] = frozenset({"revert"})
"""Whose contents are numbers and checksums: their messages say what there is to be found."""
_SILENT_TOOLS: Final = frozenset({STREAM, PRINTED})
"""Pieces: the whole comes with the step, and with the command's end."""
_SAID: Final = ("assistant", "user")
"""Whose messages are said. What tools answered was read, and the prompt of the system is nobody's word."""
_DEEPEST: Final = 20
_MOST_PIECES: Final = 2000
_MOST_CACHED: Final = 4_000_000
"""Characters of all versions that are kept together, and of the largest one."""
_LARGEST_CACHED: Final = 100_000


class PassageReader:
    """Reads the passages of the rows of ``journal``. Not for several threads at once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._documents = DocumentPassages(journal)
        self._texts: dict[tuple[Zone, str, int], str] = {}
        """Of versions that were read last: the next rows often follow them."""
        self._cached = 0
        """Their characters."""

    def read(self, row: Row) -> tuple[Passage, ...]:
        """What ``row`` says; nothing where its text is damaged. Raises `JournalError`."""
        if row.zone in _SILENT_ZONES or row.tool in _SILENT_TOOLS:
            return ()
        try:
            content = self._journal.content(row.seq) if row.size and row.zone not in _RECORD_ZONES else None
            said = () if content is None else tuple(map(_storable, self._passages(row, content)))
        except JournalDamaged:
            said = ()
        if row.message.strip() and not any(row.message in each.text for each in said):
            return (*said, Passage(row.message))
        return said

    def _passages(self, row: Row, content: str) -> Iterator[Passage]:
        if row.zone in _TEXT_ZONES and row.outcome in ("ok", "conflict"):
            yield from added_passages(self._base_text(row, content), content)
        elif row.zone == "session" and row.version is not None:
            yield from map(Passage, _step_texts(_parsed(content)))
        elif row.zone == "realtime" and row.version is not None:
            yield from map(Passage, _edited(_parsed(content)))
            yield from self._documents.read(row)
        elif row.zone == "command" and row.version == 2:
            yield from map(Passage, self._output(row, _parsed(content)))
        else:
            parsed = _parsed(content)
            yield from [Passage(content, 1)] if parsed is None else map(Passage, _strings(parsed))

    def _base_text(self, row: Row, content: str) -> str:
        """What ``row`` was made from, so that what it has in common with that is not new."""
        base = row.version - 1 if row.version is not None else row.base or 0
        known = self._texts.pop((row.zone, row.path, base), None)
        self._cached -= len(known or "")
        if row.version is not None and len(content) <= _LARGEST_CACHED:
            self._texts[row.zone, row.path, row.version] = content
            self._cached += len(content)
            while self._cached > _MOST_CACHED:
                self._cached -= len(self._texts.pop(next(iter(self._texts))))
        if known is not None or base <= 0:
            return known or ""
        before = self._journal.versions(row.zone, row.path, after=base - 1, until=base)
        return (before[0][1] or "") if before else ""

    def _output(self, row: Row, record: Json) -> Iterator[str]:
        """What a command printed by its last ``row``; where that has but the ends of it, by the pieces."""
        fields = record if isinstance(record, Mapping) else {}
        begun = self._journal.version(row.zone, row.path, 1)
        if (fields.get("cut") or fields.get("interrupted")) and begun is not None:
            pieces = self._journal.notes(
                row.zone,
                row.path,
                begun.actor,
                PRINTED,
                after=begun.seq,
                until=row.seq,
                limit=_MOST_PIECES,
            )
            yield "".join(self._journal.content(piece.seq) or "" for piece in reversed(pieces))
        for name in ("stdout", "stderr", "message"):
            text = fields.get(name)
            if isinstance(text, str) and text:
                yield text


def _storable(passage: Passage) -> Passage:
    """``passage`` without lone surrogates: a refused call may have had one, which its row spells out."""
    text = passage.text
    return passage if text.isascii() else passage._replace(text=validation.replace_lone_surrogates(text))


def _step_texts(step: Json) -> Iterator[str]:
    """What was said and called in a step of a session."""
    messages = step.get("messages") if isinstance(step, Mapping) else None
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, Mapping) or message.get("role") not in _SAID:
            continue
        yield from _strings(message.get("content"))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                yield from _strings(function.get("name"))
                yield from _strings(function.get("arguments"))


def _edited(edit: Json) -> Iterator[str]:
    """What an edit of a realtime document put into a set, a register or a map. Texts are kept as operations,
    which say something only as a part of their document."""
    for delta in edit.values() if isinstance(edit, Mapping) else ():
        if not isinstance(delta, Mapping):
            continue
        elements = delta.get("elements")
        yield from elements if isinstance(elements, Mapping) else ()
        yield from _strings(delta.get("value"))
        for key, entry in delta.items():
            if isinstance(entry, Mapping) and "value" in entry:
                yield key
                yield from _strings(entry["value"])


def _strings(value: Json, depth: int = 0) -> Iterator[str]:
    """All texts in ``value``, also in those that are JSON themselves, as the arguments of calls are."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        parsed = _parsed(value)
        if parsed is not None:
            yield from _strings(parsed, depth + 1)
        elif value.strip():
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each, depth + 1)


def _parsed(text: str) -> Json:
    """The JSON object or array in ``text``; None where it is anything else."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
