"""The comparison of two moments of a workspace: the paths that differ, their authors, and the differences.
Also as a git patch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge import diff_hunks, diff_lines
from watchroom.errors import JournalDamaged
from watchroom.features.overview.reads import (
    UnreadableVersionError,
    VersionPair,
    VersionTexts,
    read_pair_texts,
)
from watchroom.features.trees.rows import REPO
from watchroom.kernel.checkout.layout import ROOTS, document_place, place
from watchroom.kernel.journal import ChangedPath, Journal
from watchroom.kernel.rules.details import size_without_text
from watchroom.kernel.rules.file_versions import is_executable, unescape_path
from watchroom.kernel.zones import DOCUMENTS, ZONES
from watchroom.model import Row, Zone

FileMode: TypeAlias = Literal["100644", "100755"]

_NOTHING: Final = "/dev/null"
_ESCAPES: Final = {
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x5C: "\\\\",
}
COMPARED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.is_compared)
"""The zones in which agents and people work. Other zones record how they work."""
ChangeKind: TypeAlias = Literal["created", "changed", "deleted"]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = ("created", "changed", "deleted")


class PathDifference(NamedTuple):
    """The difference of a path.

    - ``path``: the path, and the authors of its new versions.
    - ``pair``: the two versions.
    - ``added``, ``removed``: the number of lines, None if a version is not text or cannot be read.
    """

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
    """Return the paths of `COMPARED` zones that changed after row ``after`` up to row ``until``.

    ``wanted``: only these files and folders, with or without their zone (``collab/plan.md``). Raise
    `JournalError`.
    """
    names = [each.rstrip("/") for each in wanted]
    found = journal.changed_paths(after, until, zones=COMPARED)
    return [each for each in found if not names or any(_is_named(each, name) for name in names)]


def _is_named(changed: ChangedPath, name: str) -> bool:
    whole = f"{changed.zone}/{changed.path}"
    return any(each == name or each.startswith(name + "/") for each in (changed.path, whole))


def read_differences(journal: Journal, changed: Iterable[ChangedPath]) -> Iterator[PathDifference]:
    """Yield the difference of each path in ``changed``, one at a time, because texts can be large. Raise
    `JournalError`."""
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
    """Return the version before the change and the newest version, None if the journal has lost the newest.
    Raise `JournalError`."""
    old = journal.version(changed.zone, changed.path, changed.before) if changed.before else None
    new = journal.version(changed.zone, changed.path, changed.last)
    return None if new is None else VersionPair(old, new)


def read_sides(journal: Journal, pair: VersionPair) -> VersionTexts:
    """Return the texts of ``pair``, empty for a missing version. A document's text is its fields. Raise
    `UnreadableVersionError`, `JournalError`."""
    if pair.new.zone in DOCUMENTS:
        old = _document_text(journal, pair.old) if pair.old is not None else ""
        return VersionTexts(old, _document_text(journal, pair.new))
    for row in pair:
        if row is not None and size_without_text(row) is not None:
            raise UnreadableVersionError(row)
    return read_pair_texts(journal, pair)


def read_patch(journal: Journal, pair: VersionPair, *, has_trees: bool = False) -> str:
    """Return the changes of ``pair`` as a patch for ``git apply``, empty if nothing changed.

    The file names are the same as in an export. Task files are in ``tasks/TASK``, as in an exported
    repository. A file in a working tree has its path in the tree, below the tree's id if the patch
    ``has_trees``. Raise `UnreadableVersionError`, `JournalError`.
    """
    if pair.new.zone in DOCUMENTS:
        old_text, new_text = (_document_values(journal, row) if row is not None else "" for row in pair)
    else:
        old_text, new_text = read_sides(journal, pair)
    sides = (
        GitFile(_mode(pair.old), old_text) if pair.old is not None and not pair.old.deleted else None,
        GitFile(_mode(pair.new), new_text) if not pair.new.deleted else None,
    )
    return git_patch(_file_name(pair.new, has_trees=has_trees), *sides)


def _mode(row: Row) -> FileMode:
    return "100755" if is_executable(row) else "100644"


def _file_name(row: Row, *, has_trees: bool) -> bytes:
    """Return the path of a file in an export. Names that are not UTF-8 get their original bytes."""
    if row.zone == REPO:
        return unescape_path(row.path if has_trees else row.path.partition("/")[2])
    if row.zone in DOCUMENTS:
        return "/".join(document_place(row.zone, row.path)).encode()
    if row.zone in ROOTS:
        return "/".join(place(row.zone, row.path)).encode()
    return b"tasks/" + unescape_path(row.path) if row.zone == "file" else f"{row.zone}/{row.path}".encode()


def _document_values(journal: Journal, row: Row) -> str:
    # Documents need the engine, which loads slowly.
    from watchroom.features.documents.replica import DocumentReplica

    if row.deleted:
        return ""
    try:
        return DocumentReplica(row.path, journal, until=row.version).render_values().decode()
    except JournalDamaged as error:
        raise UnreadableVersionError(row) from error


def _document_text(journal: Journal, row: Row) -> str:
    # Documents need the engine, which loads slowly.
    from watchroom.errors import DocumentNotFound
    from watchroom.features.documents.reads import open_document

    try:
        document = open_document(journal, row.path, version=row.version or 0).document
    except (JournalDamaged, DocumentNotFound) as error:
        raise UnreadableVersionError(row) from error
    parts = []
    for name, value in sorted(document.values().items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"# {name}\n{text}\n")
    return "".join(parts)


class GitFile(NamedTuple):
    """One side of a patch: the file's ``mode`` and ``text``."""

    mode: FileMode
    text: str


def git_patch(path: bytes, old: GitFile | None, new: GitFile | None) -> str:
    """Return the patch from ``old`` to ``new``, the file at ``path``; empty if they are equal. None means no
    file."""
    if old == new:
        return ""
    old_name, new_name = quote_name(b"a/" + path), quote_name(b"b/" + path)
    lines = [f"diff --git {old_name} {new_name}"]
    if old is None and new is not None:
        lines.append(f"new file mode {new.mode}")
    elif new is None and old is not None:
        lines.append(f"deleted file mode {old.mode}")
    elif old is not None and new is not None and old.mode != new.mode:
        lines += [f"old mode {old.mode}", f"new mode {new.mode}"]
    hunks = diff_hunks(old.text if old is not None else "", new.text if new is not None else "")
    if hunks:
        lines.append(f"--- {_NOTHING if old is None else old_name}")
        lines.append(f"+++ {_NOTHING if new is None else new_name}")
    return "\n".join(lines) + "\n" + hunks


def quote_name(name: bytes) -> str:
    """Return ``name`` for a header of a patch.

    It is quoted if it has control characters, quotes, backslashes or bytes that are not UTF-8. A name with
    spaces is also quoted, because git cannot always find its end.
    """
    text = name.decode("utf-8", "surrogateescape")
    quoted = "".join(_quote(character) for character in text)
    return f'"{quoted}"' if quoted != text or " " in text else text


def _quote(character: str) -> str:
    code = ord(character)
    if code in _ESCAPES:
        return _ESCAPES[code]
    if code < 0x20 or code == 0x7F:
        return f"\\{code:03o}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\{code - 0xDC00:03o}"
    return character
