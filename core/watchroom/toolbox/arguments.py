"""What each tool takes. Descriptions stand in the catalogues, under ``tool.{tool}`` and ``argument``."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticKnownError


def _no_bool(problem: Literal["int_type", "float_type"]) -> BeforeValidator:
    def refuse_bool(given: object) -> object:
        if isinstance(given, bool):
            raise PydanticKnownError(problem)
        return given

    return BeforeValidator(refuse_bool)


Integer: TypeAlias = Annotated[int, _no_bool("int_type")]
"""A whole number; true and false are none, although Python counts them among its integers."""
Number: TypeAlias = Annotated[float, _no_bool("float_type")]

Message = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(max_length=2000)]
Version = Annotated[Integer, Field(ge=1, le=2**31 - 1)]

RowNumber = Annotated[Integer, Field(ge=1, le=2**62)]


class Arguments(BaseModel):
    """Base of all: frozen, nothing unknown is accepted, built when first used."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class NoArguments(Arguments):
    pass


class SaveToMyWorkspace(Arguments):
    filename: Name
    content: str
    message: Message | None = None


class ReadFromWorkspace(Arguments):
    agent_id: Name
    filename: Name


class ListWorkspaceFiles(Arguments):
    agent_id: Name


class DeleteFromMyWorkspace(Arguments):
    filename: Name


class HandoffFile(Arguments):
    to_agent: Name
    filename: Name
    content: str
    message: Message


class CheckMyHandoffs(Arguments):
    include_acknowledged: bool | None = None


class ReadHandoff(Arguments):
    from_agent: Name
    filename: Name


class AcknowledgeHandoff(Arguments):
    from_agent: Name
    filename: Name
    message: Message | None = None


class CollabWrite(Arguments):
    filepath: Name
    content: str
    message: Message
    expected_version: Annotated[Integer, Field(ge=-1, le=2**31 - 1)] | None = None


class CollabRead(Arguments):
    filepath: Name
    version: Version | None = None


class ResolveConflict(Arguments):
    filepath: Name
    content: str
    message: Message
    expected_version: Annotated[Integer, Field(ge=0, le=2**31 - 1)]
    conflicts: Annotated[list[RowNumber], Field(min_length=1, max_length=1000)]


class DismissConflict(Arguments):
    conflict: RowNumber
    message: Message | None = None


class RevertOutsideEdit(Arguments):
    filepath: Name
    conflict: RowNumber | None = None
    message: Message | None = None


class MarkAsSeen(Arguments):
    row: RowNumber
    message: Message | None = None


class CollabHistory(Arguments):
    filepath: Name
    limit: Annotated[Integer, Field(ge=1)] | None = None


class CollabRollback(Arguments):
    filepath: Name
    to_version: Version
    expected_version: Version | None = None
    message: Message | None = None


class DecisionGiven(Arguments):
    call_id: Name
    approved: bool
    reason: Message | None = None
    arguments: str | None = None


class AnswerRequest(Arguments):
    request: RowNumber
    approved: bool | None = None
    reason: Message | None = None
    decisions: Annotated[list[DecisionGiven], Field(max_length=1000)] | None = None
    text: str | None = None
    values: Annotated[list[str], Field(max_length=1000)] | None = None


class SteerAgent(Arguments):
    agent_id: Name
    session_id: Name | None = None


class CancelAgent(SteerAgent):
    reason: Message | None = None


class Payload(Arguments):
    """What a message says."""

    text: Annotated[str, Field(min_length=1, max_length=100_000)]


class SendMessage(Arguments):
    to: Name
    payload: Payload


class SpawnAgent(Arguments):
    role: Annotated[str, Field(min_length=1, max_length=100)]
    instructions: Annotated[str, Field(min_length=1, max_length=100_000)]
    name: Annotated[str, Field(max_length=64)] | None = None


class TerminateAgent(Arguments):
    agent_id: Name
    reason: Message | None = None


class EndTask(Arguments):
    status: Literal["done", "failed", "cancelled"]
    report: Message
    task_id: Name | None = None


class CreateDocument(Arguments):
    doc_id: Name
    fields: dict[str, Literal["lww_register", "rga", "or_set", "lww_map", "pn_counter"]] = Field(
        alias="schema"
    )


class GetDocumentSnapshot(Arguments):
    doc_id: Name


class GetField(Arguments):
    doc_id: Name
    field_name: Name


class SetField(Arguments):
    """A register takes a value; a map one under a key, or a whole object; ``remove`` takes a key away."""

    doc_id: Name
    field_name: Name
    value: JsonValue = None
    key: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    remove: bool | None = None


class TextRange(Arguments):
    """Where and what, in code points, clamped to the text (spec 1 E-7): an insertion has a position, the
    others a range."""

    position: Integer | None = None
    start: Annotated[Integer | None, Field(alias="from")] = None
    to: Integer | None = None
    text: str | None = None


class EditText(Arguments):
    doc_id: Name
    field_name: Name
    operation: Literal["insert", "delete", "replace"]
    args: TextRange


class EditSet(Arguments):
    doc_id: Name
    field_name: Name
    operation: Literal["add", "remove", "list", "contains"]
    element: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None


class EditCounter(Arguments):
    doc_id: Name
    field_name: Name
    operation: Literal["increment", "decrement", "value"]
    amount: Annotated[Integer, Field(ge=0, le=2**53 - 1)] | None = None


class MergeState(Arguments):
    doc_id: Name
    state: dict[str, JsonValue]


class ReadFile(Arguments):
    path: Name


class WriteFile(Arguments):
    path: Name
    content: str


class RunCommand(Arguments):
    command: Annotated[str, Field(max_length=100_000)]
    timeout_ms: Annotated[Integer, Field(alias="timeoutMs", ge=1, le=3_600_000)] = 60_000


class OpenBuffer(Arguments):
    source: Literal["private", "collab", "board", "file"]
    path: Name
    name: Name | None = None


class CloseBuffer(Arguments):
    buffer: Name
    discard: bool | None = None


class BufferReplace(Arguments):
    old_text: str
    new_text: str


class BufferReplaceSelection(Arguments):
    selection_id: Annotated[Integer, Field(ge=1, le=2**31 - 1)]
    new_text: str | None = None


class BufferAppend(Arguments):
    text: str


class BufferFlush(Arguments):
    message: Message | None = None


class ListFiles(Arguments):
    path: Name | None = None
