"""One hierarchy of errors. Each has a stable ``code``, and texts that say what happened and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from watchroom.model import RESOLVE, Json, Outcome, Row
from watchroom.texts import Language, catalogue


class WatchroomError(Exception):
    """Base of all errors of this package. ``values`` fill the placeholders of the texts under
    ``error.{code}``.

        try:
            workspace.tools("alice")
        except WatchroomError as error:
            print(error.code, error.message(), error.suggestion("zh"))
    """

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
        """What happened, in ``language``."""
        return self._text("message", language)

    def suggestion(self, language: Language = "en") -> str:
        """What to do next, in ``language``."""
        return self._text("suggestion", language)

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """Further fields of the result that the caller gets, with texts in ``language``."""
        return {}

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language, self.package)
        values = dict(self.values)
        if "rule" in values:
            values["rule"] = texts(f"rule.{values['rule']}")
        return texts(f"error.{self.texts or self.code}.{part}", **values)

    def __str__(self) -> str:
        return f"{self.message()} {self.suggestion()}"


class DeniedError(WatchroomError):
    """Base of the errors of calls that their caller may not make, or not so."""

    outcome: ClassVar[Outcome] = "denied"


class InvalidName(DeniedError):
    """An agent id or a path breaks a rule; ``rule`` identifies it. Values: given, rule."""

    code = "invalid_name"


class InvalidPath(InvalidName):
    """A path breaks a rule. Values: given, rule."""

    code = "invalid_path"


class InvalidAgentId(InvalidName):
    """An agent id, or a person's name, breaks a rule. Values: given, rule."""

    code = "invalid_agent_id"


class InvalidRole(InvalidName):
    """A role that could be taken for another agent. Values: given, agent, other, rule."""

    code = "invalid_role"


class InvalidKey(InvalidName):
    """A key that a map of a realtime document cannot have. Values: given, rule."""

    code = "invalid_key"


class PermissionDenied(DeniedError):
    """A write to a place that belongs to somebody else. Values: owner."""

    code = "permission_denied"


class PeopleOnly(PermissionDenied):
    """A tool that only people have. Values: tool."""

    texts = "people_only"


class UnknownAgent(DeniedError):
    """No agent of that id is registered. Values: agent, known."""

    code = "unknown_agent"

    def suggestion(self, language: Language = "en") -> str:
        return self._text("suggestion" if self.values["known"] != "-" else "nobody", language)


class TooLarge(DeniedError):
    """A text or file beyond the size limit. Values: size, limit (bytes)."""

    code = "too_large"


class ValueTooLarge(TooLarge):
    """A value that is too large to be in one result. Values: size, limit (bytes)."""

    texts = "value_too_large"


class NotText(DeniedError):
    """Content that is no text. Values: rule (not_utf8, binary, not_a_file)."""

    code = "not_text"


class NotFound(WatchroomError):
    """No file at that path. Values: path, zone."""

    code = "file_not_found"


class VersionNotFound(WatchroomError):
    """A file has no such version. Values: path, version, current."""

    code = "version_not_found"


class PathBlocked(WatchroomError):
    """A file stands where a folder is needed, or the other way round. Values: path, by."""

    code = "path_blocked"
    has_row = True


class InvalidArguments(DeniedError):
    """Arguments that a tool does not accept. Values: tool, problems."""

    code = "invalid_arguments"


class UnknownTool(DeniedError):
    """No tool of that name. Values: tool, known."""

    code = "unknown_tool"


_WRITE_TOOLS: Final = {"board": "whiteboard_write"}
"""The tool with which to try again, where it is not that of shared files."""


class VersionConflict(WatchroomError):
    """A write that started from a version which is no longer the current one. Nothing was overwritten.

    ``row`` is the refused write in the journal, ``your_content`` its text; ``current`` and
    ``current_content`` are the current version (None where there is none: the expected version never
    existed)."""

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


class HeadsMoved(WatchroomError):
    """Drafts that were to become rows all or none, of which one would have been refused: none did. Values:
    zone, path."""

    code = "heads_moved"


class BoardLeased(WatchroomError):
    """A write to a board that somebody else has leased. Values: board, holder, seconds (until the lease
    ends)."""

    code = "board_leased"


class NotAConflict(WatchroomError):
    """A number that is no conflict's. Values: conflict."""

    code = "not_a_conflict"


