"""Details for front ends: versions of a path, calls of a client's own tools, and earlier configurations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, TypeVar

from watchroom.errors import ConfigInvalid, JournalDamaged, JournalError
from watchroom.features.config.rows import (
    SETTINGS_PATH,
    SETTINGS_ZONE,
    Config,
    apply_settings_row,
    parse_recorded_config,
    with_settings,
)
from watchroom.features.policy.rules import policy_subject
from watchroom.features.requests.rows import parse_arguments
from watchroom.features.sessions.reads import StepCall, parse_step
from watchroom.features.sessions.rows import PATCH
from watchroom.kernel.checkout.rendering import verified_content
from watchroom.kernel.journal import Journal
from watchroom.kernel.reads import find_content
from watchroom.kernel.rules.details import get_count, get_list, get_text, size_without_text
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import SYSTEM, Json, Row, parse_object

if TYPE_CHECKING:
    from watchroom.algorithms.merge import LineChange

V = TypeVar("V")

MAX_VERSIONS: Final = 500
"""The default number of newest versions that are returned."""
MAX_DIFFERENCE: Final = 100_000
"""Maximum characters of the diff of a client's call."""
_MAX_STEPS: Final = 500
"""Maximum number of steps to search for the start of a call, backwards from its end."""
_PAGE: Final = 10
_MAX_PATCH_LINES: Final = 20_000

Breakage: TypeAlias = Literal["content", "missing", "differs", "unreadable"]
"""The defect of a version: in its content in the journal, or in its version file."""


class BrokenVersion(NamedTuple):
    """A broken version: its ``row``, and the broken part (``what``)."""

    row: Row
    what: Breakage


class UnreadableVersionError(Exception):
    """The text of ``row`` cannot be read, or does not exist."""

    def __init__(self, row: Row) -> None:
        super().__init__(row.seq)
        self.row = row


class VersionPair(NamedTuple):
    """Two versions to compare. ``old`` is None if there is no earlier version."""

    old: Row | None
    new: Row


class VersionTexts(NamedTuple):
    """The texts of a `VersionPair`."""

    old: str
    new: str


class ConflictSides(NamedTuple):
    """The three sides of a conflict, and their texts.

    - ``base``, ``current``: None, with an empty text, if there is no such version.
    - ``reverter``: the person whose revert caused the conflict, else empty.
    """

    base: Row | None
    current: Row | None
    incoming: Row
    base_text: str
    current_text: str
    incoming_text: str
    reverter: str = ""


class Preview(NamedTuple):
    """The text of a version, and of the version before it.

    - ``text``: None if the version deletes the path, or is not text.
    - ``before``: empty if there is no earlier text.
    - ``size``: the bytes of a version that is not text.
    """

    text: str | None
    before: str = ""
    size: int | None = None


def read_history(
    journal: Journal, head: Row, *, as_of: int | None = None, limit: int = MAX_VERSIONS
) -> tuple[Row, ...]:
    """Return the newest ``limit`` versions up to ``head``, and the refused writes since the oldest of them.

    They are sorted newest first. ``as_of``: the last row to read, default the newest. Raise `JournalError`.
    """
    last = journal.last_seq() if as_of is None else as_of
    rows = journal.history(head.zone, head.path, after_version=max(0, (head.version or 0) - limit))
    refused = journal.refused(head.zone, head.path, before=last + 1, limit=limit)
    oldest = rows[0].seq if rows else 0
    both = [*(row for row in rows if row.seq <= last), *(row for row in refused if row.seq > oldest)]
    return tuple(sorted(both, key=lambda row: -row.seq))


def read_lineage(journal: Journal, row: Row, *, limit: int = MAX_VERSIONS) -> tuple[Row, ...]:
    """Return the last ``limit`` versions that led to ``row``, and the row itself, oldest first. Used for
    blame. Raise `JournalError`."""
    last = row.version if row.version is not None else max(0, row.base or 0)
    rows = journal.history(row.zone, row.path, after_version=max(0, last - limit), limit=limit)
    found = tuple(each for each in rows if (each.version or 0) <= last)
    return found if row.version is not None else (*found, row)


def find_pair(journal: Journal, row: Row, other: Row | None = None) -> VersionPair:
    """Return ``row`` and ``other`` as a pair, the older one first, and refused writes last.

    The default for ``other`` is the version on which ``row`` is based. Raise `JournalError`.
    """
    if other is not None:
        old, new = sorted((row, other), key=lambda each: (each.version is None, each.seq))
        return VersionPair(old, new)
    base = row.version - 1 if row.version is not None else max(0, row.base or 0)
    return VersionPair(journal.version(row.zone, row.path, base) if base else None, row)


