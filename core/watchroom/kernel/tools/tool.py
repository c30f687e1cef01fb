"""`Tool` and `Toolset`. A tool is a function whose annotations are the models of its parameters and result.

Example::

    TOOLS: Final = Toolset("collab")
    tool = TOOLS.tool

    @tool("collab_write", path=("filepath",), destroys=True, may_conflict=True)
    def collab_write(context: ToolContext, params: CollabWriteParams) -> CollabWriteResult: ...

    @TOOLS.replay(collab_write)
    def _write_result(context: ToolContext, params: CollabWriteParams, row: Row) -> CollabWriteResult: ...

The text catalogue describes the tool for models under the tool's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import ParamsModel, ResultModel
from watchroom.model import Row, Zone
from watchroom.texts import Language, catalogue

ToolsetName: TypeAlias = Zone
"""The zone in which the tools of the set act."""
Audience: TypeAlias = Literal["everyone", "agents", "people"]
"""The callers that may use a tool."""
CORE_TEXTS: Final = "watchroom.texts"

P = TypeVar("P", bound=ParamsModel)
R = TypeVar("R", bound=ResultModel)
Replay: TypeAlias = Callable[[ToolContext, P, Row], R]
"""Returns the result of an earlier call from the row that the call made."""


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """The annotations of the Model Context Protocol, and ``may_conflict``.

    - ``destroys``: whether a call can replace or remove existing content.
    - ``may_conflict``: whether a call may be refused because of a newer version.
    """

    reads_only: bool = False
    destroys: bool = False
    idempotent: bool = False
    may_conflict: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Tool(Generic[P, R]):
    """A tool.

    - ``path_params``: the parameters that form the path of a refused call's row.
    - ``needs_task``: whether it is offered only to agents with a task.
    - ``zone``: the zone of the tool's rows.
    - ``texts``: the package of the catalogue that describes it.
    - ``text_name``: its name in the catalogue, default ``name``.
    - ``text_values``: values for the catalogue's texts.
    - ``row_path``: the path of a refused call's row, if it does not depend on the parameters.
    - ``read_tool``: the tool that reads the file at the call's path. If set, a call without
      ``expected_version`` expects the version that its actor last read.
    - ``replay_result``: returns the result of an earlier call from its row. None if calls are simply
      repeated.
    - ``has_permission``: returns whether the caller has permission for the parameters. None if every caller
      has.
    """

    name: str
    toolset: ToolsetName
    zone: Zone
    params: type[P]
    result: type[R]
    annotations: ToolAnnotations
    run: Callable[[ToolContext, P], R]
    path_params: tuple[str, ...] = ()
    audience: Audience = "everyone"
    needs_task: bool = False
    texts: str = CORE_TEXTS
    text_name: str = ""
    text_values: Mapping[str, str] = field(default_factory=dict)
    row_path: str = ""
    read_tool: str = ""
    replay_result: Replay[P, R] | None = None
    has_permission: Callable[[ToolContext, P], bool] | None = None

    @property
    def text_key(self) -> str:
        """The prefix of the tool's keys in the catalogue."""
        return f"tool.{self.text_name or self.name}"

    def is_for(self, *, human: bool) -> bool:
        """Return whether people (``human``) or agents may use the tool."""
        return self.audience in ("everyone", "people" if human else "agents")

    def title(self, language: Language) -> str:
        """Return the tool's title in ``language``."""
        return catalogue(language, self.texts)(f"{self.text_key}.title", **self.text_values)


AnyTool: TypeAlias = Tool[Any, Any]


class Toolset:
    """The tools of one module, in the order of their definition.

    - ``name``: the name by which callers select the set.
    - ``audience``: who may use the tools, unless a tool overrides it.
    - ``needs_task``: whether the tools are offered only to agents with a task.
    - ``texts``: the package of the catalogue that describes them.
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
        read_tool: str = "",
    ) -> Callable[[Callable[[ToolContext, P], R]], Tool[P, R]]:
        """Decorate a function as the tool ``name``.

        The annotations of the function's second parameter and result are the tool's models.

        - ``path``: the parameters that form the path of a refused call's row.
        - ``reads_only``, ``destroys``, ``idempotent``, ``may_conflict``: see `ToolAnnotations`.
          ``reads_only`` implies ``idempotent``.
        - ``audience``: default the toolset's.
        - ``zone``: the zone of the tool's rows, default the toolset.
        - ``read_tool``: see `Tool`.
        """
        annotations = ToolAnnotations(reads_only, destroys, idempotent or reads_only, may_conflict)

        def decorate(function: Callable[[ToolContext, P], R]) -> Tool[P, R]:
            _, params, result = function.__annotations__.values()
            defined = Tool(
                name,
                self.name,
                zone or self.name,
                _class(function, params),
                _class(function, result),
                annotations,
                function,
                path,
                audience or self._audience,
                self._needs_task,
                self._texts,
                read_tool=read_tool,
            )
            self._tools.append(defined)
            return defined

        return decorate

    def replay(self, tool: Tool[P, R]) -> Callable[[Replay[P, R]], Replay[P, R]]:
        """Decorate the function that returns the result of an earlier call of ``tool`` from its row.

        The function receives the context, the parameters and the row.
        """

        def decorate(function: Replay[P, R]) -> Replay[P, R]:
            self._tools[self._tools.index(tool)] = replace(tool, replay_result=function)
            return function

        return decorate

    def permission(
        self, tool: Tool[P, R]
    ) -> Callable[[Callable[[ToolContext, P], bool]], Callable[[ToolContext, P], bool]]:
        """Decorate the function that returns whether a caller of ``tool`` has permission.

        The function receives the context and the parameters. It changes nothing.
        """

        def decorate(function: Callable[[ToolContext, P], bool]) -> Callable[[ToolContext, P], bool]:
            self._tools[self._tools.index(tool)] = replace(tool, has_permission=function)
            return function

        return decorate


def _class(function: Callable[..., object], annotation: object) -> Any:
    # `typing.get_type_hints` compiles each annotation, which slows down every start.
    return function.__globals__[annotation] if isinstance(annotation, str) else annotation
