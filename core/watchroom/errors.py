"""The hierarchy of errors. Each error has a stable ``code``, and texts with the problem and a suggestion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, cast

from watchroom.model import RESOLVE, Json, Outcome, Row
from watchroom.texts import Language, catalogue

_SENTENCE_ENDS: Final = (".", "!", "?", ":", "…", "。", "！", "？", "：")
_FULL_STOPS: Final[Mapping[Language, str]] = {"en": ".", "zh": "。"}


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
    """The key of the texts, if it differs from the code."""
    package: ClassVar[str] = "watchroom.texts"
    """The package of the catalogue."""
    outcome: ClassVar[Outcome] = "failed"
    has_row: bool = False
    """Whether the journal already has a row for the refused call when this is raised."""

    def __init__(self, **values: object) -> None:
        super().__init__()
        self.values = values

    def message(self, language: Language = "en") -> str:
        """Return what happened, in ``language``. A text of one line ends with a full stop, also after a value
        such as the output of git."""
        text = self._text("message", language)
        is_sentence = "\n" in text or text.endswith(_SENTENCE_ENDS)
        return text if is_sentence else text + _FULL_STOPS[language]

    def suggestion(self, language: Language = "en") -> str:
        """Return a suggestion in ``language``."""
        return self._text("suggestion", language)

    def report(self, language: Language = "en") -> str:
        """Return what happened and what to do next, in ``language``. A suggestion after a list starts on its
        own line."""
        message = self.message(language)
        separator = "\n" if "\n" in message else " "
        return f"{message}{separator}{self.suggestion(language)}"

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """Return further fields for the caller's result, with texts in ``language``."""
        return {}

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language, self.package)
        values = dict(self.values)
        if "rule" in values:
            values["rule"] = texts(f"rule.{values['rule']}")
        return texts(f"error.{self.texts or self.code}.{part}", **values)

    def __str__(self) -> str:
        return self.report()


class DeniedError(WatchroomError):
    """Base of the errors for calls that are not allowed to the caller, or not in this form."""

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
    """A role could be confused with another agent. Values: given, agent, other, rule."""

    code = "invalid_role"


class InvalidKey(InvalidName):
    """A key is not valid in a map of a realtime document. Values: given, rule."""

    code = "invalid_key"


class PermissionDenied(DeniedError):
    """The place belongs to somebody else. Values: owner."""

    code = "permission_denied"


class PeopleOnly(PermissionDenied):
    """Only people have this tool. Values: tool."""

    texts = "people_only"


class ZoneRefused(DeniedError):
    """The rule of a plug-in's zone refuses a write. Values: zone, reason."""

    code = "zone_refused"


class UnknownAgent(DeniedError):
    """No agent with this id is registered. Values: agent, known."""

    code = "unknown_agent"

    def suggestion(self, language: Language = "en") -> str:
        return self._text("suggestion" if self.values["known"] != "-" else "nobody", language)


class TooLarge(DeniedError):
    """A text or file exceeds the size limit. Values: size, limit (bytes)."""

    code = "too_large"


class ValueTooLarge(TooLarge):
    """A value is too large for a single result. Values: size, limit (bytes)."""

    texts = "value_too_large"


class NotText(DeniedError):
    """The content is not a text. Values: rule (not_utf8, binary, not_a_file)."""

    code = "not_text"


class NotFound(WatchroomError):
    """There is no file at this path. Values: path, zone."""

    code = "file_not_found"


class VersionNotFound(WatchroomError):
    """The file has no such version. Values: path, version, current."""

    code = "version_not_found"


class PathBlocked(WatchroomError):
    """A file exists where a folder is needed, or the other way round. Values: path, by."""

    code = "path_blocked"
    has_row = True


class InvalidArguments(DeniedError):
    """A tool does not accept the arguments. Values: tool, problems."""

    code = "invalid_arguments"


class UnknownTool(DeniedError):
    """There is no tool with this name. Values: tool, known."""

    code = "unknown_tool"


