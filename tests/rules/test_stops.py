"""Who is stopped, as rows say."""

from __future__ import annotations

from rules.rows import row
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.sessions.rules import stopped_after, stopped_by
from watchroom.model import PAUSE, RELEASE_AGENTS, RESUME

BEFORE = {"alice": 3, "bob": 4}
NEWEST = row({"agents": {"carol": 5}}, zone="workspace", path=STOPPED_PATH, version=2)


def test_stopping_adds_agents_and_takes_none_away() -> None:
    assert stopped_after(BEFORE, NEWEST) == {**BEFORE, "carol": 5}
    assert stopped_by(NEWEST) == {"carol": 5}
    assert stopped_after(BEFORE, NEWEST._replace(detail_json='{"agents": {}}')) == BEFORE
    assert stopped_by(row({"agents": ["carol"]})) == stopped_by(row()) == {}
    assert stopped_by(row({"agents": {"carol": "9", "dave": 3}})) == {"dave": 3}


def test_releasing_leaves_the_agents_that_it_lists() -> None:
    release = row({"agents": {"bob": 4, "mallory": 9}}, zone="workspace", path=STOPPED_PATH, version=3)
    assert stopped_after(BEFORE, release._replace(tool=RELEASE_AGENTS)) == {"bob": 4}


def test_no_other_row_of_the_workspace_says_so() -> None:
    for other in (NEWEST._replace(zone="collab"), NEWEST._replace(path="a"), NEWEST._replace(version=None)):
        assert stopped_after(BEFORE, other) is BEFORE


def test_whom_a_person_lets_go_on_is_not_stopped() -> None:
    resumed = row(zone="session", tool=RESUME, actor="human:dana", path="alice")
    assert stopped_after(BEFORE, resumed) == {"bob": 4}
    assert stopped_after(BEFORE, resumed._replace(path="carol")) is BEFORE
    # A leave to resume later lets nobody go on now.
    assert stopped_after(BEFORE, resumed._replace(detail_json='{"when": "reset"}')) is BEFORE


def test_an_agent_that_is_paused_again_does_not_go_on_with_the_others() -> None:
    paused = row(zone="session", tool=PAUSE, actor="human:dana", path="alice")
    assert stopped_after(BEFORE, paused) == {"bob": 4}
    assert stopped_after(BEFORE, paused._replace(path="carol")) is BEFORE
