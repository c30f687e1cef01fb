"""The command service: run, describe and stop this user's resident service."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

from watchroom import __version__
from watchroom.agents.clients import client_program
from watchroom.errors import NoService
from watchroom.texts import Catalogue, Language
from watchroom_tui.formatters.columns import size
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.command import collector_paused, own_program, print_json

_ACTIONS: Final = ("status", "stop", "run")
_LOG_BYTES: Final = 1_000_000
_ANSWER_SECONDS: Final = 10.0
"""Timeout for an answer of the service, in seconds."""


def declare_service(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=_ACTIONS, help=texts("cli.argument.service_action"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_service(args: Namespace, texts: Catalogue) -> int:
    if args.action == "run":
        return _run(args.language, texts)
    is_stop = args.action == "stop"
    try:
        answer = _ask(*(("POST", "/stop") if is_stop else ("GET", "/status")))
    except (FileNotFoundError, ConnectionRefusedError):
        print(texts("cli.service.none"), file=sys.stderr)
        return 1
    if is_stop:
        print(texts("cli.service.stopped"))
        return 0
    status = json.loads(answer)
    if args.json:
        print_json(status)
    else:
        _print_status(status, texts)
    return 0


def _run(language: Language, texts: Catalogue) -> int:
    """Run the service in this process until it is stopped or idle."""
    with collector_paused():
        from watchroom.agents.clients.routine_places import RoutinePlaces
        from watchroom.history.seal.anchors import state_folder
        from watchroom.platform import detect_platform
        from watchroom.serving.service.service import Service

        from watchroom_cli.plain.status_text import describe_status
        from watchroom_cli.publication import deliver_later

    log = Path(client_program.make_runtime_folder(), "service.log")
    handler = RotatingFileHandler(log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)

    deliver = partial(deliver_later, language=language)

    async def serve() -> bool:
        ready = partial(_leave_output, texts)
        service = Service(
            *(detect_platform(), __version__, deliver, describe_status, ready),
            program=own_program(),
            places=RoutinePlaces(state_folder()),
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, service.stop)
        return await service.run()

    if not asyncio.run(serve()):
        print(texts("cli.service.runs_already"))
    return 0


def _leave_output(texts: Catalogue) -> None:
    """Close standard output. This signals to the client that the service is ready. Print a line first at a
    terminal."""
    if sys.stdout.isatty():
        print(texts("cli.service.serving", socket=sanitize(client_program.socket_path())), flush=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _ask(method: str, path: str) -> bytes:
    """Return the answer of the service. Raise FileNotFoundError and ConnectionRefusedError if no service
    runs, `NoService` for other failures."""
    try:
        return client_program.ask(method, path, seconds=_ANSWER_SECONDS)
    except (FileNotFoundError, ConnectionRefusedError):
        raise
    except OSError as error:
        raise NoService(reason=error.strerror or str(error)) from error
    except ValueError as error:
        raise NoService(reason=str(error)) from error


def _print_status(status: Mapping[str, Any], texts: Catalogue) -> None:
    memory, minutes = size(status["memory_bytes"]), round(status["seconds"] / 60)
    print(
        texts(
            "cli.service.status",
            version=sanitize(status["version"]),
            process=status["process"],
            minutes=minutes,
            memory=memory,
        )
    )
    for each in status["workspaces"]:
        clients = ", ".join(
            f"{sanitize('/'.join(client['agents'])) or '-'}"
            f" ({sanitize(client['client'])} {client['process']})"
            for client in each["clients"]
        )
        print(f"{sanitize(each['root'])}\t{clients or '-'}")
    if not status["workspaces"]:
        print(texts("cli.service.no_workspace"))
