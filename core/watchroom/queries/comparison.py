"""Two moments of a workspace beside each other: which paths differ, by whom, and in what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.checkout.layout import document_place, has_files, place
from watchroom.errors import JournalDamaged
from watchroom.journal import ChangedPath, Journal
from watchroom.merge import diff_lines
from watchroom.model import Row, Zone
from watchroom.queries.git_patch import FileMode, GitFile, git_patch
from watchroom.queries.versions import UnreadableVersionError, VersionPair, VersionTexts, read_pair_texts
from watchroom.rules.details import size_without_text
from watchroom.rules.task_versions import is_executable, unescape_path

COMPARED: Final[tuple[Zone, ...]] = ("private", "handoff", "collab", "board", "realtime", "file", "config")
"""What agents and people work on; other zones tell how they do it."""
ChangeKind: TypeAlias = Literal["created", "changed", "deleted"]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = ("created", "changed", "deleted")


class PathDifference(NamedTuple):
    """What became of a path: whose versions, the two that are compared, and how many lines were ``added`` and
    ``removed``, both None where a version is no text or cannot be read."""

    path: ChangedPath
    pair: VersionPair
    added: int | None
    removed: int | None

    @property
    def kind(self) -> ChangeKind:
        if self.pair.new.deleted:
            return "deleted"
        return "created" if self.pair.old is None or self.pair.old.deleted else "changed"


def read_changed_paths(
    journal: Journal, after: int, until: int, wanted: Iterable[str] = ()
) -> list[ChangedPath]:
    """What became of the paths of `COMPARED` zones of ``journal`` between the rows ``after`` and ``until``;
    where any are ``wanted``, only of these paths, files or folders, with or without their zone before them
    (``collab/plan.md``). Raises `JournalError`."""
    names = [each.rstrip("/") for each in wanted]
    found = journal.changed_paths(after, until, zones=COMPARED)
    return [each for each in found if not names or any(_is_named(each, name) for name in names)]


def _is_named(changed: ChangedPath, name: str) -> bool:
    whole = f"{changed.zone}/{changed.path}"
    return any(each == name or each.startswith(name + "/") for each in (changed.path, whole))


def read_differences(journal: Journal, changed: Iterable[ChangedPath]) -> Iterator[PathDifference]:
    """Each of the paths ``changed`` in ``journal`` with what is compared and how many lines differ, one after
    another, as they are asked for: texts may be large. Raises `JournalError`."""
    for path in changed:
        pair = find_versions(journal, path)
        if pair is None:
            continue
        try:
            lines = diff_lines(*read_sides(journal, pair))
        except UnreadableVersionError:
            yield PathDifference(path, pair, None, None)
            continue
        added = sum(each.new_end - each.new_start for each in lines)
        removed = sum(each.old_end - each.old_start for each in lines)
        yield PathDifference(path, pair, added, removed)


def find_versions(journal: Journal, changed: ChangedPath) -> VersionPair | None:
    """The version before all of those that ``changed`` tells of, and the newest of them; None where the
    ``journal`` has lost it. Raises `JournalError`."""
    old = journal.version(changed.zone, changed.path, changed.before) if changed.before else None
    new = journal.version(changed.zone, changed.path, changed.last)
    return None if new is None else VersionPair(old, new)


def read_sides(journal: Journal, pair: VersionPair) -> VersionTexts:
    """The texts of ``pair`` in ``journal``, that of nothing empty; of a document what its fields contain.
    Raises `UnreadableVersionError`, `JournalError`."""
    if pair.new.zone == "realtime":
        old = _document_text(journal, pair.old) if pair.old is not None else ""
        return VersionTexts(old, _document_text(journal, pair.new))
    for row in pair:
        if row is not None and size_without_text(row) is not None:
            raise UnreadableVersionError(row)
    return read_pair_texts(journal, pair)


def read_patch(journal: Journal, pair: VersionPair) -> str:
    """Return what changed within ``pair`` of ``journal`` as a patch for ``git apply``, empty if nothing
    changed. The file names are those of an export; task files are in ``tasks/TASK``, as in an exported
    repository. Raises `UnreadableVersionError`, `JournalError`."""
    if pair.new.zone == "realtime":
        old_text, new_text = (_document_values(journal, row) if row is not None else "" for row in pair)
    else:
        old_text, new_text = read_sides(journal, pair)
    sides = (
        GitFile(_mode(pair.old), old_text) if pair.old is not None and not pair.old.deleted else None,
        GitFile(_mode(pair.new), new_text) if not pair.new.deleted else None,
    )
    return git_patch(_file_name(pair.new), *sides)


def _mode(row: Row) -> FileMode:
    return "100755" if is_executable(row) else "100644"


def _file_name(row: Row) -> bytes:
    """The path of a file in an export. A name that is not UTF-8 gets its own bytes back."""
    if row.zone == "realtime":
        return "/".join(document_place(row.path)).encode()
    if has_files(row.zone):
        return "/".join(place(row.zone, row.path)).encode()
    return b"tasks/" + unescape_path(row.path) if row.zone == "file" else f"{row.zone}/{row.path}".encode()


def _document_values(journal: Journal, row: Row) -> str:
    # Documents need the engine, slow to load.
    from watchroom.checkout.document_replica import DocumentReplica

    if row.deleted:
        return ""
    try:
        return DocumentReplica(row.path, journal, until=row.version).render_values().decode()
    except JournalDamaged as error:
        raise UnreadableVersionError(row) from error


def _document_text(journal: Journal, row: Row) -> str:
    # Documents need the engine, slow to load: whoever compares only files does without.
    from watchroom.crdt.errors import DocumentNotFound
    from watchroom.queries.documents import open_document

    try:
        document = open_document(journal, row.path, version=row.version or 0).document
    except (JournalDamaged, DocumentNotFound) as error:
        raise UnreadableVersionError(row) from error
    parts = []
    for name, value in sorted(document.values().items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"# {name}\n{text}\n")
    return "".join(parts)
