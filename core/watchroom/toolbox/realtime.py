"""The tools of realtime documents (spec 1 FR-4)."""

from __future__ import annotations

from typing import Final, TypeVar, cast

from pydantic import JsonValue

from watchroom.crdt import Document, LWWRegister, Text, TextEdit, agent_of
from watchroom.errors import InvalidArguments
from watchroom.model import Json, Row, timestamp
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller

_NS_PER_MS: Final = 1_000_000
T = TypeVar("T")


def create(caller: Caller, args: take.CreateDocument) -> give.DocumentCreated:
    schema: dict[str, Json] = {**args.fields}
    return created(caller, args, caller.realtime.create(caller.actor, args.doc_id, schema))


def created(caller: Caller, args: take.CreateDocument, row: Row) -> give.DocumentCreated:
    return give.DocumentCreated(doc_id=args.doc_id, version=row.version or 0, field_types={**args.fields})


def snapshot(caller: Caller, args: take.GetDocumentSnapshot) -> give.DocumentSnapshot:
    with caller.realtime.reading(caller.view, args.doc_id, "", "realtime_get_document_snapshot") as editor:
        return give.DocumentSnapshot(
            doc_id=args.doc_id,
            version=editor.newest.version or 0,
            snapshot=cast("dict[str, JsonValue]", editor.document.values()),
            field_types={**editor.document.schema},
        )


def get_field(caller: Caller, args: take.GetField) -> give.FieldValue:
    with caller.realtime.reading(caller.view, args.doc_id, args.field_name, "realtime_get_field") as editor:
        field = editor.document.field(args.field_name)
        value = field.value
        written = field.written if isinstance(field, LWWRegister) else None
        return give.FieldValue(
            doc_id=args.doc_id,
            field_name=args.field_name,
            field_type=editor.document.schema[args.field_name],
            value=cast("JsonValue", value),
            version=editor.newest.version or 0,
            length=len(value) if isinstance(value, (str, list, dict)) and not written else None,
            author=agent_of(written.stamp.replica) if written else None,
            timestamp=timestamp(written.stamp.time * _NS_PER_MS) if written else None,
        )


def set_field(caller: Caller, args: take.SetField) -> give.FieldWritten:
    """With a key one entry of a map is written or removed; without, a register is, or the whole map."""
    if args.remove and args.key is None:
        raise _missing(caller, "realtime_set_field", "key")
    if not args.remove and "value" not in args.model_fields_set:
        raise _missing(caller, "realtime_set_field", "value")
    with caller.realtime.editing(caller.view, args.doc_id, "realtime_set_field") as editor:
        if args.key is None:
            row = editor.set(args.field_name, args.value)
        elif args.remove:
            row = editor.remove_key(args.field_name, args.key)
        else:
            row = editor.set_key(args.field_name, args.key, args.value)
    return written(caller, args, row)


def written(caller: Caller, args: take.SetField, row: Row) -> give.FieldWritten:
    return give.FieldWritten(doc_id=args.doc_id, field_name=args.field_name, version=row.version or 0)


def edit_text(caller: Caller, args: take.EditText) -> give.TextEdited:
    """Positions count in the text as the caller last saw it, and are clamped to it."""
    where = args.args
    if args.operation == "insert":
        start = stop = _given(caller, where.position, "args.position")
    else:
        start, stop = _given(caller, where.start, "args.from"), _given(caller, where.to, "args.to")
        if start > stop:
            problem = f"args.to: {caller.texts('arguments.before_start')}"
            raise InvalidArguments(tool="realtime_edit_text", problems=problem)
    text = "" if args.operation == "delete" else _given(caller, where.text, "args.text")

    def edit(field: Text, replica: str) -> TextEdit:
        return field.replace(start, stop, text, replica)

    with caller.realtime.editing(caller.view, args.doc_id, "realtime_edit_text") as editor:
        done = editor.edit_text(args.field_name, args.operation, edit)
        version = editor.newest.version or 0
    return give.TextEdited(
        doc_id=args.doc_id,
        field_name=args.field_name,
        operation=args.operation,
        version=(done.row.version or 0) if done.row else version,
        position=done.edit.position,
        inserted_count=done.edit.inserted,
        deleted_count=done.edit.deleted,
        length=done.length,
        notice=caller.texts("realtime.text_behind") if done.was_behind else None,
    )


