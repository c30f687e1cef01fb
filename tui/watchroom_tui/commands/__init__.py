"""The commands, each with its arguments and what it does."""

from __future__ import annotations

from watchroom_tui.commands import agents, dashboard, inspect
from watchroom_tui.commands.command import Command, WrongUsage

COMMANDS: tuple[Command, ...] = (
    Command("demo", dashboard.declare_demo, dashboard.demo),
    Command("open", dashboard.declare_open, dashboard.open_dashboard),
    Command("init", agents.declare_init, agents.init),
    Command("call", agents.declare_call, agents.call),
    Command("tools", agents.declare_tools, agents.tools),
    Command("prompt", agents.declare_prompt, agents.prompt),
    Command("log", inspect.declare_log, inspect.log),
    Command("show", inspect.declare_show, inspect.show),
    Command("verify", inspect.declare_verify, inspect.verify),
    Command("export", inspect.declare_export, inspect.export),
    Command("keys", dashboard.declare_keys, dashboard.keys),
)

__all__ = ["COMMANDS", "Command", "WrongUsage"]
