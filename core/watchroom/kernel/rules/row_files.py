"""Decides whether a row may become a file. All code that writes, reads or removes files for rows uses this
rule. Pure.

The journal can be written without the tools: by plain SQL, or on a server by an agent's own login. A row that
breaks its zone's rules is shown by every reader and reported by `verify`, but no file is touched for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from watchroom.errors import InvalidPath
from watchroom.kernel.zones import DELIVERED, DOCUMENTS, ZONES
from watchroom.model import Draft, Row, Write, Zone, actor_kind
from watchroom.validation import (
    escape_unstorable,
    find_agent_flaw,
    find_path_flaw,
    is_board_name,
    is_metadata_name,
    is_session_id,
)

ZONES_WITH_FILES: Final[tuple[Zone, ...]] = (
    *(zone for zone, spec in ZONES.items() if spec.folder),
    *DOCUMENTS,
    *("task", "file", "tree", "repo"),
)
"""The zones whose rows become files, or folders of files."""
_NAMED_LIKE_BOARDS: Final = frozenset(zone for zone, spec in ZONES.items() if spec.suffix)
_OWNED_BY_AGENTS: Final = frozenset(
    zone for zone, spec in ZONES.items() if spec.owner == "agent" or spec.is_delivered
)
"""Zones in which an agent writes only its own paths. They begin with its id."""
CONFIG_PATH: Final = "config.toml"
MAX_VERSION: Final = 2**53
"""Maximum version of a path. No journal reaches it by counting."""
MAX_STORED_BYTES: Final = 4096
"""Maximum bytes of a path in a task's folder. The names in the path come from the disk."""
_SHOWN: Final = 120


@lru_cache(maxsize=8192)
def find_flaw(zone: str, path: str) -> str | None:
    """Return the rule that ``path`` in ``zone`` breaks; None if it breaks none, or the zone has no files.

    `path_flaw` in PostgreSQL implements the same rules: `tests/laws/test_path_rules.py` compares both.
    """
    if zone == "private":
        owner, _, name = path.partition("/")
        return "no_owner" if not name else find_agent_flaw(owner) or find_path_flaw(name)
    if zone in DELIVERED:
        return _find_handoff_flaw(path)
    if zone in _NAMED_LIKE_BOARDS:
        return None if is_board_name(path) else "board_name"
    if zone == "config":
        return None if path == CONFIG_PATH else "config_path"
    if zone in DOCUMENTS:
        return "document_folder" if "/" in path else find_path_flaw(path)
    if zone in ("task", "tree"):
        return None if is_session_id(path) else "session_characters"
    if zone in ("file", "repo"):
        return _find_owned_file_flaw(path)
    return find_path_flaw(path) if zone in ZONES_WITH_FILES else None


def find_row_flaw(row: Row) -> str | None:
    """Return the rule that ``row`` breaks; None if it may become a file."""
    if row.version is not None and not 0 < row.version <= MAX_VERSION:
        return "damage_version"
    flaw = find_flaw(row.zone, row.path)
    if flaw is None and row.zone in _OWNED_BY_AGENTS and actor_kind(row.actor) == "agent":
        owner = row.path.partition("/")[0].partition("_to_")[0]
        return None if row.actor == owner else "wrong_owner"
    return flaw


def find_edit_flaw(zone: str, path: str) -> str | None:
    """Return the rule that an external edit at ``path`` in ``zone`` breaks, None if it breaks none. Such
    edits are ignored.

    In the folder of handoffs only the rules for paths apply, because people can put files beside the
    deliveries.
    """
    return find_path_flaw(path) if zone in DELIVERED else find_flaw(zone, path)


def check_draft(draft: Draft) -> None:
    """Raise `InvalidPath` if ``draft`` would make a version at a path that breaks its zone's rules."""
    flaw = find_flaw(draft.zone, draft.path) if isinstance(draft, Write) else None
    if flaw is not None:
        raise InvalidPath(given=escape_unstorable(draft.path, _SHOWN), rule=flaw)


def _find_handoff_flaw(path: str) -> str | None:
    pair, _, name = path.partition("/")
    sender, _, receiver = pair.partition("_to_")
    if not (name and sender and receiver):
        return "no_owner"
    flaw = find_agent_flaw(sender) or find_agent_flaw(receiver) or find_path_flaw(name)
    return flaw or ("meta_suffix" if is_metadata_name(name) else None)


def _find_owned_file_flaw(path: str) -> str | None:
    """Like `find_flaw`, for a file of a task or a tree: any name that a disk can hold, except files of git
    and of Watchroom."""
    owner, _, name = path.partition("/")
    if not name:
        return "no_owner"
    if not is_session_id(owner):
        return "session_characters"
    if "\0" in name:
        return "control_character"
    if len(name.encode("utf-8", "surrogatepass")) > MAX_STORED_BYTES:
        return "path_length"
    for number, part in enumerate(name.split("/")):
        if not part:
            return "empty_part"
        if part in (".", ".."):
            return "dot_part"
        if part.casefold() == ".git" or (number == 0 and part == ".watchroom"):
            return "reserved"
    return None
