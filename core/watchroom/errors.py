"""One hierarchy of errors. Each has a stable ``code`` and says in words what happened and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from watchroom.model import RESOLVE, Json, Outcome, Row
from watchroom.texts import Language, catalogue


class WatchroomError(Exception):
    """Base of all. ``values`` fill the placeholders of the texts under ``error.{code}``."""

    code: ClassVar[str] = "internal_error"
    texts: ClassVar[str] = ""
    """The name of the texts, where they are others than those of the code."""
    package: ClassVar[str] = "watchroom.texts"
    """The package of their catalogue."""
    outcome: ClassVar[Outcome] = "failed"
    has_row: bool = False
    """Whether the row of the refused call stands in the journal already where this is raised."""

    def __init__(self, **values: object) -> None:
        super().__init__()
        self.values = values

    def message(self, language: Language = "en") -> str:
        """What happened."""
        return self._text("message", language)

    def suggestion(self, language: Language = "en") -> str:
        """What to do next."""
        return self._text("suggestion", language)

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """What else its caller is told, beside the words."""
        return {}

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language, self.package)
        values = dict(self.values)
        if "rule" in values:
            values["rule"] = texts(f"rule.{values['rule']}")
        return texts(f"error.{self.texts or self.code}.{part}", **values)

    def __str__(self) -> str:
        return f"{self.message()} {self.suggestion()}"


class InvalidName(WatchroomError):
    """An agent id or a path breaks a rule; ``rule`` names it. Values: given, rule."""

    code = "invalid_name"
    outcome: ClassVar[Outcome] = "denied"


class InvalidPath(InvalidName):
    code = "invalid_path"


class InvalidAgentId(InvalidName):
    code = "invalid_agent_id"


class InvalidRole(InvalidName):
    """A role by which an agent could be taken for another one. Values: given, agent, other, rule."""

    code = "invalid_role"


class InvalidKey(InvalidName):
    """A map cannot have such a key."""

    code = "invalid_key"


class PermissionDenied(WatchroomError):
    """A write to a place that is not the writer's. Values: owner."""

    code = "permission_denied"
    outcome: ClassVar[Outcome] = "denied"


class PeopleOnly(PermissionDenied):
    """A tool that only people have. Values: tool."""

    texts = "people_only"


class UnknownAgent(WatchroomError):
    """Values: agent, known."""

    code = "unknown_agent"
    outcome: ClassVar[Outcome] = "denied"


class TooLarge(WatchroomError):
    """Values: size, limit (bytes)."""

    code = "too_large"
    outcome: ClassVar[Outcome] = "denied"


class NotText(WatchroomError):
    """Values: rule (not_utf8, binary, not_a_file)."""

    code = "not_text"
    outcome: ClassVar[Outcome] = "denied"


class NotFound(WatchroomError):
    """Values: path, zone."""

    code = "file_not_found"


class VersionNotFound(WatchroomError):
    """Values: path, version, current."""

    code = "version_not_found"


class PathBlocked(WatchroomError):
    """A file stands where a folder is needed, or the other way round. Values: path, by."""

    code = "path_blocked"
    has_row = True


class InvalidArguments(WatchroomError):
    """Values: tool, problems."""

    code = "invalid_arguments"
    outcome: ClassVar[Outcome] = "denied"


class UnknownTool(WatchroomError):
    """Values: tool, known."""

    code = "unknown_tool"
    outcome: ClassVar[Outcome] = "denied"


_WRITE_TOOLS: Final = {"board": "whiteboard_write"}
"""The tool with which to try again, where it is not that of shared files."""


class Conflict(WatchroomError):
    """A write that started from a version which is no longer the current one. Nothing was overwritten.

    ``row`` is the refused write in the journal; ``current`` and ``current_content`` are what stands
    (None where nothing does: the expected version never existed).
    """

    code = "version_conflict"
    outcome: ClassVar[Outcome] = "conflict"
    has_row = True

    def __init__(
        self, row: Row, current: Row | None, current_content: str | None, your_content: str | None
    ) -> None:
        super().__init__(
            path=row.path,
            base_version=row.base,
            current_version=current.version if current else 0,
            current_author=current.actor if current else "-",
            tool=RESOLVE if row.tool == RESOLVE else _WRITE_TOOLS.get(row.zone, "collab_write"),
        )
        self.row = row
        self.current = current
        self.current_content = current_content
        self.your_content = your_content


class BoardLeased(WatchroomError):
    """A write to a board whose lease somebody else holds. Values: board, holder, seconds (until it ends)."""

    code = "board_leased"


class NotAConflict(WatchroomError):
    """Values: conflict."""

    code = "not_a_conflict"


class ConflictSettled(WatchroomError):
    """Values: conflict."""

    code = "conflict_settled"


class OutsideConflict(WatchroomError):
    """An edit made by hand cannot be dismissed: its file differs from the journal. Values: conflict, path."""

    code = "outside_conflict"


class NoOutsideEdit(WatchroomError):
    """Values: path."""

    code = "no_outside_edit"


class EditedAgain(WatchroomError):
    """There is a newer edit than the one that was to be reverted. Values: path, conflict (its number)."""

    code = "edited_again"


class NothingWaits(WatchroomError):
    """A row that asks for nobody's eyes. Values: row."""

    code = "nothing_waits"


class WorkspaceNotFound(WatchroomError):
    """Values: root."""

    code = "workspace_not_found"


class ConfigInvalid(WatchroomError):
    """Values: problem."""

    code = "config_invalid"