def read_text(journal: Journal, row: Row) -> str:
    """Return the text of ``row``, a version or a refused write; empty if it deletes the path. Raise
    `UnreadableVersionError`."""
    if row.deleted or (row.error == "outside_edit" and row.sha256 is None):
        return ""
    try:
        content = journal.content(row.seq)
    except JournalError as error:
        raise UnreadableVersionError(row) from error
    if content is None:
        raise UnreadableVersionError(row)
    return content


def read_texts(journal: Journal, rows: Iterable[Row]) -> Iterator[str]:
    """Yield the texts of ``rows``, one at a time because they can be large. Raise
    `UnreadableVersionError`."""
    return (read_text(journal, row) for row in rows)


def read_pair_texts(journal: Journal, pair: VersionPair) -> VersionTexts:
    """Return the texts of ``pair``, empty for a missing version. Raise `UnreadableVersionError`."""
    return VersionTexts(read_text(journal, pair.old) if pair.old else "", read_text(journal, pair.new))


def read_current(journal: Journal, like: Row) -> Row | None:
    """Return the current version of the path of ``like``, None if there is none. Raise `JournalError`."""
    return journal.head(like.zone, like.path)


def read_merge(journal: Journal, incoming: Row) -> ConflictSides:
    """Return the sides of the merge of ``incoming``, a refused write or an external edit. Raise
    `JournalError`."""
    current = read_current(journal, incoming)
    started = incoming.base is not None and incoming.base > 0
    base = journal.version(incoming.zone, incoming.path, incoming.base or 0) if started else None
    revert = incoming.detail.get("revert") if incoming.actor == SYSTEM else None
    begun = journal.version("revert", revert, 1) if isinstance(revert, str) else None
    texts = [find_content(journal, row) or "" for row in (base, current, incoming)]
    reverter = begun.actor if begun is not None else ""
    return ConflictSides(base, current, incoming, texts[0], texts[1], texts[2], reverter)


def read_preview(journal: Journal, version: Row) -> Preview:
    """Return the text of ``version`` and of the version before it. Raise `JournalError`."""
    size = size_without_text(version)
    if version.deleted or size is not None:
        return Preview(None, size=size)
    before = journal.version(version.zone, version.path, (version.version or 0) - 1)
    has_text = before is not None and not before.deleted and size_without_text(before) is None
    text = find_content(journal, version)
    return Preview(text, (find_content(journal, before) or "") if has_text else "")


def find_damaged(journal: Journal, rows: Iterable[Row]) -> tuple[BrokenVersion, ...]:
    """Return the versions among ``rows`` whose text in ``journal`` is lost, or does not match its checksum.

    Files are not checked: see `Workspace.broken_versions`. Raise `JournalError`.
    """
    return tuple(
        BrokenVersion(row, "content")
        for row in rows
        if row.sha256 is not None and row.version is not None and verified_content(journal, row) is None
    )


def blame(versions: Sequence[tuple[V, str]]) -> list[V]:
    """Return, for each line of the last text, the version that added it.

    ``versions``: the versions with their texts, oldest first. The first version counts as the author of all
    of its lines.
    """
    # Loading the module would delay the first paint.
    from watchroom.algorithms.merge import diff_lines

    found: list[V] = []
    before = ""
    for version, text in versions:
        found = update_blame(found, diff_lines(before, text), version)
        before = text
    return found


def update_blame(before: Sequence[V], changed: Sequence[LineChange], version: V) -> list[V]:
    """Return the blame of ``version``.

    - ``before``: the blame of the version before it.
    - ``changed``: the changes between the two.
    """
    found: list[V] = []
    done = 0
    for change in changed:
        found.extend(before[done : change.old_start])
        found.extend([version] * (change.new_end - change.new_start))
        done = change.old_end
    found.extend(before[done:])
    return found


class ClientCallText(NamedTuple):
    """A call as the client reported it: its arguments, its result, and its ``difference`` as a unified diff.
    A field is empty if it is unknown."""

    arguments: str = ""
    result: str = ""
    difference: str = ""


def read_client_call(journal: Journal, row: Row) -> ClientCallText:
    """Return the call that ``row`` ended. Raise `JournalError`."""
    results = parse_step(find_content(journal, row) or "").results
    if not results:
        return ClientCallText()
    call_id, result = results[0]
    call = _find_call(journal, row, call_id)
    arguments = call.arguments if call is not None else ""
    return ClientCallText(arguments, result, call_difference(arguments, result))


