"""Rows that enrolled people and are gone do not open the workspace: TRUST, section 3."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from people.conftest import DANA, EVE, Team, close, person
from watchroom import Workspace
from watchroom.errors import MayNotDecide, SignatureRequired
from watchroom.features.overview.snapshots import read_model
from watchroom.features.requests.rows import PendingCall, Request, decide_all
from watchroom.kernel.call_context import CallContext

CALL = PendingCall("c1", "run_command", '{"command": "make"}')


def delete_people(root: Path) -> None:
    """Delete the rows of all people by SQL, as a shell of this user can."""
    with sqlite3.connect(root / ".watchroom/journal.db") as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("DELETE FROM rows WHERE zone = 'person'")
        for table in ("heads",):
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
                database.execute(f"DELETE FROM {table} WHERE zone = 'person'")
    database.close()


def test_nobody_decides_where_the_rows_of_people_are_gone(team: Team) -> None:
    team.workspace.close()
    Workspace.open(team.root, create=False).close()
    delete_people(team.root)
    with Workspace.open(team.root, create=False) as workspace:
        request = Request("approve", calls=(CALL,))
        asked = workspace.requests.ask(CallContext("alice"), "alice/1/1", request)
        with pytest.raises(SignatureRequired):
            workspace.requests.answer(CallContext("human:dana"), asked.seq, decide_all(request, True))
        assert workspace.requests.ended("alice/1/1") is None
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert [need.row.tool for need in model.needs if need.kind == "forged"] == ["people_lost"]
        assert any(problem.zone == "person" for problem in workspace.verify())
        workspace.signing.signer = EVE
        with pytest.raises(MayNotDecide):
            workspace.people.add("human:eve", person("eve", "owner", EVE))


def test_a_need_says_so_once_however_often_it_is_opened(team: Team) -> None:
    team.workspace.close()
    Workspace.open(team.root, create=False).close()
    delete_people(team.root)
    for _ in range(3):
        with Workspace.open(team.root, create=False) as workspace:
            assert [row.tool for row in workspace.journal.rows(0)].count("people_lost") == 1


def test_a_person_can_forget_it(team: Team) -> None:
    team.workspace.close()
    Workspace.open(team.root, create=False).close()
    delete_people(team.root)
    with Workspace.open(team.root, create=False) as workspace:
        assert workspace.people.current().is_closed
        workspace.sealing.forget_replaced()
    with Workspace.open(team.root, create=False) as workspace:
        assert not workspace.people.current().is_closed
        close(workspace)
        assert workspace.people.current().is_closed


def test_people_who_revoke_each_other_open_the_workspace(team: Team) -> None:
    team.sign_as(DANA)
    for name in ("eve", "viktor", "dana"):
        team.workspace.people.revoke("human:dana", name)
    team.workspace.close()
    with Workspace.open(team.root, create=False) as workspace:
        assert not workspace.people.current().is_closed
        assert workspace.verify() == []
