"""The commands, each with its arguments and what it does."""

from __future__ import annotations

from watchroom_tui.commands import agents, dashboard, inspect
from watchroom_tui.commands.command import Command

COMMANDS: tuple[Command, ...] = (
    Command("demo", "watch simulated agents at work", dashboard.declare_demo, dashboard.demo),
    Command("open", "open the dashboard over a workspace", dashboard.declare_open, dashboard.open_dashboard),
    Command("init", "make a workspace and register agents", agents.declare_init, agents.init),
    Command("call", "make one tool call; prints the result as JSON", agents.declare_call, agents.call),
    Command("tools", "print the tools' definitions", agents.declare_tools, agents.tools),
    Command("prompt", "print an agent's system prompt", agents.declare_prompt, agents.prompt),
    Command("log", "print rows of the journal", inspect.declare_log, inspect.log),
    Command("show", "print what the dashboard shows", inspect.declare_show, inspect.show),
    Command("verify", "compare the files with the journal", inspect.declare_verify, inspect.verify),
    Command(
        "export",
        "lay out the files as they stood at an earlier moment",
        inspect.declare_export,
        inspect.export,
    ),
    Command("keys", "print the dashboard's keys as Markdown", dashboard.declare_keys, dashboard.keys),
)
