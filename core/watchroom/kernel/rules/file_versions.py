"""The file described by the row of a version: whether it is a text, its bytes, and its mode. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from watchroom.model import Json, Row

EXECUTABLE: Final = "executable"
"""The field of a row's detail that marks an executable file. As in git, other permissions are not kept."""

EXECUTABLE_BEFORE: Final = "executable_before"
"""The field in a revert's row that marks the version before it as executable."""


_ESCAPED_BYTE: Final = re.compile(r"\\u(dc[89a-f][0-9a-f])")
"""Matches a byte of a file name that is not UTF-8, as escaped by `validation.escape_unstorable`."""


IGNORED: Final = "ignored"
"""The field of a row's detail that marks a file ignored by git. The row has no content. If the row is a
version, it ends the file's versions."""


class Blob(NamedTuple):
    """The bytes of a binary file: their SHA-256 (hex), and their number."""

    sha256: str
    size: int

    @property
    def detail(self) -> dict[str, Json]:
        """The blob as the detail of a row."""
        return {"sha256": self.sha256, "size": self.size}


def is_text(row: Row) -> bool:
    """Whether the content of ``row``, a version of a file in a task or a working tree, is the file's text,
    and not a placeholder."""
    return not {"sha256", "changed"} & row.detail.keys()


def is_escaped_path(path: str) -> bool:
    """Return whether ``path``, a path of rows, stands for a file name that is not UTF-8. The file cannot be
    found by such a path."""
    return _ESCAPED_BYTE.search(path) is not None


def unescape_path(path: str) -> bytes:
    """Return the file name that ``path``, a path of rows, stands for, in bytes."""
    name = _ESCAPED_BYTE.sub(lambda found: chr(int(found[1], 16)), path)
    return name.encode("utf-8", "surrogateescape")


def is_ignored_version(row: Row) -> bool:
    """Return whether ``row`` ends the versions of a file because git now ignores it. The file is still on
    disk."""
    return row.deleted and row.detail.get(IGNORED) is True


def blob_of(row: Row) -> Blob | None:
    """The bytes of the file of ``row``; None for a text, or for a file that was not read."""
    sha256, size = row.detail.get("sha256"), row.detail.get("size")
    return Blob(sha256, size) if isinstance(sha256, str) and isinstance(size, int) else None


def is_executable(row: Row | None) -> bool:
    """Whether the file of ``row`` exists and is executable; False without a row."""
    return row is not None and not row.deleted and row.detail.get(EXECUTABLE) is True


def file_checksum(row: Row) -> str | None:
    """The SHA-256 (hex) of the file of ``row``, None if the file was deleted."""
    blob = blob_of(row)
    return blob.sha256 if blob is not None else row.sha256
