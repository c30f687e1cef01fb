"""What a tool is: its name, its place, what it takes and gives, how it may be treated, what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeVar, cast

from watchroom.model import Row, Zone
from watchroom.texts import Language, catalogue
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller

Toolset: TypeAlias = Literal[
    "private", "handoff", "collab", "board", "realtime", "request", "session", "file", "agent", "buffer"
]
A = TypeVar("A", bound=take.Arguments)


@dataclass(frozen=True, slots=True)
class Hints:
    """The annotations of the Model Context Protocol. ``destroys``: may replace or remove what was there."""

    reads_only: bool = False
    destroys: bool = False
    idempotent: bool = False
    may_conflict: bool = False
    """Not of the protocol: whether a call can be refused because it came too late."""


READS: Final = Hints(reads_only=True, idempotent=True)
ADDS: Final = Hints()
REPLACES: Final = Hints(destroys=True, idempotent=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``path`` names the arguments that make up the path of a refused call's row."""

    name: str
    toolset: Toolset
    takes: type[take.Arguments]
    gives: type[give.Result]
    hints: Hints
    run: Callable[[Caller, take.Arguments], give.Result]
    path: tuple[str, ...]
    for_humans: bool
    for_agents: bool
    retell: Callable[[Caller, take.Arguments, Row], give.Result] | None
    """Gives the result once more, from the row that the call made."""
    texts: str = "watchroom.texts"
    """The package of the catalogue that says what the tool does and what each argument is."""
    rows: Zone | None = None
    """The zone of its rows, where it is not that of the toolset."""

    says: str = ""
    """Under which name the catalogue tells of it, where it is not its own."""
    values: Mapping[str, str] = field(default_factory=dict)
    """What fills the placeholders of what is told of it."""
    at: str = ""
    """The path of a refused call's row, where it does not depend on the arguments."""

    @property
    def key(self) -> str:
        """Where the catalogue tells of it."""
        return f"tool.{self.says or self.name}"

    @property
    def zone(self) -> Zone:
        return self.rows or self.toolset

    def title(self, language: Language) -> str:
        return catalogue(language, self.texts)(f"{self.key}.title", **self.values)


def define(
    name: str,
    toolset: Toolset,
    takes: type[A],
    gives: type[give.Result],
    hints: Hints,
    run: Callable[[Caller, A], give.Result],
    path: tuple[str, ...] = (),
    *,
    for_humans: bool = True,
    for_agents: bool = True,
    retell: Callable[[Caller, A, Row], give.Result] | None = None,
    texts: str = "watchroom.texts",
    rows: Zone | None = None,
    says: str = "",
    values: Mapping[str, str] | None = None,
    at: str = "",
) -> Tool:
    """Ties a tool's arguments to what runs on them: the dispatcher hands ``run`` only what ``takes`` made."""
    general = cast("Callable[[Caller, take.Arguments], give.Result]", run)
    again = cast("Callable[[Caller, take.Arguments, Row], give.Result] | None", retell)
    return Tool(
        name,
        toolset,
        takes,
        gives,
        hints,
        general,
        path,
        for_humans,
        for_agents,
        again,
        texts,
        rows,
        says,
        values or {},
        at,
    )