class VersionConflict(WatchroomError):
    """A write is based on a version that is no longer the current version. Nothing was overwritten.

    - ``row``: the refused write in the journal.
    - ``current``, ``current_content``: the current version; None if the path has no version.
    - ``your_content``: the text of the refused write.
    - ``write_tool``: the tool for another try, default the tool of shared files.
    """

    code = "version_conflict"
    outcome: ClassVar[Outcome] = "conflict"
    has_row = True

    def __init__(
        self,
        row: Row,
        current: Row | None,
        current_content: str | None,
        your_content: str | None,
        write_tool: str = "collab_write",
    ) -> None:
        super().__init__(
            path=row.path,
            base_version=row.base,
            current_version=current.version if current else 0,
            current_author=current.actor if current else "-",
            tool=RESOLVE if row.tool == RESOLVE else write_tool,
        )
        self.row = row
        self.current = current
        self.current_content = current_content
        self.your_content = your_content


class HeadsMoved(WatchroomError):
    """One of several drafts that must be committed together would have been refused. None was committed.
    Values: zone, path."""

    code = "heads_moved"


class BoardLeased(WatchroomError):
    """Somebody else has locked the board. Values: board, holder, seconds (until the lock ends)."""

    code = "board_leased"


class NotAConflict(WatchroomError):
    """The number does not belong to a conflict. Values: conflict."""

    code = "not_a_conflict"


class ConflictSettled(WatchroomError):
    """The conflict was already settled. Values: conflict."""

    code = "conflict_settled"


class OutsideConflict(WatchroomError):
    """An external edit cannot be dismissed, because its file differs from the journal. Values: conflict,
    path."""

    code = "outside_conflict"


class NoOutsideEdit(WatchroomError):
    """There is no open external edit of this path. Values: path."""

    code = "no_outside_edit"


class EditedAgain(WatchroomError):
    """There is a newer edit than the edit to revert. Values: path, conflict (its number)."""

    code = "edited_again"


class NothingWaits(WatchroomError):
    """The row needs no attention. Values: row."""

    code = "nothing_waits"


class CheckoutTaken(WatchroomError):
    """The folder contains the files of another workspace. Values: folder."""

    code = "checkout_taken"


class WorkspaceNotFound(WatchroomError):
    """There is no workspace in this folder. Values: root."""

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
    """A text in the journal cannot be read."""

    code = "journal_damaged"


class JournalTooNew(JournalError):
    """The journal was written by a newer version of this program. Values: found, supported."""

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
    its placeholders."""

    code = "model_failed"

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language)
        values = dict(self.values)
        if "rule" in values:
            values["reason"] = texts(f"model.{values['rule']}", **self.values)
        return texts(f"error.{self.code}.{part}", **values)


class ModelLimited(ModelFailed):
    """A model's rate or usage limit is reached. Values: as for `ModelFailed`.

    ``resets``: the reset time in nanoseconds since the epoch, None if it is unknown.
    """

    code = "model_limited"
    resets: int | None = None


class LlmProviderRequired(WatchroomError):
    """An agent needs a model, but none is configured."""

    code = "llm_provider_required"


class ToolNotFound(WatchroomError):
    """A model called a tool that its agent does not have. Values: tool."""

    code = "tool_not_found"


class InvalidToolArguments(WatchroomError):
    """A model's arguments are not a JSON object. Values: tool, problem."""

    code = "invalid_tool_arguments"


class ToolFailed(WatchroomError):
    """A tool raised an error. Values: tool, reason."""

    code = "tool_failed"


class ToolForbidden(WatchroomError):
    """The policy forbids calls of a tool. Values: tool."""

    code = "tool_forbidden"


class PolicyDenied(DeniedError):
    """A rule of the workspace's policy denies a call. Values: tool, number (of the rule, with its name)."""

    code = "policy_denied"


class PolicyApprovalRequired(DeniedError):
    """A rule of the workspace's policy requires a person's approval, but the call came through an interface
    that cannot ask. Values: tool, number (of the rule, with its name)."""

    code = "policy_approval_required"


class ApprovalOutdated(WatchroomError):
    """An approved call would write a text that differs from the text that the person saw. ``has_row``:
    whether the journal refused the write, with a row. Values: tool."""

    code = "approval_outdated"

    def __init__(self, *, has_row: bool = False, **values: object) -> None:
        super().__init__(**values)
        self.has_row = has_row


class ToolInterrupted(WatchroomError):
    """The end of a process interrupted a call, and its effect cannot be determined. Values: tool."""

    code = "tool_interrupted"


class InvalidInstruction(WatchroomError):
    """An agent returned an instruction that cannot be carried out. Values: problem."""

    code = "invalid_instruction"


