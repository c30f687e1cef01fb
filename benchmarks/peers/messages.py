"""Messages and leases over the Model Context Protocol, as agents use them, beside MCP Agent Mail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from anyio.from_thread import BlockingPortal, start_blocking_portal
from measure import Work, clocked, kilobyte, scratch
from watchroom import Workspace

from peers.comparison import Contender, Group, Row, RunContext, Unmeasured
from peers.peer import PythonProgram

# Pinned as in its lock file, because later versions refuse its stored times.
_PINS: Final = ("sqlmodel==0.0.31", "sqlalchemy==2.0.45")
_MAIL: Final = PythonProgram(
    "mcp_agent_mail",
    "mcp-agent-mail",
    ("git+https://github.com/Dicklesworthstone/mcp_agent_mail", *_PINS),
    python=12,
)
_SENDER, _RECEIVER = "BlueLake", "GreenCastle"
"""Agent names in the form that it requires."""
_INBOX: Final = 20
_ROUNDS: Final = 9
_BURST: Final = 5

Call = Callable[[str, Mapping[str, Any]], None]


def _measure(context: RunContext) -> list[Row]:
    if not context.has(_MAIL):
        return []
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        servers = _workspace(stack.enter_context(scratch()))
        sender, receiver = (stack.enter_context(_served(portal, server)) for server in servers)
        try:
            mail = stack.enter_context(_mail(portal, context, stack.enter_context(scratch())))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            return [Unmeasured(_MAIL.name, f"it does not start: {error}")]
        for n in range(_INBOX):
            mail["send"](n)
            _hand_over(sender, n)
        return [
            *_compare(
                context,
                "sending 1 KB to another agent",
                lambda n: _hand_over(sender, n),
                mail["send"],
                "commits it to a git repository, for the sender, the receiver and all",
            ),
            *_compare(
                context,
                f"an inbox of {_INBOX}",
                lambda n: receiver("check_my_handoffs", {}),
                mail["inbox"],
                "the newest of it; ours lists all that is not acknowledged",
            ),
            *_compare(
                context,
                "keeping a file from two writers",
                lambda n: sender(
                    "collab_write",
                    {"filepath": f"notes-{n % _INBOX}.md", "content": kilobyte(n), "message": "work"},
                ),
                mail["lease"],
                "an advisory lease, taken and given back, without the write; ours is a write, "
                "refused if made from an old version",
            ),
        ]


def _compare(context: RunContext, task: str, ours: Work, theirs: Work, remark: str) -> list[Row]:
    contender = Contender(_MAIL, clocked(theirs), remark=remark)
    return context.compare(task, clocked(ours), [contender], rounds=_ROUNDS, burst=_BURST, warm=2)


def _hand_over(call: Call, n: int) -> None:
    name = f"notes-{n % _INBOX}.md"
    call(
        "handoff_file",
        {"to_agent": "bob", "filename": name, "content": kilobyte(n), "message": "work"},
    )


def _workspace(folder: str) -> list[list[str]]:
    """Return the commands with which the clients of two agents start their servers."""
    agents = ["alice", "bob"]
    with Workspace.open(folder, agents=agents):
        command = [sys.executable, "-m", "watchroom_cli.main", "mcp", folder, "--agent"]
        return [[*command, agent] for agent in agents]


@contextmanager
def _mail(portal: BlockingPortal, context: RunContext, folder: str) -> Iterator[dict[str, Work]]:
    """Yield one server for both agents, as pieces of work."""
    project = os.path.join(folder, "project")
    os.mkdir(project)
    surroundings = {
        **os.environ,
        "HOME": folder,
        "STORAGE_ROOT": os.path.join(folder, "store"),
        "DATABASE_URL": f"sqlite+aiosqlite:///{folder}/mail.sqlite3",
        # Otherwise it downloads a price list.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    python = _MAIL.program(context.folder, "python")
    command = [python, "-m", "mcp_agent_mail", "serve-stdio"]
    with _served(portal, command, cwd=folder, env=surroundings) as call:
        call("ensure_project", {"human_key": project})
        for name in (_SENDER, _RECEIVER):
            call(
                "register_agent", {"project_key": project, "program": "bench", "model": "none", "name": name}
            )
        call("set_contact_policy", {"project_key": project, "agent_name": _RECEIVER, "policy": "open"})

        def send(n: int) -> None:
            sent = {"sender_name": _SENDER, "to": [_RECEIVER], "subject": "work", "body_md": kilobyte(n)}
            call("send_message", {"project_key": project, **sent})

        def read_inbox(n: int) -> None:
            call("fetch_inbox", {"project_key": project, "agent_name": _RECEIVER, "limit": _INBOX})

        def lease(n: int) -> None:
            of_file = {"project_key": project, "agent_name": _SENDER, "paths": [f"notes-{n % _INBOX}.md"]}
            call("file_reservation_paths", of_file)
            call("release_file_reservations", of_file)

        yield {"send": send, "inbox": read_inbox, "lease": lease}


@contextmanager
def _served(
    portal: BlockingPortal, command: list[str], cwd: str | None = None, env: dict[str, str] | None = None
) -> Iterator[Call]:
    """Yield a client of the server that ``command`` starts."""
    # Imported here, because the page's test imports this module too.
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    program, *arguments = command
    server = StdioServerParameters(command=program, args=arguments, cwd=cwd, env=env)
    with open(os.devnull, "w", encoding="utf-8") as log:
        client = Client(stdio_client(server, errlog=log))
        with portal.wrap_async_context_manager(client):

            def call(tool: str, arguments: Mapping[str, Any]) -> None:
                result = portal.call(client.call_tool, tool, dict(arguments))
                if result.is_error:
                    raise RuntimeError(f"{tool} failed: {result.content}")

            yield call


GROUP: Final = Group(
    "messages",
    "Messages and leases",
    "Calls of tools by the same client of the Model Context Protocol over stdio. What Watchroom wrote is "
    "synced to disk when a call returns; mcp_agent_mail syncs neither its "
    "database (`synchronous=NORMAL`) nor git.",
    (_MAIL,),
    _measure,
)
