"""Who a person is, as the content of a row says."""

from __future__ import annotations

import json

import pytest
from people.conftest import DANA
from watchroom.features.people.rows import Person, parse_person
from watchroom.model import Json


def described(**fields: Json) -> str:
    return json.dumps({"role": "owner", "keys": [DANA.key.line], **fields})


def test_a_person_is_described_by_a_role_and_keys() -> None:
    assert parse_person("dana", described()) == Person("dana", "owner", (DANA.key.line,))


@pytest.mark.parametrize(
    "fields",
    [
        {"keys": ["no key"]},
        {"keys": []},
        {"keys": [1]},
        {"role": "queen"},
        {"expires": "soon"},
        {"tools": "*"},
    ],
    ids=str,
)
def test_what_is_no_description_describes_nobody(fields: dict[str, Json]) -> None:
    assert parse_person("dana", described(**fields)) is None