class NotWaiting(WatchroomError):
    """The session has no open request for this answer. Values: session."""

    code = "not_waiting"


class InvalidAnswer(WatchroomError):
    """An answer does not fit its request. ``rule``: the reason."""

    code = "invalid_answer"


class InvalidSearch(WatchroomError):
    """A search contains no words, or too many. ``rule``: the reason."""

    code = "invalid_search"


class RequestNotFound(WatchroomError):
    """There is no request with this number. Values: request."""

    code = "request_not_found"


class RequestClosed(WatchroomError):
    """The request was already answered or withdrawn. Values: request, by."""

    code = "request_closed"
    has_row = True


class RequestCancelled(RequestClosed):
    """A person ended the request's session before the request was answered. Values: request, by."""

    texts = "request_cancelled"


class RequestWithdrawn(RequestClosed):
    """The request's agent no longer needs an answer. Values: request."""

    texts = "request_withdrawn"


class RequestTaken(DeniedError):
    """Another request is at the path of this request. Values: path, request."""

    code = "request_taken"


class GrantRefused(DeniedError):
    """The call of a request cannot be granted in this scope. Values: request."""

    code = "grant_refused"


class GrantNotFound(DeniedError):
    """There is no grant in this row. Values: grant."""

    code = "grant_not_found"


class GrantEnded(DeniedError):
    """The grant was revoked. Values: grant."""

    code = "grant_ended"


class RequestExpired(WatchroomError):
    """The answer came after the request expired. Values: request."""

    code = "request_expired"
    has_row = True


class SessionNotFound(WatchroomError):
    """There is no session with this id. Values: session."""

    code = "session_not_found"


class NoReset(WatchroomError):
    """An agent cannot be resumed when its limit resets, because it is not parked or the time is unknown.
    Values: agent."""

    code = "no_reset"


class SessionExists(WatchroomError):
    """A session with this id already exists. Values: session."""

    code = "session_exists"


class SessionTaken(WatchroomError):
    """Another process continued the session. Values: session."""

    code = "session_taken"


class InvalidSession(InvalidName):
    """A session id breaks a rule. Values: given, rule."""

    code = "invalid_session"


class ExtraMissing(WatchroomError):
    """A package from an optional extra is not installed. Values: extra, package."""

    code = "extra_missing"


# The journal


class JournalUnreachable(JournalError):
    """The journal's server does not answer. Nothing was changed. Values: reason."""

    code = "journal_unreachable"


class OutcomeUnknown(JournalError):
    """The server or the disk failed during an append, and it is unknown whether the drafts became rows.
    Values: reason."""

    code = "outcome_unknown"


class JournalReplaced(JournalError):
    """The journal's files were removed or replaced while they were open, and cannot be restored. Nothing was
    changed. Values: file (the names of these files), kept (the copy with all rows of this process)."""

    code = "journal_replaced"


class JournalDenied(JournalError):
    """The server refuses the login: it is not a member, is read-only, or wrote under another's name. Values:
    reason."""

    code = "journal_denied"


class JournalHeld(JournalBusy):
    """Another session on the journal's server holds a lock, usually the lock on the newest row. Values:
    seconds (the timeout), holder."""

    texts = "journal_held"


class EncodingUnsupported(JournalError):
    """The journal's database is not encoded in UTF-8. Values: encoding, as PostgreSQL names it."""

    code = "encoding_unsupported"


class DraftRefused(JournalError):
    """The journal refuses a draft that breaks its rules. Values: reason."""

    code = "draft_refused"


class PausedOnly(JournalError):
    """The journal accepted the pauses of agents, and refused the rest of the call. Values: agents, reason."""

    code = "paused_only"
    has_row = True


class JournalInUse(JournalError):
    """The journal cannot be moved while a process uses it. Values: process, machine."""

    code = "journal_in_use"


class MoveDiffers(JournalError):
    """The target of a move has a different row than its source. Values: seq."""

    code = "move_differs"


# Buffers


class InvalidBuffer(InvalidName):
    """The name is not valid for a buffer. Values: given, rule."""

    code = "invalid_buffer"


class BufferNotFound(DeniedError):
    """The agent has no open buffer with this name. Values: buffer, known."""

    code = "buffer_not_found"


class BufferTaken(DeniedError):
    """The agent already has an open buffer with this name or source. Values: buffer, source."""

    code = "buffer_taken"


