"""The content of a file as a row describes it, its comparison with its newest row, and its restoration if a
row is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import FileUnrecorded, NotText, OutcomeUnknown, TooLarge, WatchroomError
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.file_versions import (
    EXECUTABLE,
    EXECUTABLE_BEFORE,
    Blob,
    file_checksum,
    is_executable,
)
from watchroom.model import REVERT_WORK, Json, Row, timestamp
from watchroom.platform.disk import FileStamp, Folder, Inspected, Parts

_POINTER: Final = "no text: its bytes are kept for a while\nsha256 {sha256}\nsize {size}\n"
"""The content in the row of a binary file. Its detail also has both values. The bytes are kept as a blob."""
_UNREAD: Final = "not read: larger than 10 MB, or with holes\nsize {size}\nmodified {modified}\n"
"""The content in the row of a file of which only size and times are known. Its detail also has these
values."""


class FileContent(NamedTuple):
    """A file as a row describes it.

    - ``text``: its text, or a pointer to its bytes.
    - ``checksum``: empty if the file was not read.
    - ``data``: the bytes of a binary file, None for others.
    """

    stamp: FileStamp
    text: str
    checksum: str
    detail: dict[str, Json]
    data: bytes | None = None

    @property
    def size(self) -> int:
        """The minimum number of bytes that are kept."""
        return len(self.text) + len(self.data or b"")

    @property
    def executable(self) -> bool:
        return EXECUTABLE in self.detail


def describe_file(found: Inspected) -> FileContent:
    """Return the description of the file ``found`` for a row."""
    stamp = found.stamp
    rights: dict[str, Json] = {EXECUTABLE: True} if found.executable else {}
    if found.data is None:
        text = _UNREAD.format(size=stamp.size, modified=timestamp(found.modified))
        times: dict[str, Json] = {"modified": found.modified, "changed": stamp.changed}
        return FileContent(stamp, text, "", {"size": stamp.size, **times, **rights})
    checksum = validation.sha256(found.data)
    try:
        return FileContent(stamp, validation.decode_text(found.data), checksum, rights)
    except (NotText, TooLarge):
        blob = Blob(checksum, len(found.data))
        pointer = _POINTER.format(**blob.detail)
        return FileContent(stamp, pointer, checksum, {**blob.detail, **rights}, found.data)


def is_current(head: Row | None, content: FileContent | None) -> bool:
    """Return whether the file with ``content`` equals its newest row ``head``. Both arguments are None if
    there never was a file."""
    if head is None or head.deleted:
        return content is None
    if content is None or is_executable(head) != content.executable:
        return False
    if not content.checksum:
        return is_of_stamp(head, content.stamp)
    return "changed" not in head.detail and file_checksum(head) == content.checksum


def is_of_stamp(head: Row, stamp: FileStamp) -> bool:
    """Return whether ``head`` describes an unread file with the size and time of ``stamp``."""
    if '"changed"' not in head.detail_json:
        return False
    detail = head.detail
    return (detail.get("changed"), detail.get("size")) == (stamp.changed, stamp.size)


def is_before_revert(journal: Journal, head: Row, content: FileContent | None) -> bool:
    """Return whether the file with ``content`` is unchanged since before a revert. The revert made ``head``,
    and has not written the file yet."""
    before = (head.detail.get("before"), head.detail.get(EXECUTABLE_BEFORE, False))
    found = (content.checksum, content.executable) if content is not None else (None, False)
    if head.tool != REVERT_WORK or found != before:
        return False
    revert = journal.head("revert", str(head.detail.get("revert")))
    return revert is not None and revert.version == 1


@contextmanager
def restored_if_refused(folder: Folder, parts: Parts, before: Inspected | None) -> Iterator[None]:
    """Restore the file at ``parts``, which was just written or removed, if its row, which the context
    commits, is refused.

    Otherwise the refused text would become an external edit. The file is not restored if the row may exist,
    or if another program has changed the file in the meantime.

    - ``before``: the file before, None if there was none.

    Raise `FileUnrecorded` if the file is not restored.
    """
    written = folder.stamp(parts)
    try:
        yield
    except OutcomeUnknown:
        raise
    except Exception as error:
        try:
            is_restored = folder.stamp(parts) == written and _restore(folder, parts, before)
        except OSError:
            is_restored = False
        if not is_restored:
            reason = error.message() if isinstance(error, WatchroomError) else str(error)
            path = validation.escape_unstorable("/".join(parts), validation.MAX_PATH_BYTES)
            raise FileUnrecorded(path=path, reason=reason) from error
        raise


def _restore(folder: Folder, parts: Parts, before: Inspected | None) -> bool:
    """Restore the file at ``parts`` as in ``before``. Return False if its content is not known. Raise
    OSError."""
    if before is None:
        folder.remove(parts)
    elif not folder.put_back(parts):
        if before.data is None:
            return False
        folder.write(parts, before.data, executable=before.executable)
    return True