class JournalError(WatchroomError):
    """The journal could not do what was asked. Values: reason."""

    code = "journal_failed"


class JournalDamaged(JournalError):
    """A text in the journal cannot be read as such."""

    code = "journal_damaged"


class JournalTooNew(JournalError):
    """Values: found, supported."""

    code = "journal_too_new"


class JournalBusy(JournalError):
    """Values: seconds."""

    code = "journal_busy"


class WorkspaceLocked(JournalError):
    """Somebody holds the workspace's lock for too long. Values: seconds, holder."""

    code = "workspace_locked"


class DiskFailed(WatchroomError):
    """The file system refused. Values: reason."""

    code = "disk_failed"


class ModelFailed(WatchroomError):
    """A model gave no whole answer. Values: reason; or ``rule``, the name of a text under ``model`` that
    says it, with what fills that text."""

    code = "model_failed"

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language)
        values = dict(self.values)
        if "rule" in values:
            values["reason"] = texts(f"model.{values['rule']}", **self.values)
        return texts(f"error.{self.code}.{part}", **values)


class LlmProviderRequired(WatchroomError):
    """An agent wants to ask a model, and has none."""

    code = "llm_provider_required"


class ToolNotFound(WatchroomError):
    """A model called a tool that its agent does not have. Values: tool."""

    code = "tool_not_found"


class InvalidToolArguments(WatchroomError):
    """A model's arguments are no JSON object. Values: tool, problem."""

    code = "invalid_tool_arguments"


class ToolFailed(WatchroomError):
    """A tool raised an error. Values: tool, reason."""

    code = "tool_failed"


class ToolForbidden(WatchroomError):
    """The policy does not let a tool be called. Values: tool."""

    code = "tool_forbidden"


class ApprovalOutdated(WatchroomError):
    """What an approved call would write is not what the person was shown. ``has_row`` says whether the write
    was refused by the journal, with a row. Values: tool."""

    code = "approval_outdated"

    def __init__(self, *, has_row: bool = False, **values: object) -> None:
        super().__init__(**values)
        self.has_row = has_row


class ToolInterrupted(WatchroomError):
    """The end of a process cut a call off, and what it had done cannot be found out. Values: tool."""

    code = "tool_interrupted"


class InvalidInstruction(WatchroomError):
    """An agent decided on something that cannot be carried out. Values: problem."""

    code = "invalid_instruction"


class NotWaiting(WatchroomError):
    """An answer to a session that asks for nothing. Values: session."""

    code = "not_waiting"


class InvalidAnswer(WatchroomError):
    """An answer that does not answer what was asked; ``rule`` names why."""

    code = "invalid_answer"


class RequestNotFound(WatchroomError):
    """Values: request."""

    code = "request_not_found"


class RequestClosed(WatchroomError):
    """A request that was answered before, or withdrawn. Values: request, by."""

    code = "request_closed"
    has_row = True


class RequestCancelled(RequestClosed):
    """A request whose session a person ended before it was answered. Values: request, by."""

    texts = "request_cancelled"


class RequestWithdrawn(RequestClosed):
    """A request that its agent needs no answer to any more. Values: request."""

    texts = "request_withdrawn"


class RequestExpired(WatchroomError):
    """An answer that came too late. Values: request."""

    code = "request_expired"
    has_row = True


class SessionNotFound(WatchroomError):
    """Values: session."""

    code = "session_not_found"


class SessionExists(WatchroomError):
    """Values: session."""

    code = "session_exists"


class SessionTaken(WatchroomError):
    """Another process went on with the session. Values: session."""

    code = "session_taken"


class InvalidSession(InvalidName):
    """A session's id breaks a rule."""

    code = "invalid_session"


class DocumentNotFound(WatchroomError):
    """Values: document, known."""

    code = "document_not_found"


class DocumentExists(WatchroomError):
    """A document was to be created where one is. Values: document, by, fields."""

    code = "document_exists"


class FieldNotFound(WatchroomError):
    """Values: field, known."""

    code = "field_not_found"


_FIELD_TOOLS: Final = {
    "rga": "realtime_edit_text",
    "or_set": "realtime_edit_set",
    "pn_counter": "realtime_edit_counter",
}
"""The tools of the fields that realtime_set_field does not write."""


class WrongFieldType(WatchroomError):
    """An operation that the field's type does not have, or a value that it cannot take. Values: field, type,
    wanted, tool."""

    code = "wrong_field_type"

    def __init__(self, *, field: str, type: str, wanted: str) -> None:  # noqa: A002  # as the texts name it
        tool = _FIELD_TOOLS.get(type, "realtime_set_field")
        super().__init__(field=field, type=type, wanted=wanted, tool=tool)


class InvalidSchema(WatchroomError):
    """A document cannot have these fields; ``rule`` names why. Values: rule, field."""

    code = "invalid_schema"
    outcome: ClassVar[Outcome] = "denied"


class InvalidState(WatchroomError):
    """What claims to be a replica's state or delta is none, or may not be merged; ``rule`` names why.
    Nothing of it was taken over. Values: rule, field."""

    code = "invalid_state"
    outcome: ClassVar[Outcome] = "denied"

    def __init__(self, *, rule: object, field: str = "-") -> None:
        super().__init__(rule=rule, field=field)


class CounterOverflow(WatchroomError):
    """A counter cannot take so much more from one agent. Values: limit."""

    code = "counter_overflow"
    outcome: ClassVar[Outcome] = "denied"
