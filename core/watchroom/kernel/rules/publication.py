"""The places where a person publishes journal seals, besides their own state folder. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

SEAL_BRANCH: Final = "watchroom-seal"


class Publication(NamedTuple):
    """The places where journal seals are published. Empty values mean no place.

    - ``folder``: a folder for files ``ID.txt``.
    - ``repository``: the path of a git repository.
    - ``branch``: the branch for commits in this repository.
    """

    folder: str = ""
    repository: str = ""
    branch: str = SEAL_BRANCH