class BufferUnflushed(DeniedError):
    """The buffer has unflushed changes. It can only be closed with ``discard``. Values: buffer."""

    code = "buffer_unflushed"


class TooManyBuffers(DeniedError):
    """The agent has the maximum number of open buffers. Values: most, known."""

    code = "too_many_buffers"


# Realtime documents


class DocumentNotFound(WatchroomError):
    """There is no realtime document with this id. Values: document, known."""

    code = "document_not_found"


class DocumentExists(WatchroomError):
    """A document with this id already exists. Values: document, by, fields."""

    code = "document_exists"


class FieldNotFound(WatchroomError):
    """The document does not have this field. Values: field, known."""

    code = "field_not_found"


_FIELD_TOOLS: Final = {
    "rga": "realtime_edit_text",
    "or_set": "realtime_edit_set",
    "pn_counter": "realtime_edit_counter",
}
"""The tools for field types that realtime_set_field does not write."""


class WrongFieldType(WatchroomError):
    """The field's type does not support the operation or the value.

    Values: ``field``, its ``type``, the types ``wanted``, and the ``tool`` for this type.
    """

    code = "wrong_field_type"

    def __init__(self, *, field: str, type: str, wanted: str) -> None:  # noqa: A002  # as the texts name it
        tool = _FIELD_TOOLS.get(type, "realtime_set_field")
        super().__init__(field=field, type=type, wanted=wanted, tool=tool)


class InvalidSchema(DeniedError):
    """The schema of a document breaks ``rule``. Values: rule, field."""

    code = "invalid_schema"


class InvalidState(DeniedError):
    """A state or delta is malformed, or cannot be merged. Values: ``rule``, ``field``."""

    code = "invalid_state"

    def __init__(self, *, rule: object, field: str = "-") -> None:
        super().__init__(rule=rule, field=field)


class CounterOverflow(DeniedError):
    """The share of one replica in a counter would exceed ``limit``. Values: limit."""

    code = "counter_overflow"


class DocumentDamaged(JournalDamaged):
    """A version of a realtime document is unreadable. Values: document, version."""

    code = "document_damaged"


# Tasks and their agents


class NotInTask(DeniedError):
    """The agent works on no task. Values: agent."""

    code = "not_in_task"


class AgentEnded(WatchroomError):
    """The agent or its task has ended: it no longer acts or receives messages. Values: agent."""

    code = "agent_ended"


class AgentNotOwned(PermissionDenied):
    """An agent can only end agents that it spawned. Only the first agent can end the task. Values: agent."""

    texts = "not_yours"


class TaskNotOwned(PermissionDenied):
    """An agent can only end its own task. Values: task."""

    texts = "not_your_task"


class TaskInUse(WatchroomError):
    """Another process runs the agents of the task. Values: task."""

    code = "task_taken"


class OtherMachine(WatchroomError):
    """The task's files are on another machine. Values: task, machine."""

    code = "other_machine"


class AgentLimitExceeded(DeniedError):
    """A task has the maximum number of agents, or of layers. Values: limit (depth, agents), most."""

    code = "society_limit"


# Task files and commands


class PathTraversalBlocked(InvalidPath):
    """The path leads or may lead out of the workspace. Values: given, rule."""

    code = "path_traversal_blocked"


class FolderDenied(PermissionDenied):
    """The system denies this process access to a file. Values: path, reason."""

    texts = "folder_denied"


class FilesSkipped(WatchroomError):
    """Files of a task whose paths are too deep or too long. Values: count.

    This is never raised, only recorded in a row.
    """

    code = "left_out"


class IgnoredFilesUnknown(WatchroomError):
    """Git cannot report which files of a task's folder it ignores, so no file is recorded. Values: reason."""

    code = "ignored_files_unknown"


class TreeGone(WatchroomError):
    """The working tree of a file no longer exists. Values: tree."""

    code = "tree_gone"


class FileIgnored(DeniedError):
    """Git ignores the file, so it has no versions. Values: path."""

    code = "file_ignored"


class IgnoredFileChanged(DeniedError):
    """An ignored file has changed since the agent read it. A write would lose the change. Values: path."""

    code = "ignored_file_changed"


_OUTPUT_FIELDS: Final = {
    "stdout": "stdout",
    "stderr": "stderr",
    "changed": "changed",
    "more_changed": "moreChanged",
    "pending": "pending",
    "left_out": "leftOut",
    "quarantined": "quarantined",
    "notice": "notice",
}


