"""What is a circle, and what is none."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from watchroom.errors import ConfigInvalid
from watchroom.features.config.rows import dump_config, parse_config
from watchroom.features.policy.breaker import Breaker, BreakerSettings, Trip, parse_breaker
from watchroom.model import CONTINUE, PAUSE, RESUME, Row

SETTINGS = BreakerSettings(failures=3, edits=4, steps=5)
_numbers = count(1)


def row(tool: str, zone: str, path: str, **given: object) -> Row:
    usual = {"actor": "alice", "version": None, "base": None, "outcome": "ok", "error": "", "message": ""}
    rest = {"sha256": None, "size": None, "detail_json": ""}
    return Row(seq=next(_numbers), time=0, tool=tool, zone=zone, path=path, **{**usual, **rest, **given})  # type: ignore[arg-type]


def denied(path: str = "a.md", error: str = "permission_denied") -> Row:
    return row("collab_write", "collab", path, outcome="denied", error=error)


def version(checksum: str, actor: str = "alice") -> Row:
    return row("collab_write", "collab", "a.md", version=1, sha256=checksum, actor=actor)


def step(message: str) -> Row:
    return row("call_llm", "session", "alice/s1", version=1, message=message)


def trips(*rows: Row) -> list[Trip]:
    breaker = Breaker()
    return [trip for each in rows if (trip := breaker.apply(each, SETTINGS)) is not None]


def test_the_values_of_the_page_are_the_defaults() -> None:
    page = (Path(__file__).parents[2] / "docs/limits.md").read_text(encoding="utf-8")
    (example,) = (
        text for each in page.split("```toml\n")[1:] if "[breaker]" in (text := each.partition("```")[0])
    )
    assert parse_config(example).breaker == BreakerSettings()


def test_the_same_call_that_fails_again_and_again() -> None:
    (trip,) = trips(denied(), denied(), denied(), denied())
    assert (trip.kind, trip.agent, trip.times, trip.subject) == ("failing", "alice", 3, "collab_write a.md")
    assert not trips(denied(), denied("b.md"), denied(), denied("b.md"))
    assert not trips(denied(), denied(), version("A"), denied())
    # A person's word begins anew.
    said = row(RESUME, "session", "alice", actor="human:dana")
    assert not trips(denied(), denied(), said, denied())


def test_a_text_that_changes_to_and_fro() -> None:
    (trip,) = trips(*map(version, "ABAB"))
    assert (trip.kind, trip.times, trip.subject) == ("to_and_fro", 4, "a.md")
    assert not trips(*map(version, "ABCABCAB"))
    # Two agents that undo each other's work are one circle.
    (trip,) = trips(version("A"), version("B", "bob"), version("A"), version("B", "bob"))
    assert trip.agent == "bob"


def test_steps_that_bring_nothing_new() -> None:
    (trip,) = trips(step("look"), *(step("look") for _ in range(5)))
    assert (trip.kind, trip.times) == ("no_progress", 5)
    assert not trips(*(step(f"look {n}") for n in range(50)))
    assert not trips(*[each for n in range(5) for each in (step("look"), step("look"), version(str(n)))])
    # Going to and fro is no progress either.
    found = trips(step("a"), *[each for text in "ABABABA" for each in (step("a"), version(text))])
    assert {each.kind for each in found} == {"to_and_fro"}


def test_what_goes_on_in_a_session_and_is_no_step_is_not_counted() -> None:
    goes_on = row(CONTINUE, "session", "alice/s1", version=2, message="look")
    told = row("call_llm", "session", "alice/s1", message="look")
    assert not trips(step("look"), *[goes_on, told] * 9)


def test_settings_are_part_of_the_config() -> None:
    text = "[breaker]\nfailures = 5\nedits = 0\n"
    assert parse_config(text).breaker == BreakerSettings(failures=5, edits=0)
    assert parse_config(dump_config(parse_config(text))).breaker == BreakerSettings(failures=5, edits=0)
    wrongs: tuple[object, ...] = ({"failures": 1}, {"steps": True}, {"steps": -1}, {"other": 3}, [])
    for wrong in wrongs:
        with pytest.raises(ConfigInvalid):
            parse_breaker(wrong)


def test_what_watchroom_does_is_no_circle() -> None:
    assert not trips(*(row(PAUSE, "agent", "alice", actor="system") for _ in range(9)))
