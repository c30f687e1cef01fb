"""The command hook: answer a hook of a client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from threading import Timer
from typing import TYPE_CHECKING, Final

from watchroom.agents.clients import client_program
from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.hook_answers import HOLDING, HookAnswer, deny
from watchroom.agents.clients.json_fields import text_of
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.registry import DEFAULT_CLIENT, HOOKED_CLIENTS, hooks_of
from watchroom.errors import WatchroomError
from watchroom.texts import Catalogue
from watchroom.texts import catalogue as core_texts
from watchroom.workspace import Workspace
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json

if TYPE_CHECKING:
    from watchroom.agents.clients.attachment import Attachment
    from watchroom.features.sessions.messages import Handover

_CHECK_SECONDS: Final = 0.5
"""Seconds between checks whether the client runs."""
_OPEN_SECONDS: Final = 30.0
"""Timeout for opening the workspace in a hook, in seconds."""


def declare_hook(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument(
        "--agent", metavar="ID", action="append", default=[], help=texts("cli.argument.hook_agent")
    )
    parser.add_argument(
        "--client", choices=HOOKED_CLIENTS, default=DEFAULT_CLIENT, help=texts("cli.argument.hook_client")
    )
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.hook_strict"))
    parser.add_argument(client_program.UNANSWERED, action="store_true", help=SUPPRESS)


def run_hook(args: Namespace, texts: Catalogue) -> int:
    given = client_program.read_event(sys.stdin.fileno())
    try:
        event = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise WrongUsage(texts("cli.hook.not_json")) from error
    if not isinstance(event, dict):
        raise WrongUsage(texts("cli.hook.not_json"))
    hooks = hooks_of(args.client)
    event = hooks.read_event(event)
    name = str(event.get("hook_event_name"))
    must_answer = args.strict and name in HOLDING
    if args.unanswered and must_answer:
        return _print_answer(hooks.write_answer(event, deny(name, core_texts(args.language)("hook.silent"))))
    try:
        return _answer(args, event, texts, must_answer=must_answer)
    except Exception as error:
        if not must_answer:
            raise
        # Some clients make a call whose hook fails.
        said = core_texts(args.language)("hook.no_attendant", reason=str(error))
        return _print_answer(hooks.write_answer(event, deny(name, said)))


def _answer(args: Namespace, event: Event, texts: Catalogue, *, must_answer: bool) -> int:
    """Answer the hook of ``event`` without the service. Return the exit status.

    ``must_answer``: whether a call that cannot be checked in time is refused.

    Raise `WatchroomError`, OSError.
    """
    hooks, name = hooks_of(args.client), text_of(event, "hook_event_name")
    # A client refuses the call at exit status 2.
    give_up = Timer(_OPEN_SECONDS, _give_up, (texts("cli.hook.late"), 2 if must_answer else 1))
    give_up.daemon = True
    give_up.start()
    # Imported here because they are slow to load, and ``attach`` does not need them.
    from watchroom.agents.clients.agent_claims import AgentClaims, refuse_client
    from watchroom.agents.clients.attachment import Attachment
    from watchroom.agents.clients.processes import client_above

    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        try:
            # Identified first, because an ended client cannot be identified later.
            process = client_above(workspace.platform, os.getpid())
            agent = AgentClaims(workspace, args.agent, args.client, process).claim(
                str(event.get("session_id") or "")
            )
        except (WatchroomError, OSError) as error:
            refused = refuse_client(name, error, workspace.config.language)
            return _print_answer(hooks.write_answer(event, refused))
        attachment = Attachment(workspace, agent, args.client, process=process, is_strict=args.strict)
        give_up.cancel()
        with workspace.messages.hand_over() as handover:
            answer = asyncio.run(_answer_until_ended(attachment, event, process, handover))
            status = _print_answer(hooks.write_answer(event, answer))
            sys.stdout.flush()
            handover.record()
    return status


def _give_up(said: str, status: int) -> None:
    """End this process after the timeout for opening the workspace."""
    os.write(2, said.encode() + b"\n")
    os._exit(status)


def _print_answer(answer: HookAnswer) -> int:
    if answer.said is not None:
        print_json(answer.said)
    if answer.error:
        print(answer.error, file=sys.stderr)
    return answer.status


async def _answer_until_ended(
    attachment: Attachment, event: Event, client: ClientProcess, handover: Handover
) -> HookAnswer:
    """Return the answer to ``event``, with the messages that ``handover`` takes.

    Withdraw questions and refuse their calls if the client ends, or on SIGTERM or SIGHUP.
    """
    deadline = attachment.deadline(event, client_program.age())
    task = asyncio.ensure_future(attachment.answer(event, deadline, handover=handover))
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    while not (await asyncio.wait({task}, timeout=_CHECK_SECONDS))[0]:
        if not client.is_alive:
            task.cancel()
    if not task.cancelled():
        return task.result()
    handover.release()
    if event.get("hook_event_name") not in HOLDING:
        return HookAnswer()
    said = core_texts(attachment.workspace.config.language)("hook.ended")
    return HookAnswer(error=said, status=2)