class CommandError(WatchroomError):
    """Base of the errors about commands. Values: exit_code and the output, if the command ran."""

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """Return the output of the command, and the changes that it left. ``language`` has no effect."""
        code = {"exitCode": cast("Json", self.values["exit_code"])} if "exit_code" in self.values else {}
        fields = {name: cast("Json", self.values.get(key)) for key, name in _OUTPUT_FIELDS.items()}
        return code | {name: value for name, value in fields.items() if value is not None}


class FileNotReplaced(WatchroomError):
    """The decision to revert an external edit is committed, but the file could not be written. Values: path,
    reason."""

    code = "file_not_replaced"
    has_row = True


class FileUnrecorded(WatchroomError):
    """The file is written, but the journal refused its row, and the old file could not be restored. Values:
    path, reason (why the row was refused)."""

    code = "file_unrecorded"


class WorkUnrecorded(WatchroomError):
    """The work is done in git, but the journal refused its row. Values: work, reason (why the row was
    refused)."""

    code = "work_unrecorded"


class TaskQuotaExceeded(CommandError):
    """A task's folder exceeds its quota. Values: files, most_files, megabytes, most_megabytes; exit_code and
    the output, if a command ran."""

    code = "task_quota_exceeded"
    outcome: ClassVar[Outcome] = "denied"


class WorkspaceNotBound(DeniedError):
    """The agent's task has no folder, or the agent has no task. Values: agent."""

    code = "workspace_not_bound"


class InvalidWorkspace(DeniedError):
    """The folder cannot be a task's workspace. Values: path, rule."""

    code = "invalid_workspace"


class TaskNotFound(WatchroomError):
    """There is no such task. Values: task."""

    code = "task_not_found"


class CommandBlocked(DeniedError):
    """The command contains a blocked keyword. Values: keyword."""

    code = "command_blocked"

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """Return the reason in ``language``."""
        return {"reason": self.message(language)}


class CommandTimeout(CommandError):
    """The command exceeded its timeout and was ended. Values: seconds; the output, if it ran."""

    code = "command_timeout"
    has_row = True

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """Return the timeout, the output of the command, and the changes that it left. ``language`` has no
        effect."""
        seconds = cast("float", self.values["seconds"])
        return {"timedOut": True, "timeoutMs": round(seconds * 1000), **super().more(language)}


class CommandInterrupted(WatchroomError):
    """The result of the command is unknown: the process that ran it has died, or has not finished yet."""

    code = "command_interrupted"
    has_row = True


class CommandStopped(CommandError):
    """The command was ended together with its agent. Values: the output, if it ran."""

    code = "command_stopped"
    has_row = True


class CommandFailed(CommandError):
    """The exit code of the command is not 0. Values: exit_code; the output, if it ran."""

    code = "command_failed"
    has_row = True


class RepositoryRefused(CommandFailed):
    """A command created git repositories, which were moved out of its folder. Values: paths, exit_code; the
    output, if it ran."""

    code = "repository_refused"
    outcome: ClassVar[Outcome] = "denied"


class CommandNotStarted(CommandFailed):
    """The command could not be started. Values: reason."""

    texts = "command_not_started"


class ProcessesUnbounded(CommandNotStarted):
    """This process is root, and there are no control groups, so a command's number of processes is not
    limited.

    The kernel does not count the processes of root. A fork bomb could not be stopped in time.
    """

    texts = "processes_unbounded"


class InvalidCommand(CommandFailed):
    """The command contains characters that cannot be passed to a program."""

    texts = "invalid_command"
    outcome: ClassVar[Outcome] = "denied"


class FolderNotFound(CommandFailed):
    """The working directory of the command does not exist. Values: folder."""

    texts = "folder_not_found"


class NoSandbox(DeniedError):
    """No sandbox works on this machine."""

    code = "no_sandbox"


class CommandRejected(DeniedError):
    """A person rejected running the command without a sandbox. Values: reason."""

    code = "command_rejected"


class CommandUnanswered(CommandRejected):
    """No person answered in time whether the command may run without a sandbox."""

    texts = "command_unanswered"


class FolderTooWide(DeniedError):
    """The folder contains files that no command may touch, such as system files. Values: folder."""

    code = "folder_too_wide"


