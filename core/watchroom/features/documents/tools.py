"""The tools of realtime documents (FILES-4)."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from pydantic import Field, JsonValue

from watchroom.algorithms.crdt import Document, LWWRegister, Text, agent_of
from watchroom.errors import InvalidArguments, ValueTooLarge
from watchroom.features.documents.document_editor import DocumentEditor
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL, Integer, Name, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset
from watchroom.model import MAX_TEXT_BYTES, Json, Row, timestamp

_NS_PER_MS: Final = 1_000_000
_FIELD: Final = ("doc_id", "field_name")
_EDITED_FIELDS: Final = {"doc_id", "field_name", "operation"}
T = TypeVar("T")

TOOLS: Final = Toolset("realtime")
tool = TOOLS.tool


class DocumentParams(ParamsModel):
    doc_id: Name


class FieldParams(DocumentParams):
    field_name: Name


class CreateDocumentParams(DocumentParams):
    fields: dict[str, Literal["lww_register", "rga", "or_set", "lww_map", "pn_counter"]] = Field(
        alias="schema"
    )


class CreateDocumentResult(ResultModel):
    doc_id: str
    version: int
    field_types: dict[str, str]


@tool("realtime_create_document", path=("doc_id",))
def realtime_create_document(context: ToolContext, params: CreateDocumentParams) -> CreateDocumentResult:
    """Create a document. Raise `InvalidPath`, `InvalidSchema`, `DocumentExists`."""
    schema: dict[str, Json] = {**params.fields}
    return _create_document_result(
        context, params, context.zones.realtime.create(context.call, params.doc_id, schema)
    )


@TOOLS.replay(realtime_create_document)
def _create_document_result(
    context: ToolContext, params: CreateDocumentParams, row: Row
) -> CreateDocumentResult:
    return CreateDocumentResult(doc_id=params.doc_id, version=row.version or 0, field_types={**params.fields})


class DocumentSnapshotResult(ResultModel):
    doc_id: str
    version: int
    snapshot: dict[str, JsonValue]
    field_types: dict[str, str]


@tool("realtime_get_document_snapshot", path=("doc_id",), reads_only=True)
def realtime_get_document_snapshot(context: ToolContext, params: DocumentParams) -> DocumentSnapshotResult:
    """Return all values of a document. Raise `DocumentNotFound`, `ValueTooLarge`."""
    with context.zones.realtime.read_document(context.call, context.view, params.doc_id) as editor:
        values = editor.document.values()
        _check_size(values)
        return DocumentSnapshotResult(
            doc_id=params.doc_id,
            version=editor.newest.version or 0,
            snapshot=cast("dict[str, JsonValue]", values),
            field_types={**editor.document.schema},
        )


class GetFieldResult(ResultModel):
    doc_id: str
    field_name: str
    field_type: str
    value: JsonValue
    version: int
    length: int | None = None
    """The number of code points of a text, elements of a set, or keys of a map."""
    author: str | None = None
    """The actor that last wrote a register."""
    timestamp: str | None = None

    def to_dict(self) -> dict[str, Json]:
        # Null is also a value.
        return {**super().to_dict(), "value": self.model_dump()["value"]}


@tool("realtime_get_field", path=_FIELD, reads_only=True)
def realtime_get_field(context: ToolContext, params: FieldParams) -> GetFieldResult:
    """Return the value of a field. Raise `DocumentNotFound`, `FieldNotFound`, `ValueTooLarge`."""
    with _read_field(context, params) as editor:
        field = editor.document.field(params.field_name)
        value = field.value
        if not isinstance(field, Text):
            # The size of a text is limited when it is written.
            _check_size(value)
        written = field.written if isinstance(field, LWWRegister) else None
        return GetFieldResult(
            doc_id=params.doc_id,
            field_name=params.field_name,
            field_type=editor.document.schema[params.field_name],
            value=cast("JsonValue", value),
            version=editor.newest.version or 0,
            length=len(value) if isinstance(value, (str, list, dict)) and not written else None,
            author=agent_of(written.stamp.replica) if written else None,
            timestamp=timestamp(written.stamp.time * _NS_PER_MS) if written else None,
        )


class SetFieldParams(FieldParams):
    """A register takes ``value``. A map takes ``value`` for ``key``, or a whole object without ``key``.
    ``remove`` removes ``key``."""

    value: JsonValue = None
    key: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    remove: bool | None = None


class SetFieldResult(ResultModel):
    doc_id: str
    field_name: str
    version: int


@tool("realtime_set_field", path=_FIELD, destroys=True, idempotent=True)
def realtime_set_field(context: ToolContext, params: SetFieldParams) -> SetFieldResult:
    """Write a register, a map, or one key of a map; or remove a key. Raise `InvalidArguments`,
    `DocumentNotFound`, `FieldNotFound`."""
    if params.remove and params.key is None:
        raise _missing(context, "key")
    if not params.remove and "value" not in params.model_fields_set:
        raise _missing(context, "value")
    with context.zones.realtime.edit_document(context.call, context.view, params.doc_id) as editor:
        if params.key is None:
            row = editor.set(params.field_name, params.value)
        elif params.remove:
            row = editor.remove_key(params.field_name, params.key)
        else:
            row = editor.set_key(params.field_name, params.key, params.value)
    return _set_field_result(context, params, row)


@TOOLS.replay(realtime_set_field)
def _set_field_result(context: ToolContext, params: SetFieldParams, row: Row) -> SetFieldResult:
    return SetFieldResult(doc_id=params.doc_id, field_name=params.field_name, version=row.version or 0)


class TextRange(ParamsModel):
    """The place and the text of an edit, in code points, clamped to the text (FILES-E7). An insertion has a
    ``position``. The other operations have a range."""

    position: Integer | None = None
    start: Annotated[Integer | None, Field(alias="from")] = None
    to: Integer | None = None
    text: str | None = None


class EditTextParams(FieldParams):
    operation: Literal["insert", "delete", "replace"]
    args: TextRange


class EditTextResult(SetFieldResult):
    operation: str
    position: int
    inserted_count: int
    deleted_count: int
    length: int | None = None
    """The length of the text as the caller knows it. The caller's next positions refer to this text."""
    notice: str | None = None
    """Set if others have written to the text since the caller read it."""


