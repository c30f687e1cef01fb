"""The commands hook and attach: connect a client to a workspace."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Coroutine, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import tomli_w
from watchroom.clients import hook_client
from watchroom.clients.configuration import (
    CLIENTS,
    SERVERS,
    ClientConfiguration,
    build_configuration,
    merge_configuration,
    remove_hooks,
)
from watchroom.clients.hook_answer import HookAnswer
from watchroom.clients.processes import ClientProcess
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace

from watchroom_tui.commands.command import print_json
from watchroom_tui.shown_place import place_word
from watchroom_tui.usage import WrongUsage

_LOOK_SECONDS: Final = 0.5
"""So often it is looked whether a client is still there."""


def declare_hook(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("dir", help=texts("cli.argument.dir"))
    parser.add_argument("--agent", metavar="ID", required=True, help=texts("cli.argument.hook_agent"))
    parser.add_argument("--client", choices=CLIENTS, default="claude", help=texts("cli.argument.hook_client"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.hook_strict"))


def run_hook(args: Namespace, texts: Catalogue) -> int:
    # The models of sessions are slow to load, and who attaches a client needs none.
    from watchroom.clients.attachment import Attachment
    from watchroom.clients.processes import client_of_hook

    try:
        event = json.load(sys.stdin)
    except (ValueError, RecursionError) as error:
        raise WrongUsage(texts("cli.hook.not_json")) from error
    if not isinstance(event, dict):
        raise WrongUsage(texts("cli.hook.not_json"))
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        # By the time it is gone nobody can tell any more which it was.
        process = client_of_hook(workspace.platform)
        attachment = Attachment(workspace, args.agent, args.client, process=process, is_strict=args.strict)
        answer = asyncio.run(_answer_while_asked(attachment.handle(event), process))
    if answer.said is not None:
        print_json(answer.said)
    if answer.error:
        print(answer.error, file=sys.stderr)
    return answer.status


async def _answer_while_asked(
    answering: Coroutine[None, None, HookAnswer], client: ClientProcess
) -> HookAnswer:
    """What ``answering`` gives; nothing, where the client ends this process or is gone itself: what was asked
    is withdrawn then."""
    task = asyncio.ensure_future(answering)
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    while not (await asyncio.wait({task}, timeout=_LOOK_SECONDS))[0]:
        if not client.is_alive:
            task.cancel()
    return HookAnswer() if task.cancelled() else task.result()


def declare_attach(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("dir", help=texts("cli.argument.dir"))
    parser.add_argument("--agent", metavar="ID", required=True, help=texts("cli.argument.attach_agent"))
    parser.add_argument("--project", metavar="DIR", default=".", help=texts("cli.argument.attach_project"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.attach_strict"))
    parser.add_argument("--write", action="store_true", help=texts("cli.argument.attach_write"))


def run_attach(args: Namespace, texts: Catalogue) -> int:
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        agent = workspace.registry.agent(args.agent).id
        root = workspace.root
        is_closed = workspace.people.current().is_closed
    command = shutil.which("watchroom") or "watchroom"
    # Isolated, and without the packages of the site: it begins with every call.
    hook = (sys.executable, "-I", "-S", hook_client.__file__)
    wanted = build_configuration(args.client, command, root, agent, hook, is_strict=args.strict)
    project = Path(args.project)
    files = _merged_files(project, wanted, texts) if args.write else _new_files(wanted)
    for name, text in files.items():
        if args.write:
            _replace(project / name, text)
            print(texts("cli.attach.written", path=str(project / name)))
        else:
            print(f"# {name}\n{text}")
    if args.write:
        print(texts(f"cli.attach.next_{args.client}"))
        if not is_closed:
            print(texts("cli.attach.closing", root=place_word(args.dir)))
    return 0


def _new_files(wanted: ClientConfiguration) -> dict[str, str]:
    jsons = {name: _as_json(table) for name, table in wanted.json.items()}
    return {**jsons, **{name: _as_toml(table) for name, table in wanted.toml.items()}}


def _merged_files(project: Path, wanted: ClientConfiguration, texts: Catalogue) -> dict[str, str]:
    """The files as they are to be. Nothing is written before all of them are known. Raises `WrongUsage` for
    one that cannot be read."""
    files: dict[str, str] = {}
    for name, table in wanted.json.items():
        unreadable = WrongUsage(texts("cli.attach.unreadable", path=str(project / name)))
        try:
            there = _read(project / name)
            known = json.loads(there) if there.strip() else {}
            files[name] = _as_json(merge_configuration(remove_hooks(known), table))
        except (ValueError, RecursionError) as error:
            raise unreadable from error
    for name, table in wanted.toml.items():
        files[name] = _with_tables(project / name, table, texts)
    return files


def _with_tables(path: Path, table: Mapping[str, Json], texts: Catalogue) -> str:
    """The text of a TOML file with our tables after what is there, comments and all. Raises `WrongUsage` for
    one that cannot be read, and where a server of that name is another one."""
    try:
        text = _read(path)
        for name, own in table.items():
            added = _with_table(text, {name: own})
            if added is None and name == SERVERS:
                raise WrongUsage(texts("cli.attach.other", path=str(path)))
            # Without the mark of its commands an agent is attached all the same.
            text = text if added is None else added
    except (ValueError, RecursionError) as error:
        raise WrongUsage(texts("cli.attach.unreadable", path=str(path))) from error
    return text


def _with_table(text: str, table: Mapping[str, Json]) -> str | None:
    """The text with one more table; None where something else stands in its place. Raises ValueError for a
    text that is no TOML."""
    known = tomllib.loads(text)
    wanted = merge_configuration(known, table)
    if wanted == known:
        return text
    longer = text.rstrip("\n") + "\n\n" * bool(text.strip()) + _as_toml(table)
    try:
        return longer if tomllib.loads(longer) == wanted else None
    except tomllib.TOMLDecodeError:
        return None


def _as_json(table: Mapping[str, Json]) -> str:
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def _as_toml(table: Mapping[str, Json]) -> str:
    return tomli_w.dumps(cast("dict[str, Any]", table))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _replace(path: Path, text: str) -> None:
    """The file is there whole, or as it was; one that is a link stays one."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as scratch:
        new = Path(scratch, target.name)
        new.write_text(text, encoding="utf-8")
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