"""The fields of a result about a command that ran, by their names in `values`."""


# Sessions


class LimitReached(WatchroomError):
    """A session has reached a limit. Values: limit (steps, default_steps, tokens, estimated_tokens, seconds,
    errors), most."""

    code = "limit_reached"

    def _text(self, part: str, language: Language) -> str:
        texts = catalogue(language, self.package)
        what = texts(f"limit.{self.values['limit']}", **self.values)
        return texts(f"error.{self.code}.{part}", what=what)


class BudgetReached(DeniedError):
    """A budget is used up, and no person allowed the call. Values: used (a sentence with the amounts)."""

    code = "budget_reached"


class IncompleteAnswer(WatchroomError):
    """A model's answers were cut off or empty, twice in a row."""

    code = "incomplete_answer"


class InvalidTool(WatchroomError):
    """A tool cannot be offered to a model or called by it, or a policy names a tool that does not exist.
    Values: tool, rule."""

    code = "invalid_tool"


# People and decisions


class PersonRefused(DeniedError):
    """A person cannot be enrolled or revoked in this way. Values: person, rule."""

    code = "person_refused"


class SignatureRequired(DeniedError):
    """The workspace accepts only signed decisions, and this decision is not signed. Values: tool."""

    code = "signature_required"


class SettingsUnsigned(DeniedError):
    """The config file differs from the signed settings, which are in force. Values: fields."""

    code = "settings_unsigned"


class KeysNotTyped(DeniedError):
    """A decision was made with keys that a program sent to the terminal. Values: tool."""

    code = "keys_not_typed"


class MayNotDecide(DeniedError):
    """A person's decision would not count. Values: person, tool, rule."""

    code = "may_not_decide"


# Reverts


class RevertNotFound(WatchroomError):
    """There is no revert with this id. Values: revert."""

    code = "revert_not_found"


class RevertUnfinished(WatchroomError):
    """The rows of the revert are committed, but not all its files are written. Values: revert, reason."""

    code = "revert_unfinished"
    has_row = True


class RevertTooLarge(WatchroomError):
    """The revert affects more paths than the limit. Values: most."""

    code = "revert_too_large"


# Clients


class AgentCannotAnswer(DeniedError):
    """A process below an agent's client tried to answer for a person. Values: agent."""

    code = "agent_cannot_answer"


class NoAgentLeft(DeniedError):
    """All agents that are attached in the folder are in use by other clients. Values: agents, client."""

    code = "no_agent_left"


class AgentNotFree(DeniedError):
    """The client cannot work as the agent of its session or of its process. Values: agent, client."""

    code = "agent_not_free"


class ClientNotStarted(WatchroomError):
    """A client could not be started, or does not speak the protocol. Values: command, reason."""

    code = "client_not_started"


class ClientDoesNotAsk(WatchroomError):
    """A client has no mode in which it asks before it acts. Values: command, mode, modes."""

    code = "client_does_not_ask"


# Serving


class CallRejected(DeniedError):
    """A person rejected the call. Values: reason."""

    code = "call_rejected"


class AgentPaused(DeniedError):
    """A person paused the agent, and nobody resumed it before the call's deadline, or its session ended.
    Values: agent."""

    code = "agent_paused"


class ApprovalExpired(DeniedError):
    """A call was approved, but its agent did not ask for the result in time. Values: tool."""

    code = "approval_expired"


class TooManyRequests(DeniedError):
    """The agent has the maximum number of open requests to people. Values: agent, most."""

    code = "too_many_requests"


class CallUnanswered(DeniedError):
    """No person decided about the call."""

    code = "call_unanswered"


# Git


class GitError(WatchroomError):
    """A git command failed. Values: reason."""

    code = "git_failed"


class GitMissing(GitError):
    """git is not installed."""

    code = "git_missing"


class InvalidRepository(GitError):
    """A repository is not suitable for the operation. Values: path, rule."""

    code = "invalid_repository"


class GitBusy(GitError):
    """Git cannot commit now. Values: rule."""

    code = "git_busy"


class UncommittedWork(GitError):
    """A tree has changes that are not committed, so it cannot land. Values: tree, paths."""

    code = "uncommitted_work"


class TargetChanged(GitError):
    """The tree in which the branch of a landing is checked out has uncommitted changes in the same files.
    Values: branch, folder, paths."""

    code = "target_changed"


