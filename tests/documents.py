"""Shared helpers for tests of realtime documents."""

from __future__ import annotations

from typing import Any

from calls import ok
from watchroom import Toolbox


def create(toolbox: Toolbox, doc_id: str = "doc1", **schema: str) -> None:
    ok(toolbox, "realtime_create_document", doc_id=doc_id, schema=schema)


def put(toolbox: Toolbox, field: str, value: object, doc_id: str = "doc1") -> None:
    ok(toolbox, "realtime_set_field", doc_id=doc_id, field_name=field, value=value)


def get(toolbox: Toolbox, field: str, doc_id: str = "doc1") -> Any:
    return ok(toolbox, "realtime_get_field", doc_id=doc_id, field_name=field)["value"]


def edit(toolbox: Toolbox, operation: str, **args: object) -> dict[str, Any]:
    """Edit the text ``body``."""
    return ok(toolbox, "realtime_edit_text", doc_id="doc1", field_name="body", operation=operation, args=args)


def tag(toolbox: Toolbox, operation: str, element: str | None = None, field: str = "tags") -> dict[str, Any]:
    given = {} if element is None else {"element": element}
    return ok(toolbox, "realtime_edit_set", doc_id="doc1", field_name=field, operation=operation, **given)


def count(toolbox: Toolbox, operation: str, amount: int | None = None) -> int:
    given = {} if amount is None else {"amount": amount}
    result = ok(
        toolbox, "realtime_edit_counter", doc_id="doc1", field_name="score", operation=operation, **given
    )
    value: int = result["value"]
    return value
