"""The colours of agents: unique while there are enough, and the same in every view and at every moment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from math import dist
from pathlib import Path

import pytest
from calls import ok
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color
from tui.driver import User, dashboard, past
from watchroom import Agent, Workspace
from watchroom_tui.formatters.actor_class import AGENT_COLOURS, AgentColours, agent_class
from watchroom_tui.presentation.theme import THEMES, ColorDepth
from watchroom_tui.widgets.line_widget import style_named

ALIKE = ("architect", "coder", "writer")
"""By their ids alone, the first and the last would have the same colour."""


def numbers(agents: Sequence[str]) -> list[int]:
    colours = AgentColours()
    colours.assign(agents)
    return [colours.number_of(each) for each in agents]


@given(st.lists(st.text("abcdef", min_size=1), unique=True, max_size=AGENT_COLOURS))
@pytest.mark.parametrize("depth", THEMES)
@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_agents_have_different_colours_while_there_are_enough(
    depth: ColorDepth, is_light: bool, agents: Sequence[str]
) -> None:
    variables = THEMES[depth][is_light].variables
    distinct = len({variables[f"agent-{number}"] for number in range(AGENT_COLOURS)})
    shown = [variables[f"agent-{number}"] for number in numbers(agents)[:distinct]]
    assert len({*shown}) == len(shown)


def lab(colour: str) -> tuple[float, ...]:
    """Return ``colour`` in OKLab, in which equal distances look equal."""
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    cones = (
        0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue,
        0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue,
        0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue,
    )
    long, middle, short = (each ** (1 / 3) for each in cones)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


@pytest.mark.parametrize(("depth", "least"), [("256", 0.075), ("full", 0.095)])
@pytest.mark.parametrize("is_light", [False, True], ids=["dark", "light"])
def test_agents_differ_from_each_other_and_from_versions_and_marks(
    depth: ColorDepth, is_light: bool, least: float
) -> None:
    theme = THEMES[depth][is_light]
    agents = [theme.variables[f"agent-{number}"] for number in range(AGENT_COLOURS)]
    marks = [each for each in (theme.success, theme.warning, theme.error) if each]
    pairs = [*combinations(agents, 2), *product(agents, marks)]
    near = {(one, other): dist(lab(one), lab(other)) for one, other in pairs}
    assert {pair: apart for pair, apart in near.items() if apart < least} == {}


@given(st.lists(st.text("abcdef", min_size=1), unique=True), st.data())
def test_an_agent_keeps_its_colour_when_others_come(agents: Sequence[str], data: st.DataObject) -> None:
    earlier = data.draw(st.integers(0, len(agents)))
    colours = AgentColours()
    colours.assign(agents[:earlier])
    before = [colours.number_of(each) for each in agents[:earlier]]
    colours.assign(agents)
    assert [colours.number_of(each) for each in agents] == numbers(agents)
    assert numbers(agents)[:earlier] == before


@pytest.mark.parametrize("actor", ["two words", "", " error", "a:agent dim"])
def test_an_actor_with_an_invalid_id_has_a_colour_too(actor: str) -> None:
    assert AgentColours().find_class(agent_class(actor)) in {f"agent-{n}" for n in range(AGENT_COLOURS)}


def test_only_agents_are_given_colours_of_agents() -> None:
    for actor, name in (("human:dana", "human"), ("outside", "outside"), ("system", "system")):
        assert AgentColours().find_class(agent_class(actor)) == name


def colours_of(user: User, agents: Sequence[str]) -> list[Color | None]:
    return [style_named(user.app.screen, agent_class(each)).color for each in agents]


async def test_agents_whose_ids_are_alike_differ_and_keep_their_colours(root: Path) -> None:
    with Workspace.open(root, agents=[*ALIKE]) as workspace:
        ok(workspace.tools("writer"), "save_to_my_workspace", filename="a.md", content="mine")
        then = workspace.journal.last_seq()
        async with dashboard(workspace) as user:
            found = colours_of(user, ALIKE)
            assert len({*found}) == len(ALIKE)
            workspace.register([Agent("reviewer")])
            await user.has_taken_in(workspace)
            assert len({*colours_of(user, [*ALIKE, "reviewer"])}) == len(ALIKE) + 1
            assert colours_of(user, ALIKE) == found
        async with past(workspace.journal, then) as user:
            assert colours_of(user, ALIKE) == found


async def test_registering_an_agent_redraws_its_earlier_rows(root: Path) -> None:
    with Workspace.open(root, agents=["architect"]) as workspace:
        async with dashboard(workspace) as user:
            # Until it is registered, its id alone decides, which gives the other's colour.
            assert len({*colours_of(user, ["architect", "writer"])}) == 1
            workspace.register([Agent("writer")])
            await user.has_taken_in(workspace)
            assert len({*colours_of(user, ["architect", "writer"])}) == 2
