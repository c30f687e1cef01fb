"""`Tool` and `Toolset`: a tool is a function whose annotations name its parameters and its result.

    TOOLS: Final = Toolset("collab")
    tool = TOOLS.tool

    @tool("collab_write", path=("filepath",), destroys=True, may_conflict=True)
    def collab_write(context: ToolContext, params: CollabWriteParams) -> CollabWriteResult: ...

    @TOOLS.replay(collab_write)
    def _write_result(context: ToolContext, params: CollabWriteParams, row: Row) -> CollabWriteResult: ...

What a model is told of it stands in the text catalogue under the tool's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from watchroom.journal import NoteKey
from watchroom.model import Row, Zone
from watchroom.texts import Language, catalogue
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import ParamsModel, ResultModel

ToolsetName: TypeAlias = Zone
"""A toolset has the name of the zone that its tools act in."""
Audience: TypeAlias = Literal["everyone", "agents", "people"]
"""Who has a tool."""
CORE_TEXTS: Final = "watchroom.texts"

P = TypeVar("P", bound=ParamsModel)
R = TypeVar("R", bound=ResultModel)
Replay: TypeAlias = Callable[[ToolContext, P, Row], R]
"""Returns the result of a call once more, from the row that the call made."""


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """The annotations of the Model Context Protocol. ``destroys``: may replace or remove what was there.
    ``may_conflict`` is not of the protocol: whether a call can be refused because it came too late."""

    reads_only: bool = False
    destroys: bool = False
    idempotent: bool = False
    may_conflict: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Tool(Generic[P, R]):
    """One tool.

    ``path_params`` are the parameters that make up the path of a refused call's row, and ``row_zone`` is the
    zone of the tool's rows, where it is not the toolset's. ``texts`` is the package of the catalogue that
    describes it, under ``text_name`` if not under its own name, with ``text_values`` filled in.
    """

    name: str
    toolset: ToolsetName
    params: type[P]
    result: type[R]
    annotations: ToolAnnotations
    run: Callable[[ToolContext, P], R]
    path_params: tuple[str, ...] = ()
    audience: Audience = "everyone"
    needs_task: bool = False
    """Whether only agents with a task have it."""
    row_zone: Zone | None = None
    texts: str = CORE_TEXTS
    text_name: str = ""
    text_values: Mapping[str, str] = field(default_factory=dict)
    row_path: str = ""
    """The path of a refused call's row, where it does not depend on the parameters."""
    seen_key: Callable[[ToolContext, P], NoteKey | None] | None = None
    """Returns of what the call asks which version its actor last saw, so that it is asked for together with
    who calls; None where the call asks for none."""
    replay_result: Replay[P, R] | None = None
    """Returns the result once more, from the row that the call made; None where calls are simply repeated."""

    @property
    def text_key(self) -> str:
        """The key of its description in the catalogue."""
        return f"tool.{self.text_name or self.name}"

    @property
    def zone(self) -> Zone:
        """The zone of its rows."""
        return self.row_zone or self.toolset

    def is_for(self, *, human: bool) -> bool:
        """Whether people (``human``) or agents have it."""
        return self.audience in ("everyone", "people" if human else "agents")

    def title(self, language: Language) -> str:
        """Return its title in ``language``."""
        return catalogue(language, self.texts)(f"{self.text_key}.title", **self.text_values)


AnyTool: TypeAlias = Tool[Any, Any]


class Toolset:
    """The tools of one module, in the order of their definition.

    ``name`` is the toolset that a caller chooses them by. ``audience`` is who has them, where a tool does not
    say otherwise; ``needs_task`` keeps them to agents with a task; ``texts`` is the package of the catalogue
    that describes them.
    """

    def __init__(
        self,
        name: ToolsetName,
        *,
        audience: Audience = "everyone",
        needs_task: bool = False,
        texts: str = CORE_TEXTS,
    ) -> None:
        self.name: ToolsetName = name
        self._audience: Audience = audience
        self._needs_task = needs_task
        self._texts = texts
        self._tools: list[AnyTool] = []

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools)

    def tool(
        self,
        name: str,
        *,
        path: tuple[str, ...] = (),
        reads_only: bool = False,
        destroys: bool = False,
        idempotent: bool = False,
        may_conflict: bool = False,
        audience: Audience | None = None,
        zone: Zone | None = None,
        seen: Callable[[ToolContext, Any], NoteKey | None] | None = None,
    ) -> Callable[[Callable[[ToolContext, P], R]], Tool[P, R]]:
        """Decorate a function as the tool ``name``, which the catalogue describes under that name.

        ``path`` are the parameters that make up the path of a refused call's row, ``zone`` is that row's
        where it is not the toolset's. ``reads_only`` implies ``idempotent``; for these, ``destroys`` and
        ``may_conflict`` see `ToolAnnotations`. ``audience`` overrides the toolset's; ``seen`` is the tool's
        `Tool.seen_key`. Returns the decorator,
        which returns the `Tool`; the types of the function's second parameter and of what it returns are the
        tool's models.
        """
        annotations = ToolAnnotations(reads_only, destroys, idempotent or reads_only, may_conflict)

        def decorate(function: Callable[[ToolContext, P], R]) -> Tool[P, R]:
            _, params, result = function.__annotations__.values()
            defined = Tool(
                name,
                self.name,
                _class(function, params),
                _class(function, result),
                annotations,
                function,
                path,
                audience or self._audience,
                self._needs_task,
                zone,
                self._texts,
                seen_key=seen,
            )
            self._tools.append(defined)
            return defined

        return decorate

    def replay(self, tool: Tool[P, R]) -> Callable[[Replay[P, R]], Replay[P, R]]:
        """Decorate a function as the one that returns the result of a repeated call of ``tool``, given the
        context, the parameters and the row that the call made. Returns the decorator, which returns the
        function."""

        def decorate(function: Replay[P, R]) -> Replay[P, R]:
            self._tools[self._tools.index(tool)] = replace(tool, replay_result=function)
            return function

        return decorate


def _class(function: Callable[..., object], annotation: object) -> Any:
    # Looked up by its name: `typing.get_type_hints` compiles each, which costs time at every start.
    return function.__globals__[annotation] if isinstance(annotation, str) else annotation