def text_edited(caller: Caller, args: take.EditText, row: Row) -> give.TextEdited:
    at, added, removed = (row.detail.get(key) for key in ("at", "added", "removed"))
    return give.TextEdited(
        doc_id=args.doc_id,
        field_name=args.field_name,
        operation=args.operation,
        version=row.version or 0,
        position=at if isinstance(at, int) else 0,
        inserted_count=added if isinstance(added, int) else 0,
        deleted_count=removed if isinstance(removed, int) else 0,
    )


def edit_set(caller: Caller, args: take.EditSet) -> give.SetEdited:
    tool = "realtime_edit_set"
    element = args.element
    if args.operation == "list":
        with caller.realtime.reading(caller.view, args.doc_id, args.field_name, tool) as editor:
            return _set_result(
                args, editor.document, editor.newest, elements=editor.document.set(args.field_name).value
            )
    if element is None:
        raise _missing(caller, tool, "element")
    if args.operation == "contains":
        with caller.realtime.reading(caller.view, args.doc_id, args.field_name, tool) as editor:
            return _set_result(args, editor.document, editor.newest)
    with caller.realtime.editing(caller.view, args.doc_id, tool) as editor:
        change = editor.add if args.operation == "add" else editor.remove
        row = change(args.field_name, element)
        stays = args.operation == "remove" and element in editor.document.set(args.field_name)
        notice = caller.texts("realtime.set_behind") if stays else None
        return _set_result(args, editor.document, row, notice=notice)


def _set_result(
    args: take.EditSet,
    document: Document,
    row: Row,
    *,
    elements: list[str] | None = None,
    notice: str | None = None,
) -> give.SetEdited:
    found = document.set(args.field_name)
    return give.SetEdited(
        doc_id=args.doc_id,
        field_name=args.field_name,
        operation=args.operation,
        version=row.version or 0,
        element=args.element,
        exists=None if args.element is None else args.element in found,
        elements=elements,
        count=len(found),
        notice=notice,
    )


def set_edited(caller: Caller, args: take.EditSet, row: Row) -> give.SetEdited:
    return give.SetEdited(
        doc_id=args.doc_id,
        field_name=args.field_name,
        operation=args.operation,
        version=row.version or 0,
        element=args.element,
    )


def edit_counter(caller: Caller, args: take.EditCounter) -> give.CounterEdited:
    tool = "realtime_edit_counter"
    if args.operation == "value":
        with caller.realtime.reading(caller.view, args.doc_id, args.field_name, tool) as editor:
            return _counted(args, editor.document, editor.newest)
    amount = 1 if args.amount is None else args.amount
    with caller.realtime.editing(caller.view, args.doc_id, tool) as editor:
        row = editor.count(args.field_name, amount if args.operation == "increment" else -amount)
        return _counted(args, editor.document, row)


def counter_edited(caller: Caller, args: take.EditCounter, row: Row) -> give.CounterEdited:
    with caller.realtime.reading(
        caller.view, args.doc_id, args.field_name, "realtime_edit_counter"
    ) as editor:
        return _counted(args, editor.document, row)


def _counted(args: take.EditCounter, document: Document, row: Row) -> give.CounterEdited:
    return give.CounterEdited(
        doc_id=args.doc_id,
        field_name=args.field_name,
        operation=args.operation,
        version=row.version or 0,
        value=document.counter(args.field_name).value,
    )


def merge_state(caller: Caller, args: take.MergeState) -> give.StateMerged:
    state: dict[str, Json] = {**args.state}
    return state_merged(caller, args, caller.realtime.merge(caller.actor, args.doc_id, state))


def state_merged(caller: Caller, args: take.MergeState, row: Row) -> give.StateMerged:
    fields = row.detail.get("fields")
    merged = [str(each) for each in fields] if isinstance(fields, list) else []
    return give.StateMerged(doc_id=args.doc_id, version=row.version or 0, merged_fields=merged)


def _given(caller: Caller, value: T | None, name: str) -> T:
    if value is None:
        raise _missing(caller, "realtime_edit_text", name)
    return value


def _missing(caller: Caller, tool: str, name: str) -> InvalidArguments:
    return InvalidArguments(tool=tool, problems=f"{name}: {caller.texts('arguments.missing')}")
