"""Validation of agent ids, paths, names and texts, done once before anything else uses them."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import lru_cache
from typing import Any, Final

from watchroom.errors import (
    InvalidAgentId,
    InvalidKey,
    InvalidName,
    InvalidPath,
    InvalidSession,
    NotText,
    TooLarge,
)
from watchroom.model import MAX_TEXT_BYTES, OUTSIDE, SYSTEM

MAX_PART_BYTES: Final = 200
MAX_AGENT_ID: Final = 64
MAX_PATH_BYTES: Final = 1000
MAX_PATH_PARTS: Final = 32
MAX_MAP_KEY: Final = 1000
"""Maximum characters of a key in a map of a realtime document."""
MAX_KEY_PARTS: Final = 64
"""Maximum parts of a dotted key in TOML."""
RESERVED_PARTS: Final = frozenset({".watchroom", ".versions", ".crdt_state", ".locks", ".git"})
RESERVED_IDS: Final = frozenset({OUTSIDE, SYSTEM, "human", "user"})
META_SUFFIX: Final = ".meta.json"
GLOBAL_BOARD: Final = "global"
TOP_BOARD: Final = "top-layer"
MID_BOARD: Final = "mid-layer-"
BOTTOM_BOARD: Final = "bottom-layer-"

PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
"""The name of an entry point of another package."""
_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_HUMAN_NAME = re.compile(r"[\w][\w .@-]{0,63}")
_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE_NAMES: Final = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)}
)
HIDDEN_CHARACTERS: Final = (
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ud800-\uf8ff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe-\uffff\U000110bd\U000110cd\U00013430-\U00013438"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff"
)
"""Invisible characters as a regular expression class: formats, separators, surrogates, private use.

