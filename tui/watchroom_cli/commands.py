"""The commands by group. The module of a command is loaded when the command is called."""

from __future__ import annotations

from typing import Final

from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.command import Command

CLIENT_COMMANDS: Final = ("claude", "codex", "opencode", "gemini")
"""The names of the clients that can be started. Listed here because the records of clients are slow to
load."""

COMMANDS: Final = (
    *(Command(name, "start", "launch", "client", passes_arguments=True) for name in CLIENT_COMMANDS),
    Command("leave", "start"),
    Command("tree", "start"),
    Command("race", "start"),
    Command("hand-over", "start", "hand_over", "hand_over"),
    Command("fork-session", "start", "fork_session", "fork_session"),
    Command("open", "start", "dashboard"),
    Command("attach", "start"),
    Command("detach", "start", "attach"),
    Command("plugin", "start"),
    Command("init", "start"),
    Command("task", "start"),
    Command("run", "start"),
    Command("resume", "start"),
    Command("routine", "start"),
    Command("demo", "start"),
    Command("completion", "start"),
    Command("man", "start", "completion"),
    Command("show", "watch"),
    Command("status", "watch"),
    Command("watch", "watch"),
    Command("web", "watch"),
    Command("answer", "watch"),
    Command("stop", "watch"),
    Command("usage", "watch"),
    Command("wait", "watch"),
    Command("events", "watch"),
    Command("keys", "watch"),
    Command("call", "agents", "tools"),
    Command("tools", "agents"),
    Command("prompt", "agents", "tools"),
    Command("mcp", "agents"),
    Command("token", "agents", "mcp"),
    Command("hook", "agents"),
    Command("client", "agents"),
    Command("policy", "agents"),
    Command("changes", "history"),
    Command("blame", "history"),
    Command("commit", "history"),
    Command("try", "history", "commit"),
    Command("land", "history"),
    Command("pull-request", "history", "pull_request", "pull_request"),
    Command("revert", "history"),
    Command("log", "history"),
    Command("diff", "history"),
    Command("search", "history"),
    Command("report", "history"),
    Command("export", "history"),
    Command("fork", "history"),
    Command("git", "history"),
    Command("verify", "history"),
    Command("traces", "history"),
    Command("person", "people"),
    Command("member", "people"),
    Command("settings", "people"),
    Command("service", "machines"),
    Command("machine", "machines"),
    Command("host", "machines"),
    Command("move", "machines", "host"),
    Command("server", "machines"),
)

__all__ = ["COMMANDS", "Command", "WrongUsage"]
