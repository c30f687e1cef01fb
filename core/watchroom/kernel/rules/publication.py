"""Where a person publishes journal seals, in addition to their own state folder. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

SEAL_BRANCH: Final = "watchroom-seal"


class Publication(NamedTuple):
    """Where journal seals are published. Empty values mean nowhere.

    - ``folder``: a folder for files ``ID.txt``.
    - ``repository``: the path of a git repository.
    - ``branch``: the branch for commits in this repository.
    """

    folder: str = ""
    repository: str = ""
    branch: str = SEAL_BRANCH
