"""What the row of a version says of its file: whether it is a text, which bytes it has, its mode. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from watchroom.model import Json, Row

EXECUTABLE: Final = "executable"
"""The field of a row's detail that says that its file may be executed; other rights are not kept, as in git.
"""

EXECUTABLE_BEFORE: Final = "executable_before"
"""The field by which the row of a revert says so of the version that it followed."""


_ESCAPED_BYTE: Final = re.compile(r"\\u(dc[89a-f][0-9a-f])")
"""How `validation.escape_unstorable` writes a byte of a file name that is not UTF-8."""


IGNORED: Final = "ignored"
"""The field of a row's detail that says that git ignores the file: the row has nothing of its content, and
ends its versions if it is one."""


class Blob(NamedTuple):
    """The bytes of a file that is no text: their SHA-256 (hex), and how many there are."""

    sha256: str
    size: int

    @property
    def detail(self) -> dict[str, Json]:
        """As a row's detail has it."""
        return {"sha256": self.sha256, "size": self.size}


def is_text(row: Row) -> bool:
    """Whether the content of ``row``, a version of a task's file, is the file's, and not what stands for
    it."""
    return not {"sha256", "changed"} & row.detail.keys()


def is_escaped_path(path: str) -> bool:
    """Return whether ``path``, of a row, stands for a file name that is not UTF-8. Such a path names the
    row only: the file cannot be found by it."""
    return _ESCAPED_BYTE.search(path) is not None


def unescape_path(path: str) -> bytes:
    """Return the file name that ``path``, of a row, stands for, in bytes."""
    name = _ESCAPED_BYTE.sub(lambda found: chr(int(found[1], 16)), path)
    return name.encode("utf-8", "surrogateescape")


def is_ignored_version(row: Row) -> bool:
    """Return whether ``row`` ends the versions of a file because git ignores it from then on. The file is
    still on disk."""
    return row.deleted and row.detail.get(IGNORED) is True


def blob_of(row: Row) -> Blob | None:
    """The bytes that the file of ``row`` has; None of a text, and of one that was not read."""
    sha256, size = row.detail.get("sha256"), row.detail.get("size")
    return Blob(sha256, size) if isinstance(sha256, str) and isinstance(size, int) else None


def is_executable(row: Row | None) -> bool:
    """Whether the file of ``row`` is there and may be executed; not where there is no row."""
    return row is not None and not row.deleted and row.detail.get(EXECUTABLE) is True


def file_checksum(row: Row) -> str | None:
    """The SHA-256 (hex) of the file of ``row``, None where it was deleted."""
    blob = blob_of(row)
    return blob.sha256 if blob is not None else row.sha256
