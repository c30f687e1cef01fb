"""All tools, and the current tools of one caller.

Other packages add tools with an entry point of the group ``watchroom.tools``, which names a `Toolset`
(docs/plugins.md). The package's catalogue has the texts for system prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final, Literal, get_args

from watchroom import validation
from watchroom.algorithms.editing import parse_tool_name
from watchroom.errors import BufferNotFound, MayNotDecide, PeopleOnly, PermissionDenied, UnknownTool
from watchroom.features.budgets import tools as budgets
from watchroom.features.buffers import tools as buffers
from watchroom.features.buffers.rows import CLOSE
from watchroom.features.conflicts import tools as conflicts
from watchroom.features.documents import tools as realtime
from watchroom.features.files import tools as files
from watchroom.features.handoffs import tools as handoffs
from watchroom.features.needs import tools as needs
from watchroom.features.people import tools as config
from watchroom.features.plans import tools as plans
from watchroom.features.policy import tools as grants
from watchroom.features.races import tools as races
from watchroom.features.requests import tools as requests
from watchroom.features.reverts import tools as reverts
from watchroom.features.routines import tools as routines
from watchroom.features.sessions import tools as sessions
from watchroom.features.tasks import member_tools as agents
from watchroom.features.tasks import tools as tasks
from watchroom.features.trees import tools as trees
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.tool import AnyTool, Toolset, ToolsetName
from watchroom.model import HUMAN_PREFIX, Zone
from watchroom.platform.plugins import OWN_PACKAGE, OfferedPlugin, Plugins, load_plugins
from watchroom.texts import LANGUAGES, Language, catalogue

ENTRY_POINT_GROUP: Final = "watchroom.tools"
DEFAULT_SERVER_TOOLSETS: Final[tuple[ToolsetName, ...]] = (
    files.PRIVATE_TOOLS.name,
    handoffs.TOOLS.name,
    files.SHARED_TOOLS.name,
)
"""The toolsets that an MCP server offers by default. Their definitions cost a model at most 4,000 tokens."""
_TOOL_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}", re.ASCII)
_CORE: Final = (
    files.PRIVATE_TOOLS,
    handoffs.TOOLS,
    files.SHARED_TOOLS,
    realtime.TOOLS,
    conflicts.TOOLS,
    needs.TOOLS,
    requests.TOOLS,
    grants.TOOLS,
    sessions.TOOLS,
    agents.TOOLS,
    buffers.TOOLS,
    tasks.TOOLS,
    budgets.TOOLS,
    config.TOOLS,
    reverts.TOOLS,
    trees.TOOLS,
    races.TOOLS,
    plans.TOOLS,
    routines.TOOLS,
)


@cache
def plugin_tools() -> Plugins[Toolset]:
    """Return the toolsets of installed packages. A toolset is left out if one of its tools is invalid."""
    taken = {tool.name for tools in _CORE for tool in tools}

    def check(offered: OfferedPlugin) -> Toolset:
        if not isinstance(offered.value, Toolset):
            raise ValueError(f"{type(offered.value).__name__} is no Toolset")
        for tool in offered.value:
            if tool.name in taken:
                raise ValueError(f"there is another tool {tool.name}")
            if offered.package != OWN_PACKAGE:
                _check_tool(tool)
        taken.update(tool.name for tool in offered.value)
        return offered.value

    return load_plugins(ENTRY_POINT_GROUP, check)


def _check_tool(tool: AnyTool) -> None:
    """Raise ValueError if ``tool`` of another package cannot be offered."""
    if not _TOOL_NAME.fullmatch(tool.name):
        raise ValueError(f"the name of the tool {tool.name!r} is invalid")
    if unknown := {tool.toolset, tool.zone} - {*get_args(Zone)}:
        raise ValueError(f"the tool {tool.name} is in no zone: {', '.join(map(repr, unknown))}")
    for language in LANGUAGES:
        texts = catalogue(language, tool.texts)
        needed: list[tuple[str, ...]] = [(f"{tool.text_key}.{part}",) for part in ("title", "description")]
        needed += [(f"{tool.text_key}.{name}", f"argument.{name}") for name in tool.params.model_fields]
        for keys in needed:
            if not any(key in texts for key in keys):
                raise ValueError(f"the text {keys[0]} is missing ({language})")


@cache
def all_tools() -> Mapping[str, AnyTool]:
    """Return all tools by name, except tools of open buffers. The core's tools come first, then the tools of
    installed packages."""
    toolsets = (*_CORE, *plugin_tools().found.values())
    return {tool.name: tool for tools in toolsets for tool in tools}


@cache
def tools_for(*, human: bool) -> Mapping[str, AnyTool]:
    """Return the tools of `all_tools` that people (``human``) or agents may use."""
    return {name: tool for name, tool in all_tools().items() if tool.is_for(human=human)}


def all_toolsets() -> list[ToolsetName]:
    """Return the names of all toolsets, in the order of their tools."""
    return list(dict.fromkeys(tool.toolset for tool in all_tools().values()))


def prompt_parts(
    tools: Iterable[AnyTool], part: Literal["place", "section"], language: Language
) -> list[str]:
    """Return the texts about the toolsets of ``tools`` for a ``part`` of a system prompt, in order.

    The catalogue of each toolset has its texts under ``prompt.PART.TOOLSET``. A text may be missing.
    """
    wanted = dict.fromkeys((f"prompt.{part}.{tool.toolset}", tool.texts) for tool in tools)
    catalogues = ((key, catalogue(language, package)) for key, package in wanted)
    return [texts(key) for key, texts in catalogues if key in texts]


class ToolRegistry:
    """The tools of one caller. Usable from any thread."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._is_human = context.actor.startswith(HUMAN_PREFIX)

    def available(self, toolsets: Iterable[str] | None = None) -> list[AnyTool]:
        """Return the caller's current tools in a fixed order.

        - Tools for tasks are left out if the caller works on no task.
        - Tools of its open buffers are included if the buffers' states allow them.
        - A person with read-only access gets only tools that change nothing.

        ``toolsets``: include only these sets of tools, default all. Raise `JournalError`.
        """
        wanted = None if toolsets is None else set(toolsets)
        found = [
            tool
            for tool in tools_for(human=self._is_human).values()
            if wanted is None or tool.toolset in wanted
        ]
        if self._is_human:
            rule = self._find_bound()
            return [tool for tool in found if tool.annotations.reads_only] if rule else found
        zones, actor = self._context.zones, self._context.actor
        of_buffers: list[AnyTool] = []
        if wanted is None or "buffer" in wanted:
            open_tools = zones.buffers.tools(self._context.call, self._context.language)
            of_buffers = [buffers.buffer_tool(actor, name, kind) for name, kind in open_tools]
        has_task = bool(zones.task_files.task_of(self._context.call))
        found = [tool for tool in found if has_task or not tool.needs_task]
        return [*(tool for tool in found if of_buffers or tool.name != CLOSE), *of_buffers]

    def available_names(self, toolsets: Iterable[str] | None = None) -> list[str]:
        """Return the names of the tools that `available` returns. Tools with the same names have the same
        definitions. Raise `JournalError`."""
        return [tool.name for tool in self.available(toolsets)]

    def find(self, name: str, *, repeated: bool = False) -> AnyTool | None:
        """Return the tool ``name``, even if the caller may not use it; None if there is no such tool.

        A tool of an open buffer is found even if the buffer's state does not offer it. ``repeated``: the call
        may have run before, so the buffer may already be closed.
        """
        tool = all_tools().get(name)
        if tool is None and not self._is_human and (of_buffer := parse_tool_name(name)):
            buffer, kind = of_buffer
            if repeated or self._context.zones.buffers.is_open(self._context.actor, buffer):
                return buffers.buffer_tool(self._context.actor, buffer, kind)
        return tool

    def require(self, name: str, *, repeated: bool = False) -> AnyTool:
        """Return the tool ``name`` if the caller may use it. ``repeated``: see `find`.

        Raise `UnknownTool` or `BufferNotFound` if there is no such tool. Raise `PermissionDenied` if it is
        for agents only, and `PeopleOnly` if it is for people only. Raise `MayNotDecide` if a person has
        read-only access.
        """
        tool = tools_for(human=self._is_human).get(name)
        if tool is None:
            tool = self._require_other(name, repeated=repeated)
        if self._is_human and not tool.annotations.reads_only:
            rule = self._find_bound()
            if rule:
                raise MayNotDecide(person=self._context.actor, tool=name, rule=rule)
        return tool

    def _require_other(self, name: str, *, repeated: bool) -> AnyTool:
        """Return the tool ``name`` of an open buffer. Otherwise raise the errors of `require`."""
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
        return tool

    def _find_bound(self) -> str:
        """Return the rule that gives the calling person read-only access; empty if there is none."""
        if self._context.reads_only:
            return "token_reads"
        person = self._context.zones.people.current().find(self._context.actor)
        return "decision_role" if person is not None and person.role == "viewer" else ""
