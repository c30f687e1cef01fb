"""What a society needs of a workspace."""

from __future__ import annotations

from typing import Protocol

from watchroom.row_dispatcher import RowDispatcher
from watchroom.runtime import Sessions
from watchroom.toolbox import Toolbox
from watchroom.zones import Members, Tasks
from watchroom.zones.commands import CommandZone


class Workplace(Protocol):
    """Where agents work: a `Workspace`, as far as they need it."""

    @property
    def sessions(self) -> Sessions: ...

    @property
    def commands(self) -> CommandZone: ...

    @property
    def dispatcher(self) -> RowDispatcher: ...

    @property
    def members(self) -> Members: ...

    @property
    def tasks(self) -> Tasks: ...

    def tools(self, agent: str) -> Toolbox: ...