They are listed here so that all versions of Python and all servers agree.
"""
LOOK_ALIKES: Final = (
    "\u2024-\u2026\u2044\u2100-\u2101\u2105-\u2106\u2215-\u2216\u2488-\u249b\u2571-\u2572\u27cb\u27cd\u29f5\u29f8-\u29f9"
    "\u33c2\u33c7\u33d8\ufe19\ufe30\ufe52\ufe68\uff0e-\uff0f\uff3c\U0001f100"
)
"""Characters that look like a separator or a dot, or that NFKC converts to such a character, as a regular
expression class."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_HIDDEN: Final = re.compile(f"[{HIDDEN_CHARACTERS}]")
_LOOKS_ALIKE: Final = re.compile(f"[{LOOK_ALIKES}]")
_EDGE_SPACES: Final = " \u1680"
"""Spaces that NFKC does not change."""
# Possessive quantifiers and the anchor at the start of a part keep the search linear.
_LONG_KEY: Final = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}"""
)


@lru_cache(maxsize=4096)
def check_agent_id(given: str) -> str:
    """Return ``given`` if it is a valid agent id. Otherwise raise `InvalidAgentId` with the broken rule.

    An id has 1 to 64 lower-case letters, digits, ``-`` and ``_``. It begins with a letter or digit, does not
    contain ``_to_``, and is not reserved.
    """
    flaw = find_agent_flaw(given)
    if flaw is not None:
        raise InvalidAgentId(given=_quote(given), rule=flaw)
    return given


def find_agent_flaw(given: str) -> str | None:
    """Return the rule of agent ids that ``given`` breaks; None if it is valid."""
    if not _AGENT_ID.fullmatch(given):
        return "id_characters"
    if "_to_" in given:
        return "id_separator"
    return "reserved" if given in RESERVED_IDS or given in _DEVICE_NAMES else None


def is_session_id(given: str) -> bool:
    """Return whether ``given`` is a valid id of a session or a task."""
    return _SESSION_ID.fullmatch(given) is not None


def check_session_id(given: str) -> str:
    """Return ``given`` if it is a valid session id: 1 to 64 letters, digits, ``_``, ``.`` and ``-``.

    Otherwise raise `InvalidSession`.
    """
    if not _SESSION_ID.fullmatch(given):
        raise InvalidSession(given=_quote(given), rule="session_characters")
    return given


def check_revert_id(given: str) -> str:
    """Return ``given`` if it is a valid revert id, which has the form of a session id.

    Otherwise raise `InvalidName`.
    """
    if not _SESSION_ID.fullmatch(given):
        raise InvalidName(given=_quote(given), rule="session_characters")
    return given


def check_document_id(given: str) -> str:
    """Return ``given`` if it is a valid id of a realtime document: a path of one part.

    Otherwise raise `InvalidPath`.
    """
    if "/" in check_path(given):
        raise InvalidPath(given=_quote(given), rule="document_folder")
    return given


def check_map_key(given: str) -> str:
    """Return ``given`` if it is a valid key in a map of a realtime document.

    Otherwise raise `InvalidKey`.
    """
    for rule, is_broken in (
        ("key_length", not 0 < len(given) <= MAX_MAP_KEY),
        ("binary", "\0" in given),
        ("not_utf8", not is_unicode(given)),
    ):
        if is_broken:
            raise InvalidKey(given=_quote(given), rule=rule)
    return given


def check_board_name(given: str) -> str:
    """Return ``given`` if it is a valid name of a whiteboard (BOARDS-2.1).

    Names are ``global``, ``top-layer``, ``mid-layer-{role}`` and ``bottom-layer-{agent}``. Otherwise raise
    `InvalidPath` or `InvalidAgentId`.
    """
    if given in (GLOBAL_BOARD, TOP_BOARD):
        return given
    for prefix in (MID_BOARD, BOTTOM_BOARD):
        if given.startswith(prefix):
            check_agent_id(given.removeprefix(prefix))
            return given
    raise InvalidPath(given=_quote(given), rule="board_name")


def is_board_name(given: str) -> bool:
    """Return whether ``given`` is a valid name of a whiteboard."""
    try:
        check_board_name(given)
    except InvalidName:
        return False
    return True


def check_human_name(given: str) -> str:
    """Return ``given`` if it is a valid name of a person. Otherwise raise `InvalidAgentId`.

    A name has 1 to 64 letters, digits, spaces and ``. @ - _``.
    """
    if not _HUMAN_NAME.fullmatch(given):
        raise InvalidAgentId(given=_quote(given), rule="human_characters")
    return given


@lru_cache(maxsize=4096)
def check_path(given: str) -> str:
    """Return ``given`` if it is a safe relative path. Otherwise raise `InvalidPath` with the broken rule.

    Its parts are printable characters in NFC, without ``..``, drives, reserved names and look-alikes of
    separators. Length and depth are limited.
    """
    flaw = _find_new_path_flaw(given)
    if flaw:
        raise InvalidPath(given=_quote(given), rule=flaw)
    return given


def _find_new_path_flaw(path: str) -> str | None:
    """Return the rule that ``path`` breaks as the path of a new file; None if it is valid."""
    if path.count("/") >= MAX_PATH_PARTS:
        return "path_depth"
    # Only new paths are checked, because newer versions of Unicode assign more characters.
    if any(unicodedata.category(character) == "Cn" for character in path):
        return "hidden_character"
    return find_path_flaw(path)


def find_path_flaw(path: str) -> str | None:
    """Return the rule that ``path``, the path of a row, breaks; None if it is valid.

    The depth is not limited, because earlier releases did not limit it. `path_flaw` in PostgreSQL must
    implement the same rule.
    """
    if not path:
        return "empty"
    if _CONTROL.search(path):
        return "control_character"
    if _HIDDEN.search(path):
        return "hidden_character"
    if _LOOKS_ALIKE.search(path):
        return "look_alike"
    if not unicodedata.is_normalized("NFC", path):
        return "not_nfc"
    if path.startswith("/"):
        return "absolute"
    if "\\" in path:
        return "backslash"
    if _DRIVE.match(path):
        return "drive"
    if ":" in path:
        return "colon"
    if len(path.encode()) > MAX_PATH_BYTES:
        return "path_length"
    return next((flaw for part in path.split("/") if (flaw := _find_part_flaw(part))), None)


def _find_part_flaw(part: str) -> str | None:
    if not part:
        return "empty_part"
    if part in (".", ".."):
        return "dot_part"
    # Windows also treats "COM¹" and "con .txt" as devices.
    folded = unicodedata.normalize("NFKC", part).casefold()
    if folded in RESERVED_PARTS or folded.split(".")[0].rstrip(_EDGE_SPACES) in _DEVICE_NAMES:
        return "reserved"
    if part != part.strip() or part.endswith("."):
        return "part_edges"
    if len(part.encode()) > MAX_PART_BYTES:
        return "part_length"
    return None


def check_handoff_name(given: str) -> str:
    """Return ``given`` if it is a safe relative path and not the name of a metadata file of a handoff.

    Otherwise raise `InvalidPath`.
    """
    path = check_path(given)
    if is_metadata_name(path):
        raise InvalidPath(given=_quote(given), rule="meta_suffix")
    return path


def is_metadata_name(path: str) -> bool:
    """Return whether a part of ``path`` has the name of a metadata file of a handoff."""
    folded = unicodedata.normalize("NFKC", path).casefold()
    return any(part.endswith(META_SUFFIX) for part in folded.split("/"))


def encode_text(given: str) -> bytes:
    """Return ``given`` in UTF-8.

    Raise `NotText` for lone surrogates and NUL, and `TooLarge` above 10 MB.
    """
    if len(given) > MAX_TEXT_BYTES:
        raise TooLarge(size=len(given), limit=MAX_TEXT_BYTES)
    try:
        data = given.encode()
    except UnicodeEncodeError as error:
        raise NotText(rule="not_utf8") from error
    _check_bytes(data)
    return data


def decode_text(data: bytes) -> str:
    """Decode ``data`` from UTF-8. Raise the errors of `encode_text`."""
    _check_bytes(data)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotText(rule="not_utf8") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parse ``text`` as TOML. Raise ValueError with the reason if it is invalid.

    It is also invalid if it is nested too deeply, or if a number has too many digits. Keys have at most
    `MAX_KEY_PARTS` parts, because the parser needs quadratic time for them.
    """
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _check_bytes(data: bytes) -> None:
    if len(data) > MAX_TEXT_BYTES:
        raise TooLarge(size=len(data), limit=MAX_TEXT_BYTES)
    if b"\0" in data:
        raise NotText(rule="binary")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of ``data`` as 64 hexadecimal digits."""
    # Loaded with the first write, because readers of the journal do not need it.
    import hashlib

    return hashlib.sha256(data).hexdigest()


def escape_unstorable(given: str, limit: int = 500) -> str:
    """Return ``given`` in a form that every journal can store, cut to ``limit`` characters.

    Lone surrogates and NUL, which PostgreSQL does not store, are escaped.
    """
    cut = given if len(given) <= limit else given[:limit] + "…"
    if cut.isascii() and "\0" not in cut:
        return cut
    return cut.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def extract_first_line(text: str, limit: int) -> str:
    """Return the first non-blank line of ``text`` for lists, cut to ``limit`` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return escape_unstorable(line, limit)


def replace_lone_surrogates(given: str) -> str:
    """Return ``given`` with surrogate pairs joined, and lone surrogates replaced by U+FFFD.

    Some models cut emoji in half, and lone surrogates cannot be stored.
    """
    return given.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_non_path_characters(given: str) -> str:
    """Return ``given`` with NUL and lone surrogates, which file names cannot have, replaced by U+FFFD."""
    return replace_lone_surrogates(given).replace("\0", "\ufffd")


def is_unicode(given: str) -> bool:
    """Return whether ``given`` can be encoded in UTF-8. Some file names on POSIX cannot."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quote(given: str) -> str:
    """Return ``given`` for an error message: at most 120 characters, with invisible characters escaped."""
    return repr(given[:120])[1:-1] + ("…" if len(given) > 120 else "")
