"""The searchable passages of rows.

For a version, these are the added lines. For a step, these are messages and calls. For a request, a message
or a command, these are its texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom import validation
from watchroom.algorithms.merge import diff_lines, split_lines
from watchroom.errors import JournalDamaged
from watchroom.history.document_cache import DocumentCache
from watchroom.kernel.journal import Journal
from watchroom.kernel.zones import DOCUMENTS, ZONES
from watchroom.model import PRINTED, STREAM, Json, Row, Zone

if TYPE_CHECKING:
    from watchroom.features.documents.replica import DocumentReplica

_TEXT_ZONES: Final = frozenset(zone for zone, spec in ZONES.items() if spec.is_searched)
"""Zones whose rows contain texts of people and agents."""
_SILENT_ZONES: Final[frozenset[Zone]] = frozenset({"token", "lease"})
_RECORD_ZONES: Final[frozenset[Zone]] = frozenset({"revert"})
"""Zones whose contents are numbers and checksums. Only their messages are searched."""
_SILENT_TOOLS: Final = frozenset({STREAM, PRINTED})
"""Tools that write pieces of a text. The whole text is in the step, or in the command's end."""
_SPEAKERS: Final = ("assistant", "user")
"""The roles whose messages are searched. Results of tools, and system prompts, are not searched."""
_MAX_DEPTH: Final = 20
_MAX_PIECES: Final = 2000
_MAX_CACHED: Final = 4_000_000
"""Maximum characters of all cached versions."""
_MAX_CACHED_TEXT: Final = 100_000
"""Maximum characters of one cached version."""


class Passage(NamedTuple):
    """A piece of text of a row.

    ``line``: the line of the row's text at which the piece begins, from 1. It is 0 if the piece is not part
    of a text with lines, for example a row's message.
    """

    text: str
    line: int = 0


class PassageReader:
    """Reads the passages of rows of ``journal``. Must be used by one thread at a time."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._documents = DocumentCache(journal)
        self._texts: dict[tuple[Zone, str, int], str] = {}
        """The most recently read versions, because the next rows are often based on them."""
        self._cached = 0
        """The number of cached characters."""

    def read(self, row: Row) -> tuple[Passage, ...]:
        """Return the passages of ``row``. If its text is damaged, return only its message. Raise
        `JournalError`."""
        if row.zone in _SILENT_ZONES or row.tool in _SILENT_TOOLS:
            return ()
        try:
            content = self._journal.content(row.seq) if row.size and row.zone not in _RECORD_ZONES else None
            found = () if content is None else tuple(map(_storable, self._passages(row, content)))
        except JournalDamaged:
            found = ()
        if row.message.strip() and not any(row.message in each.text for each in found):
            return (*found, Passage(row.message))
        return found

    def _passages(self, row: Row, content: str) -> Iterator[Passage]:
        if row.zone in _TEXT_ZONES and row.outcome in ("ok", "conflict"):
            yield from added_passages(self._base_text(row, content), content)
        elif row.zone == "session" and row.version is not None:
            yield from map(Passage, _step_texts(_parsed(content)))
        elif row.zone in DOCUMENTS and row.version is not None:
            yield from map(Passage, _edited(_parsed(content)))
            yield from self._document_passages(row)
        elif row.zone == "command" and row.version == 2:
            yield from map(Passage, self._output(row, _parsed(content)))
        else:
            parsed = _parsed(content)
            yield from [Passage(content, 1)] if parsed is None else map(Passage, _strings(parsed))

    def _document_passages(self, row: Row) -> Iterator[Passage]:
        """Yield the lines that the version of ``row`` added to the document's texts or changed in them."""
        version = row.version or 0
        if version < 2:
            return
        document = self._documents.at(row.path, version - 1)
        before = _document_texts(document)
        document.catch_up(version)
        for name, text in _document_texts(document).items():
            if text != before[name]:
                yield from added_passages(before[name], text)

    def _base_text(self, row: Row, content: str) -> str:
        """Return the text that ``row`` replaced. Add ``content`` to the cache."""
        base = row.version - 1 if row.version is not None else row.base or 0
        known = self._texts.pop((row.zone, row.path, base), None)
        self._cached -= len(known or "")
        if row.version is not None and len(content) <= _MAX_CACHED_TEXT:
            self._texts[row.zone, row.path, row.version] = content
            self._cached += len(content)
            while self._cached > _MAX_CACHED:
                self._cached -= len(self._texts.pop(next(iter(self._texts))))
        if known is not None or base <= 0:
            return known or ""
        before = self._journal.versions(row.zone, row.path, after=base - 1, until=base)
        return (before[0][1] or "") if before else ""

    def _output(self, row: Row, record: Json) -> Iterator[str]:
        """Yield the output of a command. If its last ``row`` has only a part of the output, read the
        pieces."""
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
                limit=_MAX_PIECES,
            )
            yield "".join(self._journal.content(piece.seq) or "" for piece in reversed(pieces))
        for name in ("stdout", "stderr", "message"):
            text = fields.get(name)
            if isinstance(text, str) and text:
                yield text


def added_passages(before: str, after: str) -> Iterator[Passage]:
    """Yield the lines of ``after`` that are not in ``before``. Neighbouring lines are yielded together."""
    if not before:
        yield from [Passage(after, 1)] if after else ()
        return
    old, new = split_lines(before), split_lines(after)
    start, shortest = 0, min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if not left or {*left}.isdisjoint(right):
        # Most versions only add lines, or rewrite the text. They need no diff.
        yield from [Passage("".join(right), start + 1)] if right else ()
        return
    for change in diff_lines("".join(left), "".join(right)) if right else ():
        if change.new_end > change.new_start:
            yield Passage("".join(right[change.new_start : change.new_end]), start + change.new_start + 1)


def _document_texts(replica: DocumentReplica) -> dict[str, str]:
    document = replica.document
    return {name: document.text(name).value for name, kind in document.schema.items() if kind == "rga"}


def _storable(passage: Passage) -> Passage:
    """Return ``passage`` without lone surrogates, which rows of refused calls can contain."""
    text = passage.text
    return passage if text.isascii() else passage._replace(text=validation.replace_lone_surrogates(text))


def _step_texts(step: Json) -> Iterator[str]:
    """Yield the messages and calls in a step of a session."""
    messages = step.get("messages") if isinstance(step, Mapping) else None
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, Mapping) or message.get("role") not in _SPEAKERS:
            continue
        yield from _strings(message.get("content"))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, Mapping) else None
            if isinstance(function, Mapping):
                yield from _strings(function.get("name"))
                yield from _strings(function.get("arguments"))


def _edited(edit: Json) -> Iterator[str]:
    """Yield the new values in an edit of a set, a register or a map in a realtime document.

    Edits of texts are operations, which can only be read in their document.
    """
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
    """Yield all texts in ``value``, including texts inside JSON texts, such as the arguments of calls."""
    if depth > _MAX_DEPTH:
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
    """Return the JSON object or array in ``text``, None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None
