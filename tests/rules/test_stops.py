"""Who is stopped, as rows say."""

from __future__ import annotations

from rules.rows import row
from watchroom.model import PAUSE, RESUME
from watchroom.rules.stops import STOPPED_PATH, stopped_after, stopped_by

BEFORE = {"alice": 3, "bob": 4}
NEWEST = row({"agents": {"carol": 9}}, zone="workspace", path=STOPPED_PATH, version=2)


def test_the_newest_version_says_who_is_stopped() -> None:
    assert stopped_after(BEFORE, NEWEST) == stopped_by(NEWEST) == {"carol": 9}
    assert stopped_by(row({"agents": ["carol"]})) == stopped_by(row()) == {}
    assert stopped_by(row({"agents": {"carol": "9", "dave": 8}})) == {"dave": 8}


def test_no_other_row_of_the_workspace_says_so() -> None:
    for other in (NEWEST._replace(zone="collab"), NEWEST._replace(path="a"), NEWEST._replace(version=None)):
        assert stopped_after(BEFORE, other) is BEFORE


def test_whom_a_person_lets_go_on_is_not_stopped() -> None:
    resumed = row(zone="session", tool=RESUME, actor="human:dana", path="alice")
    assert stopped_after(BEFORE, resumed) == {"bob": 4}
    for other in (
        resumed._replace(zone="agent"),
        resumed._replace(tool=PAUSE),
        resumed._replace(actor="bob"),
        resumed._replace(path="carol"),
    ):
        assert stopped_after(BEFORE, other) is BEFORE
