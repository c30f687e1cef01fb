"""What rows are called in git: paths, authors, dates, messages. Pure.

Whatever agents wrote is made safe here: no path leads out of the tree or into git's own files, no name and no
message breaks out of its line.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from watchroom.checkout.layout import document_place, has_files, place
from watchroom.model import Row, Zone

DOMAIN: Final = "watchroom.invalid"
COMMITTER: Final = f"Watchroom <watchroom@{DOMAIN}>"
TASKS: Final = "tasks"
"""The folder of the tree in which each task's files are."""
MAX_MESSAGE: Final = 4000
"""Characters of a message."""
MAX_SUBJECT: Final = 200
_LAST_SECOND: Final = 253_402_300_799
_UNKNOWN: Final = "unknown"
_SHORT_NAMES: Final = re.compile(r"g[^/]*~\d+(\..*)?")
"""Windows' short names of git's own files."""
_OWN_NAMES: Final = frozenset({".git", ".gitmodules"})
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def tree_path(zone: Zone, path: str) -> str | None:
    """Where the file of ``path`` in ``zone`` lies in the tree, None where such paths have no files."""
    if zone == "file":
        return f"{TASKS}/{path}"
    if zone == "realtime":
        return "/".join(document_place(path))
    return "/".join(place(zone, path)) if has_files(zone) else None


@lru_cache(maxsize=4096)
def is_safe_path(path: str) -> bool:
    """Whether ``path`` can stand in a tree that git checks out anywhere: beneath its root, and none of git's
    own files by any spelling that a file system takes for theirs."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    if "\0" in path:
        return False
    return all(_is_safe_part(part) for part in path.split("/"))


def _is_safe_part(part: str) -> bool:
    if part in ("", ".", ".."):
        return False
    for each in part.split("\\"):
        seen = "".join(character for character in each if unicodedata.category(character) != "Cf")
        seen = seen.casefold().partition(":")[0].rstrip(". ")
        if seen in _OWN_NAMES or _SHORT_NAMES.fullmatch(seen):
            return False
    return True


def quoted_path(path: str) -> bytes:
    """``path`` as `git fast-import` reads it, whatever characters it has."""
    quoted = "".join(_escape(character) for character in path)
    return f'"{quoted}"'.encode()


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return f"\\{ord(character):03o}" if character < " " else character


@lru_cache(maxsize=1024)
def author(actor: str) -> str:
    """Who ``actor`` is as the author of a commit."""
    name = one_line(actor, MAX_SUBJECT, "<>").strip(" .,:;\"'") or _UNKNOWN
    return f"{name} <{'.'.join(name.replace(':', '.').split())}@{DOMAIN}>"


def date(time: int) -> str:
    """``time`` (nanoseconds since the epoch) as git has it, in UTC."""
    return f"{min(max(time // 10**9, 0), _LAST_SECOND)} +0000"


def one_line(text: str, limit: int, without: str = "") -> str:
    """The first ``limit`` characters of ``text`` as one line of visible characters that are none of those in
    ``without``."""
    shown = "".join(" " if _is_hidden(each) else each for each in text[: 4 * limit] if each not in without)
    return " ".join(shown.split())[:limit]


def message_text(text: str) -> str:
    """``text`` as the body of a message: its lines, of visible characters."""
    return "\n".join(one_line(line, MAX_MESSAGE) for line in text[:MAX_MESSAGE].splitlines()).strip()


def subject(row: Row, path: str) -> str:
    """The first line of the message of the commit of ``row``, whose file is at ``path``."""
    said = next((line for line in message_text(row.message).splitlines() if line), "")
    return said[:MAX_SUBJECT] or one_line(f"{row.tool} {path}", MAX_SUBJECT)


def _is_hidden(character: str) -> bool:
    return not (" " <= character <= "~") and unicodedata.category(character) in _HIDDEN
