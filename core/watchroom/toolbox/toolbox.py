"""The toolbox of one actor: definitions out, calls in, never an exception."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Final

from pydantic import ValidationError

from watchroom import validation
from watchroom.call_context import Guard, call_scope, guarded_by
from watchroom.editing import parse_tool_name
from watchroom.errors import (
    Conflict,
    DiskFailed,
    InvalidArguments,
    JournalError,
    NotText,
    PathBlocked,
    PeopleOnly,
    PermissionDenied,
    RequestClosed,
    RequestExpired,
    TooLarge,
    UnknownTool,
    WatchroomError,
)
from watchroom.model import HUMAN_PREFIX, MAX_TEXT_BYTES, Json, Note, Row, Zone
from watchroom.sandbox.errors import CommandFailed, CommandInterrupted, CommandStopped, CommandTimeout
from watchroom.texts import Catalogue, Language
from watchroom.toolbox.approval import approval_checksum, approval_guard
from watchroom.toolbox.arguments import Arguments
from watchroom.toolbox.buffers import buffer_tool
from watchroom.toolbox.caller import Caller, Zones
from watchroom.toolbox.missed import missed_changes
from watchroom.toolbox.offered import prompt_parts, tools
from watchroom.toolbox.results import ConflictFailure, Failure, Result
from watchroom.toolbox.schemas import Definition, Format, definition
from watchroom.toolbox.tool import Tool
from watchroom.zones import Store
from watchroom.zones.buffers.errors import BufferNotFound
from watchroom.zones.buffers.record import CLOSE

ToolResult = dict[str, Json]

_log = logging.getLogger("watchroom")
_OF_TASKS: Final = frozenset({"file", "agent"})
"""Toolsets that only agents with a task have use for."""
_ARGUMENT_PROBLEMS = frozenset(
    {
        "missing",
        "extra_forbidden",
        "string_type",
        "string_unicode",
        "string_too_long",
        "int_type",
        "float_type",
        "int_parsing",
        "list_type",
        "dict_type",
        "model_type",
        "literal_error",
        "too_short",
    }
)


class Toolbox:
    """What ``actor`` may call, under its own identity: no tool takes one. May be used from any thread."""

    def __init__(
        self,
        actor: str,
        store: Store,
        zones: Zones,
        language: Language,
    ) -> None:
        self.actor = actor
        self.language: Language = language
        self._store = store
        self._caller = Caller(actor, zones, language)
        self._is_human = actor.startswith(HUMAN_PREFIX)

    def get_tool_definitions(
        self,
        format: Format = "plain",  # noqa: A002
        *,
        toolsets: Iterable[str] | None = None,
    ) -> list[Definition]:
        """The tools that this actor has, in a fixed order, in the given dialect (spec 1 FR-5.1)."""
        return [definition(tool, format, self.language) for tool in self.offered(toolsets)]

    def offered(self, toolsets: Iterable[str] | None = None) -> list[Tool]:
        """The tools that this actor has now, or those of some toolsets, in a fixed order: without those of a
        task where it has none, and with those that its open buffers have as they stand. Each costs a model
        tokens."""
        wanted = None if toolsets is None else set(toolsets)
        found = [tool for tool in self._tools() if wanted is None or tool.toolset in wanted]
        if self._is_human:
            return found
        has_task = bool(self._caller.files.task_of(self.actor))
        takes_buffers = wanted is None or "buffer" in wanted
        of_buffers = self._of_open_buffers() if takes_buffers else []
        found = [tool for tool in found if has_task or tool.toolset not in _OF_TASKS]
        return [*(tool for tool in found if of_buffers or tool.name != CLOSE), *of_buffers]

    @property
    def texts(self) -> Catalogue:
        """What is said to this actor, in its language."""
        return self._caller.texts

    def refuse(self, tool_name: str, arguments: Mapping[str, Json], error: WatchroomError) -> ToolResult:
        """The result of a call that is not made because of ``error``; a refused call is a row as well."""
        return self._refusal(tool_name, arguments, error)

    def show_buffers(self) -> str:
        """What to show a model of this agent's open buffers before its turn, as Markdown; empty if none is
        open. Both passes of spec 4 §7.2 are run."""
        frames = self._caller.buffers.frames(self.actor, language=self.language)
        if not frames:
            return ""
        return "\n".join([self._caller.texts("editing.view"), *(frame.shown.detail for frame in frames)])

    def has_buffer(self, name: str) -> bool:
        """Whether this agent has an open buffer of that name."""
        return self._caller.buffers.is_open(self.actor, name)

    def source_of_buffer(self, name: str) -> Zone | None:
        """Where the source of an open buffer of this agent is; None if it has none of that name."""
        return self._caller.buffers.source_of(self.actor, name)

    def system_prompt(self, *, toolsets: Iterable[str] | None = None) -> str:
        """What to tell a model about the file system and how to choose within it, as far as its tools go, or
        those of some ``toolsets`` (spec 1 FR-5.5)."""
        texts, offered = self._caller.texts, self.offered(toolsets)
        agents = self._store.registry.current().agents.values()
        team = "\n".join(
            f"- {agent.id}" + (f" — {agent.role}" if agent.role else "")
            for agent in agents
            if agent.id != self.actor
        )
        titles = "\n".join(f"- {tool.name}: {tool.title(self.language)}" for tool in offered)
        choices = prompt_parts(offered, "section", self.language)
        if numbered := list(enumerate(prompt_parts(offered, "place", self.language), 1)):
            places = "\n".join(f"{number}. {place}" for number, place in numbered)
            choices.insert(0, texts("prompt.places", places=places))
        return texts(
            "prompt.system", agent=self.actor, team=team or "-", choices="\n\n".join(choices), tools=titles
        )

    def dispatch_tool_call(
        self,
        tool_name: str,
        arguments: Mapping[str, Json] | str,
        *,
        call: str = "",
        again: bool = False,
        approved: str = "",
    ) -> ToolResult:
        """Run one call (spec 1 FR-5.2); ``arguments`` is an object or its JSON text.

        The result has ``success``; a failure also ``error``, ``message`` and ``suggestion``; a conflict
        what is needed to recover. Nothing that a caller sends raises. ``call`` is a key of the caller's,
        which the rows of this call carry. ``again`` says that the same call may have been run before, by a
        process that was ended: if it was, its result is given once more and nothing is done. ``approved`` is
        the `approval_checksum` of the call as a person approved of it: where it would write something else by
        now it is not made, and the error is ``approval_outdated``.
        """
        # What comes from outside keeps to no type.
        name = validation.escape_unstorable(tool_name, 1000) if isinstance(tool_name, str) else "?"  # type: ignore[redundant-expr]
        # Of an approval only: whoever repeats another call that still goes on is told so at once.
        turn = self._store.calls.hold(f"{self.actor} {call}") if call and approved else nullcontext()
        with turn, call_scope(call):
            try:
                return self._dispatch(name, arguments, call if again else "", approved)
            except Exception:  # noqa: BLE001  # a defect of ours ends one call, not its caller; the log names it
                _log.exception("%s called %s", self.actor, validation.escape_unstorable(name, 100))
                return self._refusal(name, {}, WatchroomError())

    def approval_checksum(self, tool_name: str, arguments: Mapping[str, Json]) -> str:
        """A checksum of a call and of what it would write as things stand: the same as long as a person who
        looks at the call sees the same. Raises `JournalError`."""
        return approval_checksum(self._store.journal, self.actor, tool_name, arguments)

    def _dispatch(
        self, tool_name: str, arguments: Mapping[str, Json] | str, repeated: str, approved: str
    ) -> ToolResult:
        # Until its arguments are read, the text of a call is all that there is to keep.
        given: Mapping[str, Json] = {"content": arguments} if isinstance(arguments, str) else {}
        try:
            tool = self._tool(tool_name, repeated)
            given = self._object(tool, arguments)
            validated = self._validated(tool, given)
            made = self._made_before(tool, repeated) if repeated else None
            if made:
                result = self._retold(tool, validated, made)
            else:
                self._caller.must_not_have_ended()
                with guarded_by(self._guard(tool.name, given, approved, repeated)):
                    result = tool.run(self._caller, validated)
        except Conflict as conflict:
            return self._conflict(conflict)
        except (
            CommandFailed,
            CommandInterrupted,
            CommandStopped,
            CommandTimeout,
            PathBlocked,
            RequestClosed,
            RequestExpired,
        ) as error:
            # What they tell of has a row already.
            return self._failure(error)
        except WatchroomError as error:
            return self._refusal(tool_name, given, error)
        except OSError as error:
            reason = validation.escape_unstorable(error.strerror or str(error))
            return self._refusal(tool_name, given, DiskFailed(reason=reason))
        return result.told()

    def _guard(self, tool: str, given: Mapping[str, Json], approved: str, repeated: str) -> Guard | None:
        """What looks at the writes of an approved call. Raises `ApprovalOutdated`."""
        if not approved:
            return None
        return approval_guard(self._store.journal, self.actor, tool, given, approved, repeated)

    def _made_before(self, tool: Tool, call: str) -> Row | None:
        """The row that an earlier run of the call made, None where it made none."""
        if tool.retell is None:
            return None
        for row in self._store.journal.rows_of_call(self.actor, call):
            if (row.zone, row.tool) == (tool.zone, tool.name) and row.outcome in ("ok", "conflict"):
                return row
        return None

    def _retold(self, tool: Tool, args: Arguments, made: Row) -> Result:
        journal = self._store.journal
        if made.outcome == "conflict":
            current = made.detail.get("current")
            head = journal.version(made.zone, made.path, current) if isinstance(current, int) else None
            text = journal.content(head.seq) if head else None
            raise Conflict(made, head, text, journal.content(made.seq))
        if tool.retell is None:
            raise TypeError(tool.name)
        return tool.retell(self._caller, args, made)

    def _refusal(self, tool_name: str, given: Mapping[str, Json], error: WatchroomError) -> ToolResult:
        try:
            self._note_refusal(tool_name, given, error)
        except JournalError as worse:
            return self._failure(worse)
        except OSError as worse:
            return self._failure(
                DiskFailed(reason=validation.escape_unstorable(worse.strerror or str(worse)))
            )
        return self._failure(error)

    def _tools(self) -> list[Tool]:
        return [tool for tool in tools().values() if self._has(tool)]

    def _of_open_buffers(self) -> list[Tool]:
        found = self._caller.buffers.tools(self.actor, self.language)
        return [buffer_tool(self.actor, name, tool) for name, tool in found]

    def _found(self, name: str, repeated: str = "") -> Tool | None:
        """A tool by its name: of an open buffer each, also those that its state does not offer. A call that
        is repeated may have been made before the buffer was closed."""
        tool = tools().get(name)
        if tool is None and not self._is_human and (of_buffer := parse_tool_name(str(name))):
            buffer, which = of_buffer
            if repeated or self.has_buffer(buffer):
                return buffer_tool(self.actor, buffer, which)
        return tool

    def _has(self, tool: Tool) -> bool:
        return tool.for_humans if self._is_human else tool.for_agents

    def _tool(self, name: str, repeated: str) -> Tool:
        tool = self._found(name, repeated)
        if tool is None and not self._is_human and (of_buffer := parse_tool_name(str(name))):
            known = ", ".join(sorted(self._caller.buffers.open_names(self.actor))) or "-"
            raise BufferNotFound(buffer=validation.escape_unstorable(of_buffer[0], 100), known=known)
        if tool is None:
            known = ", ".join(each.name for each in self.offered())
            raise UnknownTool(tool=validation.escape_unstorable(str(name), 100), known=known)
        if not self._has(tool):
            raise PermissionDenied(owner="agents") if self._is_human else PeopleOnly(tool=name)
        return tool

    def _object(self, tool: Tool, arguments: Mapping[str, Json] | str) -> Mapping[str, Json]:
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError) as error:
                problem = self._caller.texts(
                    "arguments.not_json", problem=validation.escape_unstorable(str(error), 200)
                )
                raise InvalidArguments(tool=tool.name, problems=problem) from error
        if not isinstance(arguments, Mapping):
            raise InvalidArguments(tool=tool.name, problems=self._caller.texts("arguments.not_an_object"))
        return arguments

    def _validated(self, tool: Tool, given: Mapping[str, Json]) -> Arguments:
        try:
            return tool.takes.model_validate(given)
        except ValidationError as error:
            texts = self._caller.texts
            problems = []
            for problem in error.errors(include_url=False, include_input=False)[:8]:
                name = validation.escape_unstorable(".".join(str(step) for step in problem["loc"]), 100)
                kind = problem["type"]
                is_known = kind in _ARGUMENT_PROBLEMS
                said = texts(f"arguments.{kind}", **problem.get("ctx", {})) if is_known else problem["msg"]
                problems.append(f"{name}: {said}")
            raise InvalidArguments(tool=tool.name, problems="; ".join(problems)) from error

    def _failure(self, error: WatchroomError) -> ToolResult:
        failure = Failure(
            error=error.code, message=error.message(self.language), suggestion=error.suggestion(self.language)
        )
        return {**failure.model_dump(), **error.more(self.language)}

    def _conflict(self, conflict: Conflict) -> ToolResult:
        current = conflict.current
        return ConflictFailure(
            error=conflict.code,
            message=conflict.message(self.language),
            suggestion=conflict.suggestion(self.language),
            conflict_id=conflict.row.seq,
            base_version=conflict.row.base or 0,
            current_version=(current.version or 0) if current else 0,
            current_content=conflict.current_content,
            current_author=current.actor if current else None,
            current_message=current.message if current else None,
            your_content=conflict.your_content,
            missed_changes=missed_changes(self._store.journal, conflict, self._caller.texts),
        ).model_dump()

    def _note_refusal(self, tool_name: str, given: Mapping[str, Json], error: WatchroomError) -> None:
        """A refused call is a row too, with what it wanted to write."""
        tool = self._found(tool_name)
        path = (tool.at if tool else "") or "/".join(
            str(given[name]) for name in (tool.path if tool else ()) if isinstance(given.get(name), str)
        )
        content = given.get("content", given.get("instructions"))
        if isinstance(payload := given.get("payload"), Mapping):
            content = payload.get("text")
        if tool is not None and tool.zone == "realtime" and not tool.hints.reads_only:
            content = _whole(given)
        size = None
        if isinstance(content, str):
            size = len(content)
            try:
                validation.encode_text(content)
            except (NotText, TooLarge):
                content = None
        message = given.get("message")
        self._store.committer.commit(
            Note(
                actor=self.actor,
                tool=tool.name if tool else validation.escape_unstorable(str(tool_name), 100),
                zone=tool.zone if tool else "workspace",
                path=validation.escape_unstorable(path, validation.MAX_PATH_BYTES),
                outcome=error.outcome,
                error=error.code,
                message=validation.escape_unstorable(message, 2000) if isinstance(message, str) else "",
                content=content if isinstance(content, str) else None,
                size=size,
            )
        )


def _whole(given: Mapping[str, Json]) -> str | None:
    """All arguments as JSON: what they wanted to write may stand anywhere among them."""
    try:
        return validation.escape_unstorable(json.dumps(given, ensure_ascii=False), MAX_TEXT_BYTES // 4)
    except (ValueError, TypeError, RecursionError):
        return None