class InvalidTarget(GitError):
    """A tree cannot land in a branch. Values: branch, rule."""

    code = "invalid_target"


class InvalidRemote(GitError):
    """There is no remote of this name. Values: remote, known."""

    code = "invalid_remote"


class InvalidTree(GitError):
    """A working tree cannot be added. Values: name, rule."""

    code = "invalid_tree"


class UnknownTree(GitError):
    """There is no working tree of this name. Values: name, known."""

    code = "unknown_tree"


class TreeKept(GitError):
    """A working tree is not removed, because there are obstacles. Values: name, reasons."""

    code = "tree_kept"


class InvalidRace(GitError):
    """A race cannot begin, or nothing in it can be picked. Values: name, rule."""

    code = "invalid_race"


class UnknownRace(GitError):
    """There is no race of this name. Values: name, known."""

    code = "unknown_race"


class NoRaces(UnknownRace):
    """The repository has no races."""

    texts = "no_races"


class InvalidHandOver(WatchroomError):
    """The work of an agent cannot be handed over so. Values: agent, rule."""

    code = "invalid_hand_over"


class InvalidRoutine(WatchroomError):
    """A routine cannot be added or run. Values: name, rule."""

    code = "invalid_routine"


class UnknownRoutine(WatchroomError):
    """There is no routine of this name. Values: name, known."""

    code = "unknown_routine"


class NoFreePorts(WatchroomError):
    """No block of ``count`` consecutive ports is free. Values: count, first (the lowest port)."""

    code = "no_free_ports"


class NothingToCommit(GitError):
    """The chosen authors have no work that can be committed. Values: blocked (paths whose changes cannot be
    committed separately from others' changes)."""

    code = "nothing_to_commit"


class InvalidBranch(GitError):
    """The branch cannot take the commit. Values: branch, rule."""

    code = "invalid_branch"


# Seals


class NotPublished(WatchroomError):
    """A seal could not be published. Values: place, reason."""

    code = "not_published"


class DeliveryUnusable(WatchroomError):
    """An address that alerts or seals are sent to cannot be used. Values: problem."""

    code = "delivery_unusable"


class NotSealed(WatchroomError):
    """No seal covers the rows yet. Values: until."""

    code = "not_sealed"


class ProofTooLarge(WatchroomError):
    """There are too many rows for one proof. Values: most."""

    code = "proof_too_large"


class InvalidSeal(DeniedError):
    """A text is not a seal. Values: rule."""

    code = "invalid_checkpoint"


# Signatures and keys


class InvalidPublicKey(DeniedError):
    """A public key is malformed, or of an unsupported kind. Values: rule."""

    code = "invalid_public_key"


class InvalidSignature(DeniedError):
    """A signature is malformed, or does not match the key or the text. Values: rule."""

    code = "invalid_signature"


class KeyFileUnusable(WatchroomError):
    """A key file is missing, malformed, or already exists. Values: path, reason."""

    code = "key_file_unusable"


class WrongPassphrase(DeniedError):
    """The passphrase does not open the key file. Values: path."""

    code = "wrong_passphrase"


class SignerLocked(WatchroomError):
    """The key is locked, because it was idle too long or its process has ended."""

    code = "signer_locked"


class SignerFailed(WatchroomError):
    """The key could not sign. Values: reason."""

    code = "signer_failed"


# Running agents again


class SessionInUse(WatchroomError):
    """The process that runs the session is alive. Values: session, machine, process."""

    code = "session_in_use"


class SessionHasEnded(WatchroomError):
    """The session has ended and cannot be resumed. Values: session, status."""

    code = "session_has_ended"


class SessionOfClient(WatchroomError):
    """The session belongs to a client that a person started. Only this client can resume it. Values: session,
    client."""

    code = "session_of_client"


# Scenarios


class InvalidScenario(WatchroomError):
    """The scenario file is invalid. Values: file, problems (one per line, with line numbers)."""

    code = "invalid_scenario"


# The machine


class PlatformUnsupported(WatchroomError):
    """This operating system cannot run Watchroom. Values: system, missing."""

    code = "platform_unsupported"


class NoService(WatchroomError):
    """The resident service does not answer. Values: reason."""

    code = "no_service"


class LocksUnsupported(WatchroomError):
    """The file system has no locks between processes. Values: path, reason."""

    code = "locks_unsupported"
