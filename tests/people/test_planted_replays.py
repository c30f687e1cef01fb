"""Statements that were signed and refused, written again."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from people.conftest import CALL, DANA, EVE, Team
from people.effects import LAX, REQUEST
from people.planted import change, plant, plant_many
from watchroom.errors import RequestTaken, WatchroomError
from watchroom.features.config.rows import SETTINGS_PATH, SETTINGS_ZONE
from watchroom.features.overview.snapshots import read_model
from watchroom.features.requests.rows import decide_all, dump_request
from watchroom.kernel.call_context import CallContext
from watchroom.model import ASK, Write


def test_settings_that_lost_a_race_do_not_hold_later(team: Team) -> None:
    """However many refused rows stand between the first that had the statement and its copy."""
    store = team.workspace._store
    plant(team.root, "bob", "sign_settings", SETTINGS_ZONE, SETTINGS_PATH, content="", version=1, base=0)
    team.sign_as(DANA)
    refused = store.write(
        Write("human:dana", "sign_settings", SETTINGS_ZONE, SETTINGS_PATH, LAX, expected=0)
    ).row
    assert refused.outcome == "conflict"
    store.write(Write("human:dana", "sign_settings", SETTINGS_ZONE, SETTINGS_PATH, "", expected=1))
    team.sign_as(None)
    detail = json.dumps({name: refused.detail[name] for name in ("signed", "signature")})
    noise: dict[str, object] = {
        "actor": "bob",
        "tool": "x",
        "zone": SETTINGS_ZONE,
        "path": SETTINGS_PATH,
        "version": None,
        "outcome": "denied",
    }
    plant_many(team.root, [noise] * 1_001)
    number = plant(
        *(team.root, "human:dana", "sign_settings", SETTINGS_ZONE, SETTINGS_PATH),
        content=LAX,
        detail=detail,
        version=3,
        base=0,
    )
    row = team.workspace.journal.row(number)
    assert row is not None
    assert team.workspace.people.find_flaw(row) == "decision_repeated"
    assert list(team.workspace.config.allowed_hosts) == []
    model = read_model(team.workspace.journal, number)
    assert [need.row.error for need in model.needs if need.row.seq == number] == ["decision_repeated"]


def test_an_approval_is_of_the_very_row_that_asked(team: Team) -> None:
    """Another row of the same path and version, which asks for less, is what people see."""
    number = team.ask()
    harmless = replace(REQUEST, calls=(replace(CALL, arguments='{"command": "ls"}'),))
    change(team.root, "DROP INDEX rows_version")
    shown = plant(
        *(team.root, "alice", ASK, "request", "alice/1/1"),
        content=dump_request(harmless),
        detail={"kind": "approve", "tools": ["run_command"], "subjects": ["ls"]},
        version=1,
        base=0,
    )
    assert number != shown
    team.sign_as(EVE)
    with suppress(WatchroomError):
        team.workspace.requests.answer(CallContext("human:eve"), shown, decide_all(harmless, True))
    with pytest.raises(RequestTaken):
        team.workspace.requests.ended("alice/1/1", REQUEST)
