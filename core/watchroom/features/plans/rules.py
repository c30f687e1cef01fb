"""Rules for plans: which paths a plan covers, which plans overlap, and when a plan ends. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from watchroom.algorithms.globs import matches_path, may_share_path
from watchroom.errors import InvalidPath
from watchroom.kernel.zones import DOCUMENTS, SHARED, strip_owner
from watchroom.model import ENDED, Row, SessionStatus, Zone
from watchroom.validation import escape_unstorable, find_path_flaw

MAX_PATHS: Final = 50
MAX_INTENT: Final = 200
"""Maximum characters of an intent."""
MAX_PARTS: Final = 20
"""Maximum number of names in a path of a plan."""
PLANNED: Final[tuple[Zone, ...]] = (*SHARED, *DOCUMENTS)
"""The zones whose paths plans are about: those in which several agents write."""
_STAND_IN: Final = "x"


def normalize_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return ``paths`` as plans have them: without ``./``, repetitions and the slash at the end.

    Raise `InvalidPath` for a path that no file can have.
    """
    return tuple(dict.fromkeys(_normalize(each) for each in paths))


def _normalize(given: str) -> str:
    path = given.removeprefix("./")
    path = f"{path}**" if path.endswith("/") and path != "/" else path
    # Wildcards are valid, although they are no part of any name.
    flaw = find_path_flaw(path.replace("*", _STAND_IN).replace("?", _STAND_IN))
    if flaw is None and path.count("/") >= MAX_PARTS:
        flaw = "path_depth"
    if flaw is not None:
        raise InvalidPath(given=escape_unstorable(given, 200), rule=flaw)
    return path


def covers(pattern: str, path: str) -> bool:
    """Return whether ``pattern``, a path of a plan, covers the file at ``path``."""
    return matches_path(_with_folder(pattern), path)


def may_overlap(one: str, other: str) -> bool:
    """Return whether two paths of plans may cover a common file. False is always right."""
    return may_share_path(_with_folder(one), _with_folder(other))


def _with_folder(pattern: str) -> str:
    """Return ``pattern`` with the files below it if it may be a folder: its last name has neither a dot nor a
    wildcard."""
    is_folder = not set(pattern.rpartition("/")[2]) & set(".*?")
    return f"{pattern}/**" if is_folder else pattern


def find_common(own: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns of files that are in both plans, empty if the plans do not overlap."""
    found = (
        # The narrower of the two, if one is known to be narrower.
        their if covers(mine, their) else mine
        for mine in own
        for their in others
        if may_overlap(mine, their)
    )
    return tuple(dict.fromkeys(found))[:MAX_PATHS]


def changes_planned(paths: Iterable[str], zone: Zone, path: str) -> bool:
    """Return whether a version of ``path`` in ``zone`` changes a file that a plan with ``paths`` covers."""
    name = strip_owner(zone, path)
    return zone in PLANNED and any(covers(each, name) for each in paths)


def has_ended(plan: Row, begun: Row, newest: Row, status: SessionStatus, *, is_changed: bool) -> bool:
    """Return whether the plan of row ``plan`` has ended.

    It ends with the session in which it was declared, when the agent begins another session, or when the
    agent stops after it has changed a planned file.

    - ``begun``, ``newest``: the first and the newest step of the agent's newest session.
    - ``status``: the status of that session.
    - ``is_changed``: whether the agent has changed a planned file since ``plan``.
    """
    if newest.seq < plan.seq:
        return False
    return begun.seq > plan.seq or status in ENDED or (status == "idle" and is_changed)
