"""A difference between two versions of a file in the format that ``git apply`` reads. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.merge import diff_hunks

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


class GitFile(NamedTuple):
    """One side of a patch: the file's ``mode`` and ``text``."""

    mode: FileMode
    text: str


def git_patch(path: bytes, old: GitFile | None, new: GitFile | None) -> str:
    """Return the patch that makes ``new`` of ``old``, the file at ``path``; None stands for no file. Empty if
    both are the same."""
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
    """Return ``name`` as git reads it in a header: in quotes if it has control characters, quotes,
    backslashes or bytes that are not UTF-8.

    Also if it has spaces: with them git cannot always find the end of an unquoted name."""
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