@tool("realtime_edit_text", path=_FIELD)
def realtime_edit_text(context: ToolContext, params: EditTextParams) -> EditTextResult:
    """Edit a text. Positions refer to the text as the actor last saw it, and are clamped to it. Raise
    `InvalidArguments`, `DocumentNotFound`, `FieldNotFound`."""
    where = params.args
    if params.operation == "insert":
        start = stop = _required(context, where.position, "args.position")
    else:
        start, stop = _required(context, where.start, "args.from"), _required(context, where.to, "args.to")
        if start > stop:
            problem = f"args.to: {context.texts('arguments.before_start')}"
            raise InvalidArguments(tool=context.call.tool, problems=problem)
    text = "" if params.operation == "delete" else _required(context, where.text, "args.text")

    with context.zones.realtime.edit_document(context.call, context.view, params.doc_id) as editor:
        done = editor.edit_text(params.field_name, params.operation, start, stop, text)
        version = editor.newest.version or 0
    return EditTextResult(
        doc_id=params.doc_id,
        field_name=params.field_name,
        operation=params.operation,
        version=(done.row.version or 0) if done.row else version,
        position=done.edit.position,
        inserted_count=done.edit.inserted,
        deleted_count=done.edit.deleted,
        length=done.length,
        notice=context.texts("realtime.text_behind") if done.was_behind else None,
    )


@TOOLS.replay(realtime_edit_text)
def _edit_text_result(context: ToolContext, params: EditTextParams, row: Row) -> EditTextResult:
    at, added, removed = (row.detail.get(key) for key in ("at", "added", "removed"))
    return EditTextResult(
        **_edited(params, row),
        position=at if isinstance(at, int) else 0,
        inserted_count=added if isinstance(added, int) else 0,
        deleted_count=removed if isinstance(removed, int) else 0,
    )


class EditSetParams(FieldParams):
    operation: Literal["add", "remove", "list", "contains"]
    element: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None


class EditSetResult(SetFieldResult):
    operation: str
    element: str | None = None
    exists: bool | None = None
    elements: list[str] | None = None
    count: int | None = None
    notice: str | None = None


@tool("realtime_edit_set", path=_FIELD, idempotent=True)
def realtime_edit_set(context: ToolContext, params: EditSetParams) -> EditSetResult:
    """Change or read a set. Raise `InvalidArguments`, `DocumentNotFound`, `FieldNotFound`."""
    element = params.element
    if params.operation == "list":
        with _read_field(context, params) as editor:
            elements = editor.document.set(params.field_name).value
            _check_size(elements)
            return _set_state(params, editor.document, editor.newest, elements=elements)
    if element is None:
        raise _missing(context, "element")
    if params.operation == "contains":
        with _read_field(context, params) as editor:
            return _set_state(params, editor.document, editor.newest)
    with context.zones.realtime.edit_document(context.call, context.view, params.doc_id) as editor:
        change = editor.add if params.operation == "add" else editor.remove
        row = change(params.field_name, element)
        stays = params.operation == "remove" and element in editor.document.set(params.field_name)
        notice = context.texts("realtime.set_behind") if stays else None
        return _set_state(params, editor.document, row, notice=notice)


