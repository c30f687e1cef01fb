"""Which tools there are, and which of them one caller has now.

A package on top of the core brings tools through an entry point of the group ``watchroom.tools``, which names
a `Toolset`. What a system prompt says of it stands in the package's catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Final, Literal

from watchroom import validation
from watchroom.editing import parse_tool_name
from watchroom.errors import PeopleOnly, PermissionDenied, UnknownTool
from watchroom.model import HUMAN_PREFIX
from watchroom.rules.buffers import CLOSE
from watchroom.rules.decision_errors import MayNotDecide
from watchroom.texts import Language, catalogue
from watchroom.toolbox import (
    agents,
    buffers,
    collab,
    config,
    conflicts,
    handoff,
    private,
    realtime,
    requests,
    reverts,
    sessions,
    tasks,
)
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.tool import AnyTool, ToolsetName
from watchroom.zones.buffers.errors import BufferNotFound

ENTRY_POINT_GROUP: Final = "watchroom.tools"
_CORE: Final = (
    private,
    handoff,
    collab,
    realtime,
    conflicts,
    requests,
    sessions,
    agents,
    buffers,
    tasks,
    config,
    reverts,
)


@cache
def all_tools() -> Mapping[str, AnyTool]:
    """Return all tools by name, in the order in which they are offered: the core's, then those that installed
    packages bring, without those of open buffers. Raises TypeError if two have the same name."""
    found: dict[str, AnyTool] = {}
    points = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda each: each.name)
    for tools in (*(module.TOOLS for module in _CORE), *(point.load() for point in points)):
        for tool in tools:
            if tool.name in found:
                raise TypeError(f"two tools have the name {tool.name}")
            found[tool.name] = tool
    return found


def all_toolsets() -> list[ToolsetName]:
    """Return the names of all toolsets, in the order of their tools."""
    return list(dict.fromkeys(tool.toolset for tool in all_tools().values()))


def prompt_parts(
    tools: Iterable[AnyTool], part: Literal["place", "section"], language: Language
) -> list[str]:
    """Return what a system prompt in ``language`` says in ``part`` of the toolsets of ``tools``, in their
    order: a package that brings tools says it in its catalogue under ``prompt.PART.TOOLSET``, if at all."""
    wanted = dict.fromkeys((f"prompt.{part}.{tool.toolset}", tool.texts) for tool in tools)
    catalogues = ((key, catalogue(language, package)) for key, package in wanted)
    return [texts(key) for key, texts in catalogues if key in texts]


class ToolRegistry:
    """Which tools the caller of ``context`` has now. May be used from any thread."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._is_human = context.actor.startswith(HUMAN_PREFIX)

    def available(self, toolsets: Iterable[str] | None = None) -> list[AnyTool]:
        """Return the tools that the caller has now, or those of ``toolsets``, in a fixed order: without those
        for agents with a task where it has none, and with those that its open buffers have in their states;
        of a person who only looks, those that change nothing. Each costs a model tokens. Raises
        `JournalError`."""
        wanted = None if toolsets is None else set(toolsets)
        found = [
            tool
            for tool in all_tools().values()
            if tool.is_for(human=self._is_human) and (wanted is None or tool.toolset in wanted)
        ]
        if self._is_human:
            rule = self._find_bound()
            return [tool for tool in found if tool.annotations.reads_only] if rule else found
        zones, actor = self._context.zones, self._context.actor
        of_buffers: list[AnyTool] = []
        if wanted is None or "buffer" in wanted:
            open_tools = zones.buffers.tools(actor, self._context.language)
            of_buffers = [buffers.buffer_tool(actor, name, kind) for name, kind in open_tools]
        has_task = bool(zones.task_files.task_of(actor))
        found = [tool for tool in found if has_task or not tool.needs_task]
        return [*(tool for tool in found if of_buffers or tool.name != CLOSE), *of_buffers]

    def available_names(self, toolsets: Iterable[str] | None = None) -> list[str]:
        """Return the names of the tools that `available` returns for ``toolsets``: as long as they are the
        same, so are the definitions. Raises `JournalError`."""
        return [tool.name for tool in self.available(toolsets)]

    def find(self, name: str, *, repeated: bool = False) -> AnyTool | None:
        """Return the tool ``name``, whether or not the caller has it; of a buffer of its own that is open,
        also one that the buffer's state does not offer. A ``repeated`` call may have been made before the
        buffer was closed. None if there is no such tool."""
        tool = all_tools().get(name)
        if tool is None and not self._is_human and (of_buffer := parse_tool_name(name)):
            buffer, kind = of_buffer
            if repeated or self._context.zones.buffers.is_open(self._context.actor, buffer):
                return buffers.buffer_tool(self._context.actor, buffer, kind)
        return tool

    def require(self, name: str, *, repeated: bool = False) -> AnyTool:
        """Return the tool ``name`` as `find` does, with ``repeated``. Raises `UnknownTool`, `BufferNotFound`,
        and `PermissionDenied` or `PeopleOnly` for one that the caller does not have, `MayNotDecide` where a
        person only looks."""
        tool = self.find(name, repeated=repeated)
        if tool is None and not self._is_human and (of_buffer := parse_tool_name(name)):
            names = self._context.zones.buffers.open_names(self._context.actor)
            raise BufferNotFound(
                buffer=validation.escape_unstorable(of_buffer[0], 100), known=", ".join(sorted(names)) or "-"
            )
        if tool is None:
            known = ", ".join(each.name for each in self.available())
            raise UnknownTool(tool=validation.escape_unstorable(name, 100), known=known)
        if not tool.is_for(human=self._is_human):
            raise PermissionDenied(owner="agents") if self._is_human else PeopleOnly(tool=name)
        if self._is_human and not tool.annotations.reads_only:
            rule = self._find_bound()
            if rule:
                raise MayNotDecide(person=self._context.actor, tool=name, rule=rule)
        return tool

    def _find_bound(self) -> str:
        """The rule by which the person who calls only looks; empty where they may act."""
        if self._context.reads_only:
            return "token_reads"
        person = self._context.zones.people.current().find(self._context.actor)
        return "decision_role" if person is not None and person.role == "viewer" else ""
