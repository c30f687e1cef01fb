"""What can be refused about a realtime document."""

from __future__ import annotations

from typing import Final

from watchroom.errors import DeniedError, JournalDamaged, WatchroomError


class DocumentNotFound(WatchroomError):
    """No realtime document of that id. Values: document, known."""

    code = "document_not_found"


class DocumentExists(WatchroomError):
    """A document of that id exists already. Values: document, by, fields."""

    code = "document_exists"


class FieldNotFound(WatchroomError):
    """A document has no such field. Values: field, known."""

    code = "field_not_found"


_FIELD_TOOLS: Final = {
    "rga": "realtime_edit_text",
    "or_set": "realtime_edit_set",
    "pn_counter": "realtime_edit_counter",
}
"""The tools of the fields that realtime_set_field does not write."""


class WrongFieldType(WatchroomError):
    """An operation that the field's type does not have, or a value that it cannot take. Values: ``field``,
    its ``type``, the types ``wanted``, and the tool for this type."""

    code = "wrong_field_type"

    def __init__(self, *, field: str, type: str, wanted: str) -> None:  # noqa: A002  # as the texts name it
        tool = _FIELD_TOOLS.get(type, "realtime_set_field")
        super().__init__(field=field, type=type, wanted=wanted, tool=tool)


class InvalidSchema(DeniedError):
    """A document cannot have these fields; ``rule`` names why. Values: rule, field."""

    code = "invalid_schema"


class InvalidState(DeniedError):
    """A replica's state or delta that is malformed, or may not be merged. Nothing of it was merged. Values:
    ``rule``, ``field``."""

    code = "invalid_state"

    def __init__(self, *, rule: object, field: str = "-") -> None:
        super().__init__(rule=rule, field=field)


class CounterOverflow(DeniedError):
    """A counter cannot take that much more from one replica. Values: limit."""

    code = "counter_overflow"


class DocumentDamaged(JournalDamaged):
    """A version of a realtime document cannot be read. Values: document, version."""

    code = "document_damaged"