@TOOLS.replay(realtime_edit_set)
def _edit_set_result(context: ToolContext, params: EditSetParams, row: Row) -> EditSetResult:
    return EditSetResult(**_edited(params, row), element=params.element)


class EditCounterParams(FieldParams):
    operation: Literal["increment", "decrement", "value"]
    amount: Annotated[int, Field(ge=0, le=2**53 - 1), NO_BOOL] | None = None


class EditCounterResult(SetFieldResult):
    operation: str
    value: int


@tool("realtime_edit_counter", path=_FIELD)
def realtime_edit_counter(context: ToolContext, params: EditCounterParams) -> EditCounterResult:
    """Change or read a counter. Raise `DocumentNotFound`, `FieldNotFound`."""
    if params.operation == "value":
        with _read_field(context, params) as editor:
            return _counter_state(params, editor.document, editor.newest)
    amount = 1 if params.amount is None else params.amount
    with context.zones.realtime.edit_document(context.call, context.view, params.doc_id) as editor:
        row = editor.count(params.field_name, amount if params.operation == "increment" else -amount)
        return _counter_state(params, editor.document, row)


@TOOLS.replay(realtime_edit_counter)
def _edit_counter_result(context: ToolContext, params: EditCounterParams, row: Row) -> EditCounterResult:
    with _read_field(context, params) as editor:
        return _counter_state(params, editor.document, row)


class MergeStateParams(DocumentParams):
    state: dict[str, JsonValue]


class MergeStateResult(ResultModel):
    doc_id: str
    version: int
    merged_fields: list[str]


@tool("realtime_merge_state", path=("doc_id",), idempotent=True)
def realtime_merge_state(context: ToolContext, params: MergeStateParams) -> MergeStateResult:
    """Merge the state of a remote replica into a document. Raise `DocumentNotFound`, `InvalidState`."""
    state: dict[str, Json] = {**params.state}
    return _merge_state_result(
        context, params, context.zones.realtime.merge_state(context.call, params.doc_id, state)
    )


@TOOLS.replay(realtime_merge_state)
def _merge_state_result(context: ToolContext, params: MergeStateParams, row: Row) -> MergeStateResult:
    fields = row.detail.get("fields")
    merged = [str(each) for each in fields] if isinstance(fields, list) else []
    return MergeStateResult(doc_id=params.doc_id, version=row.version or 0, merged_fields=merged)


def _read_field(context: ToolContext, params: FieldParams) -> AbstractContextManager[DocumentEditor]:
    return context.zones.realtime.read_document(context.call, context.view, params.doc_id, params.field_name)


def _set_state(
    params: EditSetParams,
    document: Document,
    row: Row,
    *,
    elements: list[str] | None = None,
    notice: str | None = None,
) -> EditSetResult:
    found = document.set(params.field_name)
    return EditSetResult(
        **_edited(params, row),
        element=params.element,
        exists=None if params.element is None else params.element in found,
        elements=elements,
        count=len(found),
        notice=notice,
    )


def _counter_state(params: EditCounterParams, document: Document, row: Row) -> EditCounterResult:
    return EditCounterResult(**_edited(params, row), value=document.counter(params.field_name).value)


def _edited(params: EditTextParams | EditSetParams | EditCounterParams, row: Row) -> dict[str, Any]:
    return {**params.model_dump(include=_EDITED_FIELDS), "version": row.version or 0}


def _check_size(value: Json) -> None:
    """Raise `ValueTooLarge` if many writes have made ``value`` larger than the limit for a text."""
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > MAX_TEXT_BYTES:
        raise ValueTooLarge(size=size, limit=MAX_TEXT_BYTES)


def _required(context: ToolContext, value: T | None, name: str) -> T:
    if value is None:
        raise _missing(context, name)
    return value


def _missing(context: ToolContext, name: str) -> InvalidArguments:
    return InvalidArguments(tool=context.call.tool, problems=f"{name}: {context.texts('arguments.missing')}")
