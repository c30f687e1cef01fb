"""Every tool: its name, where it belongs, what it takes and gives, how it may be treated, what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar, cast

from watchroom.model import Row, Zone
from watchroom.toolbox import arguments as take
from watchroom.toolbox import collab, handoff, private, realtime, settling, steering
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller

Toolset: TypeAlias = Literal["private", "handoff", "collab", "realtime", "request", "session"]
A = TypeVar("A", bound=take.Arguments)


@dataclass(frozen=True, slots=True)
class Hints:
    """The annotations of the Model Context Protocol. ``destroys``: may replace or remove what was there."""

    reads_only: bool = False
    destroys: bool = False
    idempotent: bool = False


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

    @property
    def zone(self) -> Zone:
        return self.toolset


def _tool(
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
) -> Tool:
    """Ties a tool's arguments to what runs on them: the dispatcher hands ``run`` only what ``takes`` made."""
    general = cast("Callable[[Caller, take.Arguments], give.Result]", run)
    again = cast("Callable[[Caller, take.Arguments, Row], give.Result] | None", retell)
    return Tool(name, toolset, takes, gives, hints, general, path, for_humans, for_agents, again)


_FIELD: Final = ("doc_id", "field_name")

_ALL: Final = (
    _tool(
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
    _tool(
        "read_from_workspace",
        "private",
        take.ReadFromWorkspace,
        give.Content,
        READS,
        private.read,
        ("agent_id", "filename"),
    ),
    _tool(
        "list_workspace_files",
        "private",
        take.ListWorkspaceFiles,
        give.Files,
        READS,
        private.list_files,
        ("agent_id",),
    ),
    _tool(
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
    _tool(
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
    _tool(
        "check_my_handoffs",
        "handoff",
        take.CheckMyHandoffs,
        give.Inbox,
        READS,
        handoff.check,
        for_humans=False,
    ),
    _tool(
        "read_handoff",
        "handoff",
        take.ReadHandoff,
        give.HandoffContent,
        READS,
        handoff.read,
        ("from_agent", "filename"),
        for_humans=False,
    ),
    _tool(
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
    _tool(
        "collab_write",
        "collab",
        take.CollabWrite,
        give.CollabWritten,
        Hints(destroys=True),
        collab.write,
        ("filepath",),
        retell=collab.written,
    ),
    _tool("collab_read", "collab", take.CollabRead, give.CollabContent, READS, collab.read, ("filepath",)),
    _tool("collab_list", "collab", take.NoArguments, give.CollabFiles, READS, collab.list_files),
    _tool(
        "collab_history",
        "collab",
        take.CollabHistory,
        give.CollabHistoryResult,
        READS,
        collab.history,
        ("filepath",),
    ),
    _tool(
        "collab_rollback",
        "collab",
        take.CollabRollback,
        give.RolledBack,
        ADDS,
        collab.rollback,
        ("filepath",),
        retell=collab.rolled_back,
    ),
    _tool(
        "realtime_create_document",
        "realtime",
        take.CreateDocument,
        give.DocumentCreated,
        ADDS,
        realtime.create,
        ("doc_id",),
        retell=realtime.created,
    ),
    _tool(
        "realtime_get_document_snapshot",
        "realtime",
        take.GetDocumentSnapshot,
        give.DocumentSnapshot,
        READS,
        realtime.snapshot,
        ("doc_id",),
    ),
    _tool(
        "realtime_get_field",
        "realtime",
        take.GetField,
        give.FieldValue,
        READS,
        realtime.get_field,
        _FIELD,
    ),
    _tool(
        "realtime_set_field",
        "realtime",
        take.SetField,
        give.FieldWritten,
        REPLACES,
        realtime.set_field,
        _FIELD,
        retell=realtime.written,
    ),
    _tool(
        "realtime_edit_text",
        "realtime",
        take.EditText,
        give.TextEdited,
        ADDS,
        realtime.edit_text,
        _FIELD,
        retell=realtime.text_edited,
    ),
    _tool(
        "realtime_edit_set",
        "realtime",
        take.EditSet,
        give.SetEdited,
        Hints(idempotent=True),
        realtime.edit_set,
        _FIELD,
        retell=realtime.set_edited,
    ),
    _tool(
        "realtime_edit_counter",
        "realtime",
        take.EditCounter,
        give.CounterEdited,
        ADDS,
        realtime.edit_counter,
        _FIELD,
        retell=realtime.counter_edited,
    ),
    _tool(
        "realtime_merge_state",
        "realtime",
        take.MergeState,
        give.StateMerged,
        Hints(idempotent=True),
        realtime.merge_state,
        ("doc_id",),
        retell=realtime.state_merged,
    ),
    _tool(
        "resolve_conflict",
        "collab",
        take.ResolveConflict,
        give.Resolved,
        Hints(destroys=True),
        settling.resolve,
        ("filepath",),
        for_agents=False,
    ),
    _tool(
        "dismiss_conflict",
        "collab",
        take.DismissConflict,
        give.Dismissed,
        ADDS,
        settling.dismiss,
        for_agents=False,
    ),
    _tool(
        "revert_outside_edit",
        "collab",
        take.RevertOutsideEdit,
        give.Reverted,
        Hints(destroys=True),
        settling.revert,
        ("filepath",),
        for_agents=False,
    ),
    _tool(
        "mark_as_seen",
        "collab",
        take.MarkAsSeen,
        give.MarkedAsSeen,
        Hints(idempotent=True),
        settling.mark_as_seen,
        for_agents=False,
    ),
    _tool(
        "answer_request",
        "request",
        take.AnswerRequest,
        give.Answered,
        ADDS,
        steering.answer,
        for_agents=False,
    ),
    _tool(
        "pause_agent",
        "session",
        take.SteerAgent,
        give.Steered,
        ADDS,
        steering.pause,
        ("agent_id",),
        for_agents=False,
    ),
    _tool(
        "resume_agent",
        "session",
        take.SteerAgent,
        give.Steered,
        ADDS,
        steering.resume,
        ("agent_id",),
        for_agents=False,
    ),
    _tool(
        "cancel_agent",
        "session",
        take.CancelAgent,
        give.Steered,
        ADDS,
        steering.cancel,
        ("agent_id",),
        for_agents=False,
    ),
    _tool(
        "send_message",
        "session",
        take.SendMessage,
        give.Steered,
        ADDS,
        steering.send,
        ("to_agent",),
        for_agents=False,
    ),
)

TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _ALL}
"""All tools by name, in the order in which they are offered."""
