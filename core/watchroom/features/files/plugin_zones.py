"""Zones of other packages: folders of shared files with a rule for each write (docs/plugins.md).

An entry point of the group ``watchroom.zones`` names a function, and its name is the name of the folder. All
else about the files is as for all shared files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple, TypeAlias, cast, get_args

from watchroom import validation
from watchroom.errors import ZoneRefused
from watchroom.model import Zone
from watchroom.platform.plugins import OfferedPlugin, Plugins, describe_error, load_plugins

ENTRY_POINT_GROUP: Final = "watchroom.zones"
_log = logging.getLogger("watchroom")


class ZoneWrite(NamedTuple):
    """A write to a zone of a plug-in.

    - ``actor``: the id of an agent, or ``human:NAME``.
    - ``path``: the path below the zone's folder.
    - ``content``, ``message``: the new text, and the message of its row.
    """

    actor: str
    path: str
    content: str
    message: str


ZoneRule: TypeAlias = Callable[[ZoneWrite], object]
"""Raises ValueError with the reason, for the writer, if a write is refused."""


@cache
def plugin_zones() -> Plugins[ZoneRule]:
    """Return the rules of installed packages, by the name of their folder."""
    return load_plugins(ENTRY_POINT_GROUP, _check)


def check_zone(actor: str, path: str, content: str, message: str) -> None:
    """Raise `ZoneRefused` if ``path`` is in a zone of a plug-in whose rule refuses the write, or fails.

    If the plug-in is broken, or another one has the same name, the rule is unknown. Then all writes are
    refused.
    """
    folder, _, below = path.partition("/")
    if not below or not validation.PLUGIN_NAME.fullmatch(folder):
        return
    zones = plugin_zones()
    for problem in zones.problems:
        if problem.name == folder:
            raise ZoneRefused(zone=folder, reason=f"{problem.package}: {problem.reason}")
    if (rule := zones.found.get(folder)) is None:
        return
    try:
        rule(ZoneWrite(actor, below, content, message))
    except BaseException as error:
        if not isinstance(error, ValueError):
            _log.exception("the rule of the zone %s failed", folder)
        raise ZoneRefused(zone=folder, reason=describe_error(error)) from error


def _check(offered: OfferedPlugin) -> ZoneRule:
    if offered.name in get_args(Zone):
        raise ValueError(f"Watchroom has a zone {offered.name}")
    if not callable(offered.value):
        raise ValueError(f"{type(offered.value).__name__} cannot be called")
    return cast("ZoneRule", offered.value)
