"""Scenario files: what is wrong is named with its line, and the example of the documentation plays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.running import misuse
from simulation.playing import all_rows, answer, run_until, scenario_from, text_of
from watchroom import Workspace, validation
from watchroom.agents.simulation import Simulation, demo, load, roster
from watchroom.agents.simulation.toml_lines import line_numbers
from watchroom.errors import InvalidScenario
from watchroom.features.config.rows import LAYERS
from watchroom.features.policy.breaker import is_trip
from watchroom.model import ASK
from watchroom_cli.main import REFUSED, main

GOOD = """name = "one"

[[agent]]
id = "ada"
first = ["look"]

[routine.look]
steps = [
  { call = "collab_list", as = "found" },
  { call = "collab_read", args = { filepath = "${found.files.0.filepath}" }, on_error = "continue" },
]
"""
DOCS = Path(__file__).parents[2] / "docs" / "scenarios.md"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('name = "one"', 'name = "one', r"^line 1, column 12: "),
        ('name = "one"', "", r"^line 1: 'name' is missing$"),
        (
            'name = "one"',
            'name = "one"\nat_least = 2',
            r"^line 2: at_least: more than the agents listed \(1\)$",
        ),
        ('name = "one"', f"name = 'one'\n{'x' * 5000} = 1", r"^line 2: x{400}…$"),
        ('name = "one"', "name = 'one'\n" + "".join(f"x{n} = 1\n" for n in range(50)), r"^line 21: x.*\n…$"),
        ('id = "ada"', 'id = "ada"\nrole = 3', r"^line 5: agent\[1\]\.role: "),
        ('id = "ada"', 'id = "ada"\ncolour = "red"', r"^line 5: agent\[1\]\.colour: unknown key$"),
        ('first = ["look"]', 'first = ["loook"]', r"^line 5: .*'loook'; did you mean 'look'\?$"),
        ('"collab_list"', '"colab_list"', r"^line 9: .*no tool 'colab_list'; did you mean 'collab_list'\?$"),
        ('"collab_list"', '"answer_request"', r"^line 9: .*no tool 'answer_request'"),
        ("filepath =", "path =", r"line 10: .*args: collab_read needs filepath"),
        ("found.files", "fund.files", r"^line 10: .*no value 'fund'; did you mean 'found'\?$"),
        ("0.filepath}", "0.filepath|frist}", r"^line 10: .*no filter 'frist'; did you mean 'first'\?$"),
        ("0.filepath}", "0.filepath|cut:x}", r"^line 10: .*cut needs a number$"),
        ("0.filepath}", "0.filepath|match:(}", r"^line 10: .*match: missing \)"),
        ("found.files.0.filepath", "number.9.1", r"^line 10: .*write a random number as"),
        (', as = "found"', ", repeat = [3, 1]", r"^line 9: .*repeat is a number from 0 to 1000"),
        (', as = "found"', ', as = "team"', r"^line 9: .*'team' is the name of a built-in value"),
        (', as = "found"', ', as = "found", stop = true', r"^line 9: .*a step has one of .*call and stop$"),
        (', as = "found"', ', as = "found", chance = 2', r"^line 9: .*chance: .*less than or equal to 1$"),
        ('{ call = "collab_list", as = "found" },', "{ wait = {} },", r"line 9: .*wait: 'path' is missing"),
        ("on_error = ", "say = '${text.no}', on_error = ", r"^line 10: .*say: there is no text 'no'$"),
        ("steps = [", "steps = []\nmore = [", r"^line 8: routine\.look\.steps: a routine has at least one"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    scenario_from(tmp_path / "good.toml", GOOD)
    with pytest.raises(InvalidScenario) as caught:
        scenario_from(tmp_path / "bad.toml", GOOD.replace(old, new, 1))
    assert re.search(problem, caught.value.values["problems"], re.MULTILINE)  # type: ignore[call-overload]


def test_the_command_line_names_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace("collab_list", "colab_list"))
    assert main(["demo", str(tmp_path / "team"), "--headless", "--scenario", str(path)]) == REFUSED
    told = capsys.readouterr().err
    assert str(path) in told
    assert "line 9:" in told
    assert "\nCorrect these lines" in told
    path.write_bytes(b"name = '\xff'")
    assert main(["demo", str(tmp_path / "team"), "--headless", "--scenario", str(path)]) == REFUSED
    assert "line 1: not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nope.toml", "."])
def test_a_scenario_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    told = misuse(capsys, "demo", str(tmp_path / "team"), "--headless", "--scenario", str(tmp_path / name))
    assert str(tmp_path / name) in told
    assert "Give a TOML file" in told
    assert not (tmp_path / "team").exists()


def test_lines_are_those_of_the_keys() -> None:
    text = 'a = 1\n[b.c]\n# [x]\nd = """\n[y]\n"""\n[[e]]\nf = [\n  1,\n  { g = "]" },\n]\n[[e]]\n"h.i" = \'#\'\n'
    lines = line_numbers(text)
    assert {
        path: lines[path] for path in (("a",), ("b", "c", "d"), ("e", 0, "f", 1, "g"), ("e", 1, "h.i"))
    } == {
        ("a",): 1,
        ("b", "c", "d"): 4,
        ("e", 0, "f", 1, "g"): 10,
        ("e", 1, "h.i"): 13,
    }


def test_the_example_of_the_documentation_plays(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    scenario = scenario_from(tmp_path / "release.toml", example[1])
    with Workspace.open(tmp_path / "team", scenario.roster()) as workspace:
        simulation = Simulation(workspace, scenario.roster(), scenario=scenario, seed=1, speed=0, people=True)
        asked: list[int] = []

        def decided() -> bool:
            for row in workspace.journal.rows(limit=10_000):
                if row.tool == ASK and row.seq not in asked:
                    asked.append(row.seq)
                    answer(workspace, row, values=["Safer"])
            summary = simulation.summary()
            # Long enough for a loop that the breaker would end.
            is_played = summary.handoffs_acknowledged == 1 and summary.writes >= 30
            return is_played and "- Title: Safer" in text_of(workspace.journal, "collab", "notes.md")

        summary = run_until(workspace, simulation, decided)
        assert summary.errors == ()
        assert [row for row in all_rows(workspace) if is_trip(row)] == []
        assert workspace.verify() == []


@pytest.mark.parametrize("count", [3, 4, 8, 9, 40, 200])
def test_a_roster_is_a_sensible_team(count: int) -> None:
    agents = roster(count)
    assert len({agent.id for agent in agents}) == len(agents) == count
    earlier: dict[str, int] = {}
    for agent in agents:
        assert validation.check_agent_id(agent.id) == agent.id
        assert agent.role
        height = LAYERS.index(agent.layer)
        assert agent.supervisor or agent.layer != "bottom"
        assert not agent.supervisor or earlier[agent.supervisor] < height
        earlier[agent.id] = height


@pytest.mark.parametrize("count", [-1, 0, 2])
def test_a_team_has_at_least_three(count: int) -> None:
    with pytest.raises(ValueError, match="at least 3"):
        roster(count)


def test_the_built_in_scenario_speaks_both_languages() -> None:
    scenario = demo()
    names = {"module", "buffered_file", "evaluate_doc", "evaluate_doc_better", "handed_name"}
    assert scenario.texts.keys() - scenario.zh.texts.keys() == names, "these name files, or stand in code"
    assert scenario.zh.texts.keys() <= scenario.texts.keys()
    assert scenario.zh.changes.keys() == scenario.changes.keys()
    assert load(scenario.source) == scenario
