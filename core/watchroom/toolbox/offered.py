"""Which tools there are: the core's own, and those that installed packages bring.

A package on top of the core brings tools through an entry point of the group ``watchroom.tools``: a sequence
of `watchroom.toolbox.tool.Tool`. What a system prompt says of them stands in the package's catalogue. So the
core needs to know nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Final, Literal

from watchroom.texts import Language, catalogue
from watchroom.toolbox.definitions import TOOLS
from watchroom.toolbox.tool import Tool

GROUP: Final = "watchroom.tools"


@cache
def tools() -> Mapping[str, Tool]:
    """All tools by name, in the order in which they are offered. Raises TypeError where two packages bring
    a tool of the same name."""
    found = dict(TOOLS)
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        brought: Iterable[Tool] = point.load()
        for tool in brought:
            if tool.name in found:
                raise TypeError(f"{point.value} brings a tool that is there already: {tool.name}")
            found[tool.name] = tool
    return found


def prompt_parts(offered: Iterable[Tool], part: Literal["place", "section"], language: Language) -> list[str]:
    """What a system prompt says of the toolsets of the ``offered`` tools, in their order: each package that
    brings tools says it in its catalogue under ``prompt.PART.TOOLSET``, or does not."""
    wanted = dict.fromkeys((f"prompt.{part}.{tool.toolset}", tool.texts) for tool in offered)
    catalogues = ((key, catalogue(language, package)) for key, package in wanted)
    return [texts(key) for key, texts in catalogues if key in texts]
