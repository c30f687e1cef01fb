"""Where a person has checkpoints of journals kept, apart from their own folder for states. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

SEAL_BRANCH: Final = "watchroom-seal"


class Publication(NamedTuple):
    """Where checkpoints are published: in the ``folder`` as ``ID.txt``, and as commits on the ``branch`` of
    the git ``repository`` (a path). Empty: nowhere."""

    folder: str = ""
    repository: str = ""
    branch: str = SEAL_BRANCH
