"""Clients of other packages: entry points of the group ``watchroom.clients`` (docs/plugins.md)."""

from __future__ import annotations

from functools import cache
from typing import Final

from watchroom.agents.clients.adapter import AcpSupport, ClientAdapter
from watchroom.agents.clients.registry import ADAPTERS
from watchroom.platform.plugins import OfferedPlugin, Plugins, load_plugins

ENTRY_POINT_GROUP: Final = "watchroom.clients"


@cache
def client_plugins() -> Plugins[ClientAdapter]:
    """Return the clients of installed packages."""
    return load_plugins(ENTRY_POINT_GROUP, _check)


def find_client(name: str) -> ClientAdapter | None:
    """Return the record of the client with this ``name``, or with this id in the ACP registry; None if
    neither Watchroom nor an installed package has one."""
    return _find_own(name) or client_plugins().found.get(name)


def _find_own(name: str) -> ClientAdapter | None:
    for each in ADAPTERS:
        if name == each.name or (each.acp is not None and name in each.acp.registry):
            return each
    return None


def _check(offered: OfferedPlugin) -> ClientAdapter:
    support = offered.value
    if not isinstance(support, AcpSupport):
        raise ValueError(f"{type(support).__name__} is no AcpSupport")
    if not support.command or not all(type(each) is str for each in support.command):
        raise ValueError("the command is not a tuple of texts")
    if _find_own(offered.name):
        raise ValueError(f"Watchroom has a client {offered.name}")
    return ClientAdapter(offered.name, acp=support._replace(registry=()))
