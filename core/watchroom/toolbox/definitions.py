"""Every tool: its name, where it belongs, what it takes and gives, how it may be treated, what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, cast

from watchroom.model import Row, Zone
from watchroom.texts import Language, catalogue
from watchroom.toolbox import arguments as take
from watchroom.toolbox import collab, handoff, private, realtime, settling, steering, tasks
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller

Toolset: TypeAlias = Literal[
    "private", "handoff", "collab", "board", "realtime", "request", "session", "file"
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

    @property
    def zone(self) -> Zone:
        return self.toolset

    def title(self, language: Language) -> str:
        return catalogue(language, self.texts)(f"tool.{self.name}.title")


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
) -> Tool:
    """Ties a tool's arguments to what runs on them: the dispatcher hands ``run`` only what ``takes`` made."""
    general = cast("Callable[[Caller, take.Arguments], give.Result]", run)
    again = cast("Callable[[Caller, take.Arguments, Row], give.Result] | None", retell)
    return Tool(name, toolset, takes, gives, hints, general, path, for_humans, for_agents, again, texts)


_FIELD: Final = ("doc_id", "field_name")

_ALL: Final = (
    define(
        "save_to_my_workspace",
        "private",
        take.SaveToMyWorkspace,
        give.Saved,
        REPLACES,
        private.save,
        ("filename",),
        for_humans=False,
        retell=private.saved,
    ),
    define(
        "read_from_workspace",
        "private",
        take.ReadFromWorkspace,
        give.Content,
        READS,
        private.read,
        ("agent_id", "filename"),
    ),
    define(
        "list_workspace_files",
        "private",
        take.ListWorkspaceFiles,
        give.Files,
        READS,
        private.list_files,
        ("agent_id",),
    ),
    define(
        "delete_from_my_workspace",
        "private",
        take.DeleteFromMyWorkspace,
        give.Deleted,
        REPLACES,
        private.delete,
        ("filename",),
        for_humans=False,
        retell=private.deleted,
    ),
    define(
        "handoff_file",
        "handoff",
        take.HandoffFile,
        give.Delivered,
        ADDS,
        handoff.deliver,
        ("to_agent", "filename"),
        for_humans=False,
        retell=handoff.delivered,
    ),
    define(
        "check_my_handoffs",
        "handoff",
        take.CheckMyHandoffs,
        give.Inbox,
        READS,
        handoff.check,
        for_humans=False,
    ),
    define(
        "read_handoff",
        "handoff",
        take.ReadHandoff,
        give.HandoffContent,
        READS,
        handoff.read,
        ("from_agent", "filename"),
        for_humans=False,
    ),
    define(
        "acknowledge_handoff",
        "handoff",
        take.AcknowledgeHandoff,
        give.Acknowledged,
        Hints(idempotent=True),
        handoff.acknowledge,
        ("from_agent", "filename"),
        for_humans=False,
        retell=handoff.acknowledged,
    ),
    define(
        "collab_write",
        "collab",
        take.CollabWrite,
        give.CollabWritten,
        Hints(destroys=True, may_conflict=True),
        collab.write,
        ("filepath",),
        retell=collab.written,
    ),
    define("collab_read", "collab", take.CollabRead, give.CollabContent, READS, collab.read, ("filepath",)),
    define("collab_list", "collab", take.NoArguments, give.CollabFiles, READS, collab.list_files),
    define(
        "collab_history",
        "collab",
        take.CollabHistory,
        give.CollabHistoryResult,
        READS,
        collab.history,
        ("filepath",),
    ),
    define(
        "collab_rollback",
        "collab",
        take.CollabRollback,
        give.RolledBack,
        Hints(may_conflict=True),
        collab.rollback,
        ("filepath",),
        retell=collab.rolled_back,
    ),
    define(
        "realtime_create_document",
        "realtime",
        take.CreateDocument,
        give.DocumentCreated,
        ADDS,
        realtime.create,
        ("doc_id",),
        retell=realtime.created,
    ),
    define(
        "realtime_get_document_snapshot",
        "realtime",
        take.GetDocumentSnapshot,
        give.DocumentSnapshot,
        READS,
        realtime.snapshot,
        ("doc_id",),
    ),
    define(
        "realtime_get_field",
        "realtime",
        take.GetField,
        give.FieldValue,
        READS,
        realtime.get_field,
        _FIELD,
    ),
    define(
        "realtime_set_field",
        "realtime",
        take.SetField,
        give.FieldWritten,
        REPLACES,
        realtime.set_field,
        _FIELD,
        retell=realtime.written,
    ),
    define(
        "realtime_edit_text",
        "realtime",
        take.EditText,
        give.TextEdited,
        ADDS,
        realtime.edit_text,
        _FIELD,
        retell=realtime.text_edited,
    ),
    define(
        "realtime_edit_set",
        "realtime",
        take.EditSet,
        give.SetEdited,
        Hints(idempotent=True),
        realtime.edit_set,
        _FIELD,
        retell=realtime.set_edited,
    ),
    define(
        "realtime_edit_counter",
        "realtime",
        take.EditCounter,
        give.CounterEdited,
        ADDS,
        realtime.edit_counter,
        _FIELD,
        retell=realtime.counter_edited,
    ),
    define(
        "realtime_merge_state",
        "realtime",
        take.MergeState,
        give.StateMerged,
        Hints(idempotent=True),
        realtime.merge_state,
        ("doc_id",),
        retell=realtime.state_merged,
    ),
    define(
        "resolve_conflict",
        "collab",
        take.ResolveConflict,
        give.Resolved,
        Hints(destroys=True, may_conflict=True),
        settling.resolve,
        ("filepath",),
        for_agents=False,
    ),
    define(
        "dismiss_conflict",
        "collab",
        take.DismissConflict,
        give.Dismissed,
        ADDS,
        settling.dismiss,
        for_agents=False,
    ),
    define(
        "revert_outside_edit",
        "collab",
        take.RevertOutsideEdit,
        give.Reverted,
        Hints(destroys=True),
        settling.revert,
        ("filepath",),
        for_agents=False,
    ),
    define(
        "mark_as_seen",
        "collab",
        take.MarkAsSeen,
        give.MarkedAsSeen,
        Hints(idempotent=True),
        settling.mark_as_seen,
        for_agents=False,
    ),
    define(
        "answer_request",
        "request",
        take.AnswerRequest,
        give.Answered,
        ADDS,
        steering.answer,
        for_agents=False,
    ),
    define(
        "pause_agent",
        "session",
        take.SteerAgent,
        give.Steered,
        ADDS,
        steering.pause,
        ("agent_id",),
        for_agents=False,
    ),
    define(
        "resume_agent",
        "session",
        take.SteerAgent,
        give.Steered,
        ADDS,
        steering.resume,
        ("agent_id",),
        for_agents=False,
    ),
    define(
        "cancel_agent",
        "session",
        take.CancelAgent,
        give.Steered,
        ADDS,
        steering.cancel,
        ("agent_id",),
        for_agents=False,
    ),
    define(
        "send_message",
        "session",
        take.SendMessage,
        give.Steered,
        ADDS,
        steering.send,
        ("to_agent",),
        for_agents=False,
    ),
    define("read_file", "file", take.ReadFile, give.FileRead, READS, tasks.read, ("path",), for_humans=False),
    define(
        "write_file",
        "file",
        take.WriteFile,
        give.FileWritten,
        REPLACES,
        tasks.write,
        ("path",),
        for_humans=False,
        retell=tasks.written,
    ),
    define(
        "list_files",
        "file",
        take.ListFiles,
        give.Listed,
        READS,
        tasks.list_files,
        ("path",),
        for_humans=False,
    ),
    define("run_command", "file", take.RunCommand, give.CommandRan, ADDS, tasks.run, for_humans=False),
    define(
        "get_workspace_info",
        "file",
        take.NoArguments,
        give.WorkspaceInfo,
        READS,
        tasks.info,
        for_humans=False,
    ),
)

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}
"""The core's own tools by name, in the order in which they are offered."""
