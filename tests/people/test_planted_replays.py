"""Statements that were signed and refused, written again."""

from __future__ import annotations

import json

from people.conftest import DANA, Team
from people.effects import LAX
from people.planted import plant, plant_many
from watchroom.model import Write
from watchroom.projections import read_model
from watchroom.rules.settings import PATH, ZONE


def test_settings_that_lost_a_race_do_not_hold_later(team: Team) -> None:
    """However many refused rows stand between the first that had the statement and its copy."""
    store = team.workspace._store
    plant(team.root, "bob", "sign_settings", ZONE, PATH, content="", version=1, base=0)
    team.sign_as(DANA)
    refused = store.write(Write("human:dana", "sign_settings", ZONE, PATH, LAX, expected=0)).row
    assert refused.outcome == "conflict"
    store.write(Write("human:dana", "sign_settings", ZONE, PATH, "", expected=1))
    team.sign_as(None)
    detail = json.dumps({name: refused.detail[name] for name in ("signed", "signature")})
    noise = {"actor": "bob", "tool": "x", "zone": ZONE, "path": PATH, "version": None, "outcome": "denied"}
    plant_many(team.root, [noise] * 1_001)
    number = plant(
        *(team.root, "human:dana", "sign_settings", ZONE, PATH),
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
