"""What the server needs of a workspace."""

from __future__ import annotations

from typing import Protocol

from watchroom.journal import Journal
from watchroom.row_dispatcher import RowDispatcher
from watchroom.toolbox import Toolbox
from watchroom.zones import RequestZone
from watchroom.zones.tokens import Tokens


class Place(Protocol):
    """Where agents work: a `Workspace`, as far as the server needs it."""

    @property
    def journal(self) -> Journal: ...

    @property
    def requests(self) -> RequestZone: ...

    @property
    def dispatcher(self) -> RowDispatcher: ...

    @property
    def access(self) -> Tokens: ...

    def tools(self, agent: str) -> Toolbox: ...
