"""The clients that Watchroom knows. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.agents.clients import claude, codex, gemini, opencode
from watchroom.agents.clients.adapter import HookSupport

ADAPTERS: Final = (
    claude.ADAPTER,
    codex.ADAPTER,
    opencode.ADAPTER,
    gemini.ADAPTER,
)
"""One record for each client."""
HOOKED_CLIENTS: Final = tuple(each.name for each in ADAPTERS if each.hooks is not None)
"""The names of the clients with hooks."""
ATTACHED_CLIENTS: Final = tuple(each.name for each in ADAPTERS if each.hooks is not None and each.hooks.files)
"""The names of the clients that can be attached with configuration files."""
PLUGIN_CLIENTS: Final = {
    each.name: each.hooks.plugin
    for each in ADAPTERS
    if each.hooks is not None and each.hooks.plugin is not None
}
"""The clients that have Watchroom's plugin, by name."""
ACP_CLIENTS: Final = {each.name: each.acp for each in ADAPTERS if each.acp is not None}
"""The clients that can be run through the Agent Client Protocol, by name."""
LAUNCHED_CLIENTS: Final = {each.name: each.launch for each in ADAPTERS if each.launch is not None}
"""The clients that can be started in a terminal, by name."""
PROVIDERS: Final = {each.name: each.provider for each in ADAPTERS if each.provider}
"""The providers of models (`ClientAdapter.provider`), by client."""
DEFAULT_CLIENT: Final = claude.ADAPTER.name
"""The client of hooks without a client name."""


def hooks_of(client: str) -> HookSupport:
    """Return the hooks of the ``client`` with this name. Raise ValueError if it has none."""
    for each in ADAPTERS:
        if each.name == client and each.hooks is not None:
            return each.hooks
    raise ValueError(f"no client with hooks: {client}")
