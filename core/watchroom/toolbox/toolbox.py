"""The toolbox of one actor: definitions out, calls in, never an exception."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from pydantic import ValidationError

from watchroom import validation
from watchroom.call_context import CallTrace, call_scope, trace_scope
from watchroom.errors import InvalidArguments, VersionConflict, WatchroomError
from watchroom.model import Json, Row, Zone
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.trace_context import parse_traceparent
from watchroom.texts import Catalogue, Language
from watchroom.toolbox.approval import approval_checksum, approval_scope
from watchroom.toolbox.call_policy import CallPolicy
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import ParamsModel, ResultModel
from watchroom.toolbox.refusals import Refusals, ToolResult, disk_error
from watchroom.toolbox.schemas import Definition, Format, build_definition
from watchroom.toolbox.tool import AnyTool
from watchroom.toolbox.tool_registry import ToolRegistry, all_tools, prompt_parts
from watchroom.zones import Store, Zones

__all__ = ["ToolResult", "Toolbox"]

_log = logging.getLogger("watchroom")
_MAX_PROBLEMS: Final = 8
_TURN_SECONDS: Final = 0.05
"""Between two looks at whether a call that was made twice is over."""


class Toolbox:
    """The tools of one ``actor``, called under its own identity: no tool takes one as a parameter.

    ``store`` and ``zones`` are those of the workspace, which makes toolboxes (`Workspace.tools`);
    ``language`` is the one that the actor is answered in. With ``reads_only`` it has only tools that change
    nothing. May be used from any thread.

        toolbox = workspace.tools("alice")
        toolbox.dispatch_tool_call("collab_read", {"filepath": "plan.md"})
    """

    def __init__(
        self, actor: str, store: Store, zones: Zones, language: Language, *, reads_only: bool = False
    ) -> None:
        self.actor = actor
        self.language: Language = language
        self._store = store
        self._context = ToolContext(actor, zones, language, lambda: all_tools().keys(), reads_only=reads_only)
        self.registry = ToolRegistry(self._context)
        self._policy = CallPolicy(self._context)
        self._refusals = Refusals(self._context, self.registry, store)

    @property
    def texts(self) -> Catalogue:
        """The core's texts in the actor's language."""
        return self._context.texts

    def get_tool_definitions(
        self,
        format: Format = "plain",  # noqa: A002
        *,
        toolsets: Iterable[str] | None = None,
    ) -> list[Definition]:
        """Return the definitions of the tools that this actor has now, or those of ``toolsets``, in a fixed
        order, in the dialect ``format`` (FILES-5.1). Raises `JournalError`."""
        return [build_definition(tool, format, self.language) for tool in self.registry.available(toolsets)]

    def system_prompt(self, *, toolsets: Iterable[str] | None = None) -> str:
        """Return what to tell a model about the workspace and how to choose among its tools, or those of
        ``toolsets`` (FILES-5.5), in the actor's language. Raises `JournalError`."""
        texts, tools = self.texts, self.registry.available(toolsets)
        agents = self._context.zones.registry.current().agents.values()
        team = "\n".join(
            f"- {agent.id}" + (f" — {agent.role}" if agent.role else "")
            for agent in agents
            if agent.id != self.actor
        )
        titles = "\n".join(f"- {tool.name}: {tool.title(self.language)}" for tool in tools)
        sections = prompt_parts(tools, "section", self.language)
        if places := prompt_parts(tools, "place", self.language):
            numbered = "\n".join(f"{number}. {place}" for number, place in enumerate(places, 1))
            sections.insert(0, texts("prompt.places", places=numbered))
        return texts(
            "prompt.system", agent=self.actor, team=team or "-", choices="\n\n".join(sections), tools=titles
        )

    def show_buffers(self) -> str:
        """Return what to show a model of this agent's open buffers before its turn, as Markdown; empty if
        none is open. Both passes of EDIT-7.2 are run. Raises `JournalError`."""
        frames = self._context.zones.buffers.frames(self.actor, language=self.language)
        if not frames:
            return ""
        return "\n".join([self.texts("editing.view"), *(frame.shown.detail for frame in frames)])

    def source_of_buffer(self, name: str) -> Zone | None:
        """Return the zone of the source of this agent's open buffer ``name``; None if none of that name is
        open."""
        found = self._context.zones.buffers.source_of(self.actor, name)
        return found[0] if found else None

    def decide_policy(
        self, tool_name: str, arguments: Mapping[str, Json], now: int | None = None
    ) -> PolicyDecision:
        """Return what the workspace's policy says of a call of ``tool_name`` with ``arguments`` by this actor
        at ``now`` (nanoseconds since the epoch; default: at this moment). `dispatch_tool_call` asks again.
        Raises `JournalError`."""
        return self._policy.decide(tool_name, arguments, now)

    def approval_checksum(self, tool_name: str, arguments: Mapping[str, Json]) -> str:
        """Return a checksum of a call of ``tool_name`` with ``arguments`` and of what it would write as
        things stand: it stays the same as long as a person who looks at the call sees the same. Raises
        `JournalError`."""
        return approval_checksum(self._store.journal, self.actor, tool_name, arguments)

    def begin_trace(self, traceparent: object) -> CallTrace | None:
        """Return the trace of a call that comes now, whose caller says that it belongs to ``traceparent``
        (W3C Trace Context); None where that names no span. Raises `JournalError`."""
        if not isinstance(traceparent, str) or parse_traceparent(traceparent) is None:
            return None
        return CallTrace(traceparent, self._store.journal.now())

    def refuse(
        self,
        tool_name: str,
        arguments: Mapping[str, Json],
        error: WatchroomError,
        *,
        trace: CallTrace | None = None,
    ) -> ToolResult:
        """Return the result of a call of ``tool_name`` with ``arguments`` that is not made because of
        ``error``. A refused call is a row as well, which belongs to ``trace``."""
        with trace_scope(trace):
            return self._refusals.refuse(tool_name, arguments, error)

    def dispatch_tool_call(
        self,
        tool_name: str,
        arguments: Mapping[str, Json] | str,
        *,
        call: str = "",
        again: bool = False,
        approved: str = "",
        trace: CallTrace | None = None,
    ) -> ToolResult:
        """Run one call of ``tool_name`` (FILES-5.2); ``arguments`` is an object or its JSON text.

        Returns a dictionary that can be sent as JSON. It has ``success``; a failure also ``error``,
        ``message`` and ``suggestion``; a conflict what is needed to recover. Nothing that a caller sends
        raises. ``call`` is a key of the caller's, which the rows of this call carry. ``again`` says that the
        same call may have been run before, by a process that was ended: if it was, its result is returned
        once more and nothing is done. ``approved`` is the `approval_checksum` of the call as a person
        approved of it: where it would write something else by now it is not made, and the error is
        ``approval_outdated``. What the workspace's policy denies is refused, and so is what it wants a person
        to approve of where nobody has (``policy_denied``, ``policy_approval_required``). ``trace`` is the
        one that the rows of this call belong to (`begin_trace`).
        """
        # What comes from outside keeps to no type.
        name = validation.escape_unstorable(tool_name, 1000) if isinstance(tool_name, str) else "?"  # type: ignore[redundant-expr]
        # Of an approval only: whoever repeats another call that still goes on is told so at once.
        turn = self._wait_for_turn(call) if call and approved else nullcontext()
        with call_scope(call), trace_scope(trace):
            try:
                with turn:
                    return self._dispatch(name, arguments, call if again else "", approved)
            except WatchroomError as error:
                return self._refusals.refuse(name, {}, error)
            except Exception:  # noqa: BLE001  # a defect of ours ends one call, not its caller; the log names it
                _log.exception("%s called %s", self.actor, validation.escape_unstorable(name, 100))
                return self._refusals.refuse(name, {}, WatchroomError())

    @contextmanager
    def _wait_for_turn(self, call: str) -> Iterator[None]:
        """Have the approved ``call`` to oneself, among all processes: its approval is used once."""
        while True:
            with self._store.journal.claim(f"call/{self.actor}/{call}") as is_ours:
                if is_ours:
                    yield
                    return
            time.sleep(_TURN_SECONDS)

    def _dispatch(
        self, tool_name: str, arguments: Mapping[str, Json] | str, repeated: str, approved: str
    ) -> ToolResult:
        # Until its arguments are read, the text of a call is all that there is to keep.
        parsed: Mapping[str, Json] = {"content": arguments} if isinstance(arguments, str) else {}
        try:
            tool = self.registry.require(tool_name, repeated=bool(repeated))
            parsed = self._parse(tool, arguments)
            params = self._validate(tool, parsed)
            earlier = self._earlier_row(tool, repeated) if repeated else None
            if earlier:
                return self._replay(tool, params, earlier).to_dict()
            seen = tool.seen_key(self._context, params) if tool.seen_key else None
            with self._context.zones.members.hold(self.actor, seen):
                self._policy.check(tool.name, parsed, is_approved=bool(approved))
                with self._approval_scope(tool.name, parsed, approved, repeated):
                    result: ResultModel = tool.run(self._context, params)
            return result.to_dict()
        except WatchroomError as error:
            return self._refusals.refuse(tool_name, parsed, error)
        except OSError as error:
            return self._refusals.refuse(tool_name, parsed, disk_error(error))

    def _approval_scope(
        self, tool: str, parsed: Mapping[str, Json], approved: str, repeated: str
    ) -> AbstractContextManager[None]:
        if not approved:
            return nullcontext()
        return approval_scope(self._store.journal, self.actor, tool, parsed, approved, repeated)

    def _earlier_row(self, tool: AnyTool, call: str) -> Row | None:
        """The row that an earlier run of the call made, None where it made none."""
        if tool.replay_result is None:
            return None
        for row in self._store.journal.rows_of_call(self.actor, call):
            if (row.zone, row.tool) == (tool.zone, tool.name) and row.outcome in ("ok", "conflict"):
                return row
        return None

    def _replay(self, tool: AnyTool, params: ParamsModel, row: Row) -> ResultModel:
        journal = self._store.journal
        if row.outcome == "conflict":
            current = row.detail.get("current")
            head = journal.version(row.zone, row.path, current) if isinstance(current, int) else None
            text = journal.content(head.seq) if head else None
            raise VersionConflict(row, head, text, journal.content(row.seq))
        if tool.replay_result is None:
            raise TypeError(tool.name)
        result: ResultModel = tool.replay_result(self._context, params, row)
        return result

    def _parse(self, tool: AnyTool, arguments: Mapping[str, Json] | str) -> Mapping[str, Json]:
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as error:
                problem = self.texts(
                    "arguments.not_json", problem=validation.escape_unstorable(str(error), 200)
                )
                raise InvalidArguments(tool=tool.name, problems=problem) from error
        if not isinstance(arguments, Mapping):
            raise InvalidArguments(tool=tool.name, problems=self.texts("arguments.not_an_object"))
        return arguments

    def _validate(self, tool: AnyTool, parsed: Mapping[str, Json]) -> ParamsModel:
        try:
            params: ParamsModel = tool.params.model_validate(parsed)
        except ValidationError as error:
            problems = []
            for problem in error.errors(include_url=False, include_input=False)[:_MAX_PROBLEMS]:
                name = validation.escape_unstorable(".".join(str(step) for step in problem["loc"]), 100)
                kind, text = problem["type"], problem["msg"]
                if f"arguments.{kind}" in self.texts:
                    text = self.texts(f"arguments.{kind}", **problem.get("ctx", {}))
                problems.append(f"{name}: {text}")
            raise InvalidArguments(tool=tool.name, problems="; ".join(problems)) from error
        return params
