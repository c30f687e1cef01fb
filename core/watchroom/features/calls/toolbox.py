"""The toolbox of one actor: it describes the actor's tools and carries out calls.

A call never raises. A refused call is a row in the journal, made from the same error as its result.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import ValidationError

from watchroom import validation
from watchroom.errors import (
    CommandError,
    DeniedError,
    DiskFailed,
    FileUnrecorded,
    InvalidArguments,
    JournalBusy,
    JournalError,
    NotText,
    OutcomeUnknown,
    PolicyApprovalRequired,
    PolicyDenied,
    TooLarge,
    VersionConflict,
    WatchroomError,
    WorkspaceLocked,
    WorkUnrecorded,
)
from watchroom.features.calls.call_policy import CallPolicy
from watchroom.features.calls.proposals import approval_checksum, approval_conditions
from watchroom.features.calls.tool_registry import ToolRegistry, all_tools, prompt_parts
from watchroom.features.config.agent_versions import PathKey
from watchroom.features.config.store import Store
from watchroom.features.conflicts.change_notices import result_fields
from watchroom.features.conflicts.reads import diff_missed_changes
from watchroom.features.documents.replica_view import ReplicaView
from watchroom.features.policy.rules import PolicyDecision
from watchroom.features.requests.rows import POLICY_RULE
from watchroom.kernel.call_context import CallContext, CallTrace
from watchroom.kernel.journal import NoteKey
from watchroom.kernel.rules.details import get_list
from watchroom.kernel.rules.trace_context import parse_traceparent
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import ConflictFailure, Failure, ParamsModel, ResultModel
from watchroom.kernel.tools.schemas import Definition, Format, build_definition
from watchroom.kernel.tools.tool import AnyTool
from watchroom.kernel.zones import DOCUMENTS, ZONES
from watchroom.model import MAX_TEXT_BYTES, NOTICES, WRITE_FILE, Json, Note, Row, Zone
from watchroom.texts import Catalogue, Language

if TYPE_CHECKING:
    from watchroom.features.services import Services

_log = logging.getLogger("watchroom")
ToolResult: TypeAlias = dict[str, Json]
_MAX_PROBLEMS: Final = 8
"""Maximum number of problems in the arguments of a call that are reported to its caller."""
_TURN_SECONDS: Final = 0.05
"""Seconds between attempts to claim an approved call that another thread or process is running."""


class Toolbox:
    """The tools of one actor. Usable from any thread.

    Tools act as the toolbox's actor and take no identity as an argument. `Workspace.tools` makes toolboxes.

    - ``actor``: an agent's id, or ``human:NAME``.
    - ``store``, ``zones``: the journal and the services of the workspace.
    - ``language``: the language of definitions, results and errors.
    - ``reads_only``: True offers only tools that change nothing.

    Example::

        toolbox = workspace.tools("alice")
        toolbox.dispatch_tool_call("collab_read", {"filepath": "plan.md"})
    """

    def __init__(
        self, actor: str, store: Store, zones: Services, language: Language, *, reads_only: bool = False
    ) -> None:
        self.actor = actor
        self.language: Language = language
        self._store = store
        self._context = ToolContext(
            CallContext(actor),
            zones,
            language,
            lambda: all_tools().keys(),
            ReplicaView(actor),
            reads_only=reads_only,
        )
        self.registry = ToolRegistry(self._context)
        self._policy = CallPolicy(self._context)

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
        """Return the definitions of the actor's current tools, in a fixed order (FILES-5.1).

        - ``format``: the dialect of the definitions.
        - ``toolsets``: include only these sets of tools, default all.

        Raise `JournalError`.
        """
        return [build_definition(tool, format, self.language) for tool in self.registry.available(toolsets)]

    def system_prompt(self, *, toolsets: Iterable[str] | None = None) -> str:
        """Return a system prompt about the workspace and how to choose among its tools (FILES-5.5).

        ``toolsets``: describe only these sets of tools, default all. Raise `JournalError`.
        """
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
        """Return the agent's open buffers as Markdown for its model; empty if none is open.

        Both passes of EDIT-7.2 run first. Raise `JournalError`.
        """
        frames = self._context.zones.buffers.frames(self._context.call, language=self.language)
        if not frames:
            return ""
        return "\n".join([self.texts("editing.view"), *(frame.shown.detail for frame in frames)])

    def source_of_buffer(self, name: str) -> Zone | None:
        """Return the zone of the source of the agent's buffer ``name``; None if that buffer is not open."""
        found = self._context.zones.buffers.source_of(self.actor, name)
        return found[0] if found else None

    def decide_policy(
        self, tool_name: str, arguments: Mapping[str, Json], now: int | None = None
    ) -> PolicyDecision:
        """Return the decision of the workspace's policy on a call of ``tool_name`` with ``arguments``.

        ``now``: nanoseconds since the epoch, default the current time. `dispatch_tool_call` decides again.
        Raise `JournalError`.
        """
        return self._policy.decide(tool_name, arguments, now)

    def is_permitted(self, tool_name: str, arguments: Mapping[str, Json]) -> bool:
        """Return whether the actor can call ``tool_name`` with ``arguments`` without an approval.

        The call is not made. The policy and the tool's own permission are checked, not whether a file exists.
        Raise `JournalError`.
        """
        try:
            tool = self.registry.require(tool_name)
            params = self._validate(tool, arguments)
        except DeniedError:
            return False
        if self.decide_policy(tool_name, arguments).verdict != "allow":
            return False
        return tool.has_permission is None or tool.has_permission(self._context, params)

    def approval_checksum(self, tool_name: str, arguments: Mapping[str, Json]) -> str:
        """Return the checksum that an approval of this call covers: the call and the text that it would write
        now.

        The checksum changes whenever a person would see another text for the call. Raise `JournalError`.
        """
        return approval_checksum(self._store.journal, self.actor, tool_name, arguments)

    def begin_trace(self, traceparent: object) -> CallTrace | None:
        """Return the trace of a call that begins now as part of ``traceparent`` (W3C Trace Context).

        None if ``traceparent`` is malformed. Raise `JournalError`.
        """
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
        """Record that a call of ``tool_name`` with ``arguments`` is refused with ``error``.

        The row belongs to ``trace``. Return the result of the call.
        """
        return self._refuse(CallContext(self.actor, tool_name, trace=trace), arguments, error)

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
        """Carry out one call and return its result, a dictionary that can be sent as JSON (FILES-5.2).

        - ``arguments``: an object, or its JSON text.
        - ``call``: a key that the caller chose for the call, recorded in the call's rows.
        - ``again``: whether the call may have run before, in a process that ended. If it ran, return its
          earlier result and do nothing.
        - ``approved``: the `approval_checksum` of the call as a person approved it. If the call would now
          write another text, it is refused as ``approval_outdated``.
        - ``trace``: the trace of the call's rows (`begin_trace`).

        The result has ``success``. A failure also has ``error``, ``message`` and ``suggestion``. A conflict
        also has the data for a recovery. An agent's result has ``notices`` if others changed files, boards or
        documents that it has seen. If the workspace's policy denies the call, it is refused as
        ``policy_denied``. If the policy requires an approval and ``approved`` is empty, the call is refused
        as ``policy_approval_required``. No error is raised for any arguments.
        """
        # Callers in other languages can pass other types than the annotations allow.
        name = validation.escape_unstorable(tool_name, 1000) if isinstance(tool_name, str) else "?"  # type: ignore[redundant-expr]
        # Only for an approved call: a repeated call without approval gets its answer at once.
        turn = self._claim_approved(call) if call and approved else nullcontext()
        made = CallContext(self.actor, name, call, trace=trace)
        try:
            with turn:
                return self._dispatch(made, arguments, again=again and bool(call), approved=approved)
        except WatchroomError as error:
            return self._refuse(made, {}, error)
        except Exception:  # noqa: BLE001  # a defect of ours ends one call, not its caller; the log names it
            _log.exception("%s called %s", self.actor, validation.escape_unstorable(name, 100))
            return self._refuse(made, {}, WatchroomError())

    @contextmanager
    def _claim_approved(self, call: str) -> Iterator[None]:
        """Claim the approved ``call`` among all processes, so that its approval is used once."""
        while True:
            with self._store.journal.claim(f"call/{self.actor}/{call}") as is_ours:
                if is_ours:
                    yield
                    return
            time.sleep(_TURN_SECONDS)

    def _dispatch(
        self, call: CallContext, arguments: Mapping[str, Json] | str, *, again: bool, approved: str
    ) -> ToolResult:
        # If the arguments of a call cannot be parsed, their text becomes the content of its row.
        parsed: Mapping[str, Json] = {"content": arguments} if isinstance(arguments, str) else {}
        try:
            tool = self.registry.require(call.tool, repeated=again)
            parsed = arguments if isinstance(arguments, Mapping) else self._parse(tool, arguments)
            params = self._validate(tool, parsed)
            if again and (earlier := self._find_earlier_row(tool, call.id)) is not None:
                given = get_list(earlier.detail, NOTICES)
                replayed = self._replay(tool, call, params, earlier).to_dict()
                return {**replayed, NOTICES: given} if given else replayed
            notices = self._context.zones.change_notices
            watched = notices.list_watched(self.actor)
            call = self._context.zones.members.identify(call, self._seen_key(tool, params), watched)
            call = notices.begin(call, _shown_path(tool, params))
            self._policy.check(call, parsed, is_approved=bool(approved))
            if approved:
                journal = self._store.journal
                conditions = approval_conditions(journal, call, parsed, approved, again=again)
                call = replace(call, conditions=conditions)
            found: ResultModel = tool.run(replace(self._context, call=call), params)
            result = found.to_dict()
        except WatchroomError as error:
            result = self._refuse(call, parsed, error)
        except OSError as error:
            result = self._refuse(call, parsed, _to_disk_failed(error))
        return {**result, **result_fields(call)}

    def _parse(self, tool: AnyTool, arguments: str) -> Mapping[str, Json]:
        # Callers in other languages can pass other types than the annotations allow.
        try:
            parsed = json.loads(arguments) if isinstance(arguments, str) else None  # type: ignore[redundant-expr]
        except (ValueError, RecursionError) as error:
            problem = self.texts("arguments.not_json", problem=validation.escape_unstorable(str(error), 200))
            raise InvalidArguments(tool=tool.name, problems=problem) from error
        if not isinstance(parsed, Mapping):
            raise InvalidArguments(tool=tool.name, problems=self.texts("arguments.not_an_object"))
        return parsed

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

    def _seen_key(self, tool: AnyTool, params: ParamsModel) -> NoteKey | None:
        """Return the key of the note with the version that the actor last read, if the call needs it."""
        if not tool.read_tool or getattr(params, "expected_version", None) is not None:
            return None
        path = str(getattr(params, tool.path_params[0]))
        if (tool.zone, path) in self._context.seen or validation.find_path_flaw(path) is not None:
            return None
        return tool.zone, path, self.actor, tool.read_tool

    def _find_earlier_row(self, tool: AnyTool, call: str) -> Row | None:
        """Return the row that an earlier run of ``call`` wrote; None if there is none."""
        if tool.replay_result is None:
            return None
        for row in self._store.journal.rows_of_call(self.actor, call):
            if (row.zone, row.tool) == (tool.zone, tool.name) and row.outcome in ("ok", "conflict"):
                return row
        return None

    def _replay(self, tool: AnyTool, call: CallContext, params: ParamsModel, row: Row) -> ResultModel:
        """Return the result of ``call`` from the ``row`` of an earlier run."""
        journal = self._store.journal
        if row.outcome == "conflict":
            current = row.detail.get("current")
            head = journal.version(row.zone, row.path, current) if isinstance(current, int) else None
            text = journal.content(head.seq) if head else None
            write_tool = ZONES[row.zone].write_tool
            raise VersionConflict(row, head, text, journal.content(row.seq), write_tool)
        if tool.replay_result is None:
            raise TypeError(tool.name)
        context = replace(self._context, call=call)
        result: ResultModel = tool.replay_result(context, params, row)
        return result

    def _refuse(self, call: CallContext, arguments: Mapping[str, Json], error: WatchroomError) -> ToolResult:
        """Record that ``call`` with ``arguments`` is refused with ``error``, and return its result.

        An error that already has a row (`WatchroomError.has_row`) gets no second row. If the row cannot be
        written, the result has the reason, unless the call changed something.
        """
        if isinstance(error, (JournalBusy, WorkspaceLocked)):
            # The caller has already waited for the journal. Write the row in the background.
            self._store.commits.note(self._refusal_row(call, arguments, error))
        elif not error.has_row:
            try:
                self._store.commits.commit(self._refusal_row(call, arguments, error))
            except JournalError as cause:
                error = error if _has_effects(error) else cause
            except OSError as cause:
                error = error if _has_effects(error) else _to_disk_failed(cause)
        language = self.language
        if isinstance(error, VersionConflict):
            return self._conflict_result(error)
        failure = Failure(
            error=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
        return {**failure.model_dump(), **error.more(language)}

    def _conflict_result(self, conflict: VersionConflict) -> ToolResult:
        language, current = self.language, conflict.current
        return ConflictFailure(
            error=conflict.code,
            message=conflict.message(language),
            suggestion=conflict.suggestion(language),
            conflict_id=conflict.row.seq,
            base_version=conflict.row.base or 0,
            current_version=(current.version or 0) if current else 0,
            current_content=conflict.current_content,
            current_author=current.actor if current else None,
            current_message=current.message if current else None,
            your_content=conflict.your_content,
            missed_changes=diff_missed_changes(self._store.journal, conflict, self.texts),
        ).model_dump()

    def _refusal_row(self, call: CallContext, arguments: Mapping[str, Json], error: WatchroomError) -> Note:
        tool = self.registry.find(call.tool)
        path = (tool.row_path if tool else "") or "/".join(
            str(arguments[name])
            for name in (tool.path_params if tool else ())
            if isinstance(arguments.get(name), str)
        )
        content, size = _refused_content(tool, arguments), None
        if tool is not None and tool.name == WRITE_FILE and isinstance(content, str):
            files = self._context.zones.task_files
            if not files.keeps_text(call, path):
                size, content = len(content), None
        if isinstance(content, str):
            size = len(content)
            try:
                validation.encode_text(content)
            except (NotText, TooLarge):
                content = None
        message = arguments.get("message")
        # A server refuses rows whose tool has no name.
        name = tool.name if tool else validation.escape_unstorable(call.tool, 100) or "?"
        is_by_policy = isinstance(error, (PolicyDenied, PolicyApprovalRequired))
        return call.with_tool(name).note(
            zone=tool.zone if tool else "workspace",
            path=validation.escape_unstorable(path, validation.MAX_PATH_BYTES),
            outcome=error.outcome,
            error=error.code,
            message=validation.escape_unstorable(message, 2000) if isinstance(message, str) else "",
            content=content if isinstance(content, str) else None,
            size=size,
            detail={POLICY_RULE: str(error.values["number"])} if is_by_policy else None,
        )


def _has_effects(error: WatchroomError) -> bool:
    """Return whether the call may have changed something although it failed with ``error``."""
    has_run = isinstance(error, CommandError) and "exit_code" in error.values
    return has_run or isinstance(error, (FileUnrecorded, OutcomeUnknown, WorkUnrecorded))


def _to_disk_failed(error: OSError) -> DiskFailed:
    return DiskFailed(reason=validation.escape_unstorable(error.strerror or str(error)))


def _shown_path(tool: AnyTool, params: ParamsModel) -> PathKey | None:
    """Return the path whose current version a call of ``tool`` returns or replaces, None if there is none."""
    spec = ZONES[tool.zone]
    if tool.name not in (spec.show_call[0], spec.write_tool) or not tool.path_params:
        return None
    return tool.zone, str(getattr(params, tool.path_params[0]))


def _refused_content(tool: AnyTool | None, arguments: Mapping[str, Json]) -> Json:
    """Return the content that a refused call would have written."""
    if tool is not None and tool.zone in DOCUMENTS and not tool.annotations.reads_only:
        # Edits of realtime documents have their text in several arguments.
        try:
            return validation.escape_unstorable(
                json.dumps(arguments, ensure_ascii=False), MAX_TEXT_BYTES // 4
            )
        except (ValueError, TypeError, RecursionError):
            return None
    if isinstance(payload := arguments.get("payload"), Mapping):
        return payload.get("text")
    return arguments.get("content", arguments.get("instructions"))
