"""Signed decisions name the workspace by its id."""

from __future__ import annotations

from pathlib import Path

from calls import ok
from evidence import all_rows
from people.conftest import DANA, close
from watchroom import Workspace
from watchroom.features.overview.fold import Fold


def test_signed_decisions_of_a_fork_count_in_its_dashboard(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        workspace.flush()
        Workspace.fork(workspace.journal, workspace.journal.last_seq(), tmp_path / "fork")
    with Workspace.open(tmp_path / "fork") as fork:
        close(fork)
        fork.signing.signer = DANA
        ok(fork.tools_for_human("dana"), "set_budget", scope="team", measure="tokens", most=1000)
        fold = Fold(fork.journal.content, fork.journal.row)
        fold.apply(all_rows(fork.journal))
        model = fold.model()
        assert model.people == fork.people.current()
        assert [(need.kind, need.row.tool) for need in model.needs] == []
