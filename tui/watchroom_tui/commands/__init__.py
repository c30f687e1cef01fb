"""The commands, each with its arguments and what it does. A command's module is loaded when it is called."""

from __future__ import annotations

from typing import Final

from watchroom_tui.commands.client_commands import CLIENT_COMMANDS
from watchroom_tui.commands.command import Command
from watchroom_tui.usage import WrongUsage

COMMANDS: Final = (
    *(Command(name, "launch", "client", passes_arguments=True) for name in CLIENT_COMMANDS),
    Command("leave", "leave"),
    Command("open", "dashboard"),
    Command("demo", "demo"),
    Command("watch", "watch"),
    Command("wait", "wait"),
    Command("web", "web"),
    Command("run", "run"),
    Command("resume", "resume"),
    Command("task", "task"),
    Command("init", "agents"),
    Command("call", "agents"),
    Command("mcp", "mcp"),
    Command("token", "mcp"),
    Command("attach", "attach"),
    Command("detach", "attach"),
    Command("hook", "attach"),
    Command("answer", "answer"),
    Command("stop", "stop"),
    Command("revert", "revert"),
    Command("changes", "changes"),
    Command("blame", "blame"),
    Command("commit", "commit"),
    Command("try", "commit"),
    Command("policy", "policy"),
    Command("tools", "agents"),
    Command("prompt", "agents"),
    Command("log", "inspect"),
    Command("events", "events"),
    Command("show", "inspect"),
    Command("usage", "usage"),
    Command("traces", "traces"),
    Command("verify", "verify"),
    Command("host", "machines"),
    Command("move", "machines"),
    Command("member", "member"),
    Command("person", "people"),
    Command("settings", "settings"),
    Command("server", "server"),
    Command("service", "service"),
    Command("export", "inspect"),
    Command("fork", "fork"),
    Command("git", "git"),
    Command("diff", "diff"),
    Command("report", "report"),
    Command("search", "search"),
    Command("keys", "dashboard"),
)

__all__ = ["COMMANDS", "Command", "WrongUsage"]
