"""The tool with which people pick the work of one agent of a race."""

from __future__ import annotations

from typing import Final

from watchroom.features.races.rows import PICK_RACE
from watchroom.features.trees.rows import TREE
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import Name, ParamsModel, ResultModel, Version
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset(TREE, audience="people")
tool = TOOLS.tool


class PickRaceParams(ParamsModel):
    """The race, and the number of the agent whose work is picked."""

    race: Name
    number: Version


class PickRaceResult(ResultModel):
    """The id, the name and the folder of the tree with the picked work."""

    tree: str
    name: str
    folder: str


@tool(PICK_RACE, path=("race",))
def pick_race(context: ToolContext, params: PickRaceParams) -> PickRaceResult:
    """Pick the work of an agent for the person of ``context``. Raise `UnknownRace`, `InvalidRace`."""
    entry = context.zones.races.pick(context.call, params.race, params.number)
    entrant = entry.entrant
    return PickRaceResult(tree=entry.tree, name=entrant.name, folder=entrant.folder)