def _find_call(journal: Journal, row: Row, call_id: str) -> StepCall | None:
    until = (row.version or 1) - 1
    first = max(0, until - _MAX_STEPS)
    while until > first:
        after = max(first, until - _PAGE)
        try:
            steps = journal.versions("session", row.path, after=after, until=until)
        except JournalDamaged:
            steps = []
        for _, text in reversed(steps):
            found = next((each for each in parse_step(text or "").calls if each.id == call_id), None)
            if found is not None:
                return found
        until = after
    return None


def call_difference(arguments: str, result: str) -> str:
    """Return the changes of a call, as a unified diff of at most `MAX_DIFFERENCE` characters.

    The diff comes from the ``result`` or the ``arguments`` (JSON). It is empty if neither has a diff. Line
    numbers from arguments are relative to the passage.
    """
    given = parse_arguments(arguments)
    name = next(iter(policy_subject(given).paths), "")
    reported = _patch_of_result(parse_object(result) or {}, name)
    if reported:
        return reported[:MAX_DIFFERENCE]
    for value in given.values():
        texts = value if isinstance(value, list) else [value]
        patch = next((each for each in texts if isinstance(each, str) and PATCH in each), "")
        if patch:
            return patch[:MAX_DIFFERENCE]
    # Loading the module would delay the first paint.
    from watchroom.algorithms.merge import unified_diff

    content = given.get("content")
    passages = [("", content)] if isinstance(content, str) else _passages(given)
    parts: list[str] = []
    for old, new in passages:
        if sum(map(len, parts)) >= MAX_DIFFERENCE:
            break
        parts.append(unified_diff(_lines(old), _lines(new), name, name))
    return "\n".join(filter(None, parts))[:MAX_DIFFERENCE]


def _lines(passage: str) -> str:
    """Return ``passage`` with a final newline: only a whole file can lack it."""
    text = passage[:MAX_DIFFERENCE]
    return text if text.endswith("\n") or not text else f"{text}\n"


def _passages(given: Mapping[str, Json]) -> list[tuple[str, str]]:
    edits = given.get("edits")
    found: list[tuple[str, str]] = []
    for edit in edits if isinstance(edits, list) else [given]:
        if isinstance(edit, Mapping):
            old, new = get_text(edit, "old_string"), get_text(edit, "new_string")
            if old or new:
                found.append((old, new))
    return found


def _patch_of_result(result: Mapping[str, Json], name: str) -> str:
    """Return the hunks that Claude Code reports as the result of an edit, empty if it reports no hunks."""
    lines: list[str] = []
    for hunk in get_list(result, "structuredPatch"):
        if not isinstance(hunk, Mapping) or len(lines) > _MAX_PATCH_LINES:
            continue
        old = f"-{get_count(hunk, 'oldStart')},{get_count(hunk, 'oldLines')}"
        new = f"+{get_count(hunk, 'newStart')},{get_count(hunk, 'newLines')}"
        lines.append(f"@@ {old} {new} @@")
        lines += [line for line in get_list(hunk, "lines") if isinstance(line, str)]
    return "\n".join([f"--- {name}", f"+++ {name}", *lines]) if lines else ""


def read_config(journal: Journal, *, as_of: int) -> Config:
    """Return the configuration that was in effect at row ``as_of``. Raise `JournalError`.

    Invalid configurations, and settings without a required signature, do not count.
    """
    return with_settings(_read_written(journal, as_of), _read_settings(journal, as_of))


def _read_written(journal: Journal, as_of: int) -> Config:
    for version in reversed(journal.history("config", CONFIG_PATH)):
        if version.seq <= as_of:
            with suppress(ConfigInvalid, JournalDamaged):
                return parse_recorded_config(version, journal.content(version.seq))
    return Config()


def _read_settings(journal: Journal, as_of: int) -> Config | None:
    if journal.head(SETTINGS_ZONE, SETTINGS_PATH, as_of=as_of) is None:
        return None
    # Loading the zones is slow, and the first paint of the dashboard does not need them.
    from watchroom.features.people.service import PeopleReader

    people, settings = PeopleReader(journal), None
    for row in journal.history(SETTINGS_ZONE, SETTINGS_PATH):
        if row.seq <= as_of and not people.find_flaw(row):
            # A damaged version does not count either.
            with suppress(ConfigInvalid, JournalDamaged):
                settings = apply_settings_row(settings, row, journal.content(row.seq))
    return settings


def read_registration(journal: Journal, *, as_of: int) -> Row | None:
    """Return the row of the configuration that was current at row ``as_of``, None before the first. Raise
    `JournalError`."""
    return journal.head("config", CONFIG_PATH, as_of=as_of)
