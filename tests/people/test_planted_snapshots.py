"""What the dashboard begins with is kept where a shell can write."""

from __future__ import annotations

from people.conftest import Team
from people.planted import plant
from watchroom.model import ANSWER, Note
from watchroom.projections import Fold, read_model
from watchroom.projections.snapshots import keep_snapshot


def test_a_planted_snapshot_hides_no_need(team: Team) -> None:
    journal = team.workspace.journal
    team.ask()
    forged = plant(team.root, "bob", ANSWER, "request", "alice/1/1", content="{}", version=2, base=1)
    journal.append([Note("alice", "collab_list", "collab", "")])
    fold = Fold(journal.content, journal.row)
    fold.apply(
        row._replace(outcome="denied", version=None) if row.seq == forged else row for row in journal.rows(0)
    )
    keep_snapshot(journal, fold)
    model = read_model(journal, journal.last_seq())
    assert "forged" in [need.kind for need in model.needs]