class ConflictSettled(WatchroomError):
    """A conflict that was settled before. Values: conflict."""

    code = "conflict_settled"


class OutsideConflict(WatchroomError):
    """An edit made by hand cannot be dismissed: its file differs from the journal. Values: conflict, path."""

    code = "outside_conflict"


class NoOutsideEdit(WatchroomError):
    """No edit made by hand waits at that path. Values: path."""

    code = "no_outside_edit"


class EditedAgain(WatchroomError):
    """There is a newer edit than the one that was to be reverted. Values: path, conflict (its number)."""

    code = "edited_again"


class NothingWaits(WatchroomError):
    """A row that needs no attention. Values: row."""

    code = "nothing_waits"


class CheckoutTaken(WatchroomError):
    """The folder shows the files of another workspace. Values: folder."""

    code = "checkout_taken"


class WorkspaceNotFound(WatchroomError):
    """No workspace in that folder. Values: root."""

    code = "workspace_not_found"


class ConfigInvalid(WatchroomError):
    """The workspace's configuration cannot be read. Values: problem."""

    code = "config_invalid"

    def __init__(self, *, problem: str) -> None:
        super().__init__(problem=problem if len(problem) <= 1000 else f"{problem[:1000]}…")


class JournalError(WatchroomError):
    """The journal could not carry out a request. Values: reason."""

    code = "journal_failed"


class JournalDamaged(JournalError):
    """A text in the journal cannot be read as such."""

    code = "journal_damaged"


class JournalTooNew(JournalError):
    """The journal was written by a later version of this program. Values: found, supported."""

    code = "journal_too_new"


class JournalBusy(JournalError):
    """The journal was locked for too long. Values: seconds."""

    code = "journal_busy"


class WorkspaceLocked(JournalError):
    """Another process holds the workspace's lock for too long. Values: seconds, holder."""

    code = "workspace_locked"


class DiskFailed(WatchroomError):
    """The file system refused an operation. Values: reason."""

    code = "disk_failed"


class ModelFailed(WatchroomError):
    """A model gave no complete answer. Values: reason; or ``rule``, the key of a text under ``model``, with
    what fills that text."""

    code = "model_failed"

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language)
        values = dict(self.values)
        if "rule" in values:
            values["reason"] = texts(f"model.{values['rule']}", **self.values)
        return texts(f"error.{self.code}.{part}", **values)


class LlmProviderRequired(WatchroomError):
    """An agent asks a model, and none is configured."""

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


class PolicyDenied(DeniedError):
    """A rule of the workspace's policy denies a call. Values: tool, number (of the rule, with its name)."""

    code = "policy_denied"


class PolicyApprovalRequired(DeniedError):
    """A rule of the workspace's policy wants a person to approve of a call, and the way by which it came can
    ask nobody. Values: tool, number (of the rule, with its name)."""

    code = "policy_approval_required"


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
    """An agent returned an instruction that cannot be carried out. Values: problem."""

    code = "invalid_instruction"


class NotWaiting(WatchroomError):
    """An answer to a session that has no open request. Values: session."""

    code = "not_waiting"


class InvalidAnswer(WatchroomError):
    """An answer that does not fit the request; ``rule`` identifies why."""

    code = "invalid_answer"


class InvalidSearch(WatchroomError):
    """A search that names no words, or too many; ``rule`` identifies why."""

    code = "invalid_search"


class RequestNotFound(WatchroomError):
    """No request of that number. Values: request."""

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


class RequestTaken(DeniedError):
    """Another request is at the path where this one would be. Values: path, request."""

    code = "request_taken"


class RequestExpired(WatchroomError):
    """An answer after the request expired. Values: request."""

    code = "request_expired"
    has_row = True


class SessionNotFound(WatchroomError):
    """No session of that id. Values: session."""

    code = "session_not_found"


class SessionExists(WatchroomError):
    """A session of that id exists already. Values: session."""

    code = "session_exists"


class SessionTaken(WatchroomError):
    """Another process continued the session. Values: session."""

    code = "session_taken"


class InvalidSession(InvalidName):
    """A session id breaks a rule. Values: given, rule."""

    code = "invalid_session"


class ExtraMissing(WatchroomError):
    """A package is not installed that comes with an extra. Values: extra, package."""

    code = "extra_missing"
