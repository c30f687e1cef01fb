"""The commands hook, attach and detach: connect a client to a workspace."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import sys
import tomllib
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING, Any, Final, cast

import tomli_w
from watchroom.clients import hook_client
from watchroom.clients.attach_record import (
    AttachRecord,
    FileRecord,
    read_record,
    record_path,
    remove_record,
    write_record,
)
from watchroom.clients.configuration import (
    CLIENTS,
    HOLDING,
    SERVER,
    SERVERS,
    AttachedAs,
    Client,
    ClientConfiguration,
    HookProgram,
    build_configuration,
    client_files,
    find_entries,
    merge_configuration,
    remove_entries,
    remove_tables,
)
from watchroom.clients.hook_answer import HookAnswer, deny
from watchroom.clients.processes import ClientProcess
from watchroom.errors import WatchroomError
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.texts import catalogue as core_texts
from watchroom.transparency.state_folder import state_folder
from watchroom.workspace import Workspace

from watchroom_tui.commands.command import print_json
from watchroom_tui.commands.workspace_argument import add_workspace_argument
from watchroom_tui.sanitize import sanitize
from watchroom_tui.shown_place import place_word
from watchroom_tui.usage import WrongUsage

if TYPE_CHECKING:
    from watchroom.clients.attachment import Attachment
    from watchroom.zones.messages import Handover

_LOOK_SECONDS: Final = 0.5
"""Seconds between two looks whether a client is still there."""
_OPEN_SECONDS: Final = 30.0
"""Seconds in which a hook has to open the workspace."""


def declare_hook(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument(
        "--agent", metavar="ID", action="append", required=True, help=texts("cli.argument.hook_agent")
    )
    parser.add_argument("--client", choices=CLIENTS, default="claude", help=texts("cli.argument.hook_client"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.hook_strict"))
    parser.add_argument(hook_client.UNANSWERED, action="store_true", help=SUPPRESS)


def run_hook(args: Namespace, texts: Catalogue) -> int:
    given = hook_client.read_event(sys.stdin.fileno())
    try:
        event = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise WrongUsage(texts("cli.hook.not_json")) from error
    if not isinstance(event, dict):
        raise WrongUsage(texts("cli.hook.not_json"))
    name = str(event.get("hook_event_name"))
    must_answer = args.strict and name in HOLDING
    if args.unanswered and must_answer:
        return _print_answer(deny(name, core_texts(args.language)("hook.silent")))
    # Status 2 keeps the call from being made.
    give_up = Timer(_OPEN_SECONDS, _give_up, (texts("cli.hook.late"), 2 if must_answer else 1))
    give_up.daemon = True
    give_up.start()
    # The models of sessions are slow to load, and who attaches a client needs none.
    from watchroom.clients.agent_claims import AgentClaims, refuse_client
    from watchroom.clients.attachment import Attachment
    from watchroom.clients.processes import client_of_hook

    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        # By the time it is gone nobody can tell any more which it was.
        process = client_of_hook(workspace.platform)
        try:
            agent = AgentClaims(workspace, args.agent, args.client, process).claim(
                str(event.get("session_id") or "")
            )
        except (WatchroomError, OSError) as error:
            return _print_answer(refuse_client(name, error, workspace.config.language))
        attachment = Attachment(workspace, agent, args.client, process=process, is_strict=args.strict)
        give_up.cancel()
        with workspace.messages.hand_over() as handover:
            answer = asyncio.run(_answer_while_asked(attachment, event, process, handover))
            status = _print_answer(answer)
            sys.stdout.flush()
            handover.record()
    return status


def _give_up(said: str, status: int) -> None:
    """End this process, which hangs: the workspace cannot be opened."""
    os.write(2, said.encode() + b"\n")
    os._exit(status)


def _print_answer(answer: HookAnswer) -> int:
    if answer.said is not None:
        print_json(answer.said)
    if answer.error:
        print(answer.error, file=sys.stderr)
    return answer.status


async def _answer_while_asked(
    attachment: Attachment, event: dict[str, Json], client: ClientProcess, handover: Handover
) -> HookAnswer:
    """Answer ``event``, with the messages that ``handover`` takes. If the client is gone, or somebody ends
    this process, questions are withdrawn, and a call that was asked about is not made."""
    task = asyncio.ensure_future(attachment.answer(event, handover=handover, age=hook_client.age()))
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    while not (await asyncio.wait({task}, timeout=_LOOK_SECONDS))[0]:
        if not client.is_alive:
            task.cancel()
    if not task.cancelled():
        return task.result()
    handover.release()
    if event.get("hook_event_name") not in HOLDING:
        return HookAnswer()
    said = core_texts(attachment.workspace.config.language)("hook.ended")
    return HookAnswer(error=said, status=2)


def declare_attach(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("client", choices=CLIENTS)
    add_workspace_argument(parser, texts)
    parser.add_argument("--agent", metavar="ID", required=True, help=texts("cli.argument.attach_agent"))
    parser.add_argument("--project", metavar="DIR", default=".", help=texts("cli.argument.attach_project"))
    parser.add_argument("--strict", action="store_true", help=texts("cli.argument.attach_strict"))
    parser.add_argument("--write", action="store_true", help=texts("cli.argument.attach_write"))


def run_attach(args: Namespace, texts: Catalogue) -> int:
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        agent = workspace.registry.agent(args.agent).id
        root, language = workspace.root, workspace.config.language
        is_closed = workspace.people.current().is_closed
    files = ClientFiles(Path(args.project), args.client, texts)
    there = files.find_attached(root)
    agents = there.agents if agent in there.agents else (*there.agents, agent)
    # One agent more does not weaken what was set for the others.
    is_strict = args.strict or (there.is_strict and agents != there.agents)
    hook = _hook_program(root, args.client, core_texts(language))
    wanted = build_configuration(args.client, hook, AttachedAs(root, agents, is_strict))
    if not args.write:
        for name, text in _new_files(wanted).items():
            print(f"# {name}\n{text}")
        return 0
    for path in files.attach(wanted):
        print(texts("cli.attach.written", path=str(path)))
    if len(agents) > 1:
        print(texts("cli.attach.agents", agents=", ".join(agents)))
    print(texts(f"cli.attach.next_{args.client}"))
    if not is_closed:
        print(texts("cli.attach.closing", root=place_word(args.dir)))
    return 0


def declare_detach(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("--agent", metavar="ID", help=texts("cli.argument.detach_agent"))
    parser.add_argument("--project", metavar="DIR", default=".", help=texts("cli.argument.attach_project"))


def run_detach(args: Namespace, texts: Catalogue) -> int:
    files = ClientFiles(Path(args.project), args.client, texts)
    there = files.find_attached()
    left = tuple(each for each in there.agents if args.agent not in (None, each))
    if args.agent is not None and left == there.agents:
        key = "cli.detach.other" if left else "cli.detach.nothing"
        print(texts(key, client=args.client, agent=args.agent, agents=", ".join(left)))
        return 0
    if left:
        hook = _hook_program(there.root, args.client, core_texts(args.language))
        for path in files.attach(build_configuration(args.client, hook, there._replace(agents=left))):
            print(texts("cli.attach.written", path=str(path)))
        print(texts("cli.detach.left", client=args.client, agent=args.agent, agents=", ".join(left)))
        return 0
    written = files.detach()
    for path in written:
        print(texts("cli.detach.written", path=str(path)))
    print(texts("cli.detach.done" if written else "cli.detach.nothing", client=args.client))
    return 0


def _hook_program(root: str, client: str, of_core: Catalogue) -> HookProgram:
    """Return how hooks run the program that runs now, whatever the environment of the client is."""
    own = Path(sys.executable).with_name("watchroom")
    program = [str(own)] if os.access(own, os.X_OK) else [sys.executable, "-m", "watchroom_tui.cli"]
    # Isolated, and without the packages of the site: it begins with every call.
    before = (sys.executable, "-I", "-S", hook_client.__file__)
    needed = (sys.executable, hook_client.__file__, program[0])
    missing = of_core("hook.missing", program=program[0], root=root, client=client)
    return HookProgram(program, before, tuple(dict.fromkeys(needed)), missing)


def _new_files(wanted: ClientConfiguration) -> dict[str, str]:
    jsons = {name: _as_json(table) for name, table in wanted.json.items()}
    return {**jsons, **{name: _as_toml(table) for name, table in wanted.toml.items()}}


class ClientFiles:
    """The files of ``client`` in the folder ``project``. All are read before one is written. Raises
    `WrongUsage` for a file that cannot be read as what it should be."""

    def __init__(self, project: Path, client: Client, texts: Catalogue) -> None:
        if not project.is_dir():
            raise WrongUsage(texts("cli.no_folder", path=sanitize(str(project))))
        self._project = project
        self._texts = texts
        self._names = client_files(client)
        self._client = client
        self._record_path = record_path(state_folder(), str(project), client)
        self._record = read_record(self._record_path)
        self._there = {name: self._read(name) for name in self._names}

    def find_attached(self, root: str = "") -> AttachedAs:
        """Return who is attached here, in the workspace at ``root`` (default: in whichever it is). Raises
        `WrongUsage` for another workspace: all clients in a folder read the same files."""
        agents: dict[str, None] = {}
        is_strict = False
        for name, text in self._there.items():
            for known in find_entries(self._parse(name, text or "")):
                if root not in ("", known.root):
                    raise WrongUsage(
                        self._texts(
                            *("cli.attach.taken",),
                            path=str(self._project / name),
                            agents=", ".join(known.agents),
                            root=known.root,
                            client=self._client,
                            project=shlex.quote(str(self._project)),
                        )
                    )
                root = known.root
                agents |= dict.fromkeys(known.agents)
                is_strict = is_strict or known.is_strict
        return AttachedAs(root, tuple(agents), is_strict)

    def attach(self, wanted: ClientConfiguration) -> list[Path]:
        """Write what is ``wanted`` beside what is there, in place of entries of ours. Returns the files."""
        cleaned = {name: self._without_ours(name) for name in self._names}
        files = dict(cleaned)
        for name, table in wanted.json.items():
            files[name] = self._merged(name, cleaned[name] or "", table)
        for name, table in wanted.toml.items():
            files[name] = self._with_tables(name, cleaned[name] or "", table)
        folders = {*self._record.folders, *(each for each in map(self._new_folder, wanted.json) if each)}
        kept = {
            name: FileRecord(cleaned[name], text) for name, text in files.items() if text != cleaned[name]
        }
        write_record(self._record_path, AttachRecord(kept, tuple(sorted(folders))))
        return self._write(files)

    def detach(self) -> list[Path]:
        """Remove what `attach` wrote, and nothing else. Returns the files that were changed."""
        written = self._write({name: self._without_ours(name) for name in self._names})
        for name in self._record.folders:
            with suppress(OSError):
                # Somebody else may have files there by now.
                (self._project / name).rmdir()
        remove_record(self._record_path)
        return written

    def _write(self, files: Mapping[str, str | None]) -> list[Path]:
        changed = [name for name, text in files.items() if text != self._there[name]]
        for name in changed:
            text, path = files[name], self._project / name
            if text is None:
                path.unlink()
            else:
                _replace(path, text)
        return [self._project / name for name in changed]

    def _new_folder(self, name: str) -> str:
        """The folder that is made for the file ``name``, empty if it is there."""
        folder = name.rpartition("/")[0]
        return folder if folder and not (self._project / folder).exists() else ""

    def _read(self, name: str) -> str | None:
        path = self._project / name
        try:
            with path.open(encoding="utf-8", newline="") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._unreadable(name) from error

    def _parse(self, name: str, text: str) -> dict[str, Json]:
        try:
            fields = tomllib.loads(text) if name.endswith(".toml") else json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise self._unreadable(name) from error
        if not isinstance(fields, dict):
            raise self._unreadable(name)
        return fields

    def _without_ours(self, name: str) -> str | None:
        """The text of a file without entries of ours, None if nothing is left of a file that was ours."""
        text, known = self._there[name], self._record.files.get(name)
        if text is None:
            return None
        if known is not None and known.after == text:
            return known.before
        fields = self._parse(name, text if text.strip() else "")
        try:
            if name.endswith(".toml"):
                left, is_empty = remove_tables(text), not remove_tables(text).strip()
            else:
                cleaned = remove_entries(fields)
                left, is_empty = (text if cleaned == fields else _as_json(cleaned, text)), not cleaned
        except ValueError as error:
            raise self._unreadable(name) from error
        was_ours = left != text and (known is None or known.before is None)
        return None if is_empty and was_ours else left

    def _merged(self, name: str, text: str, table: Mapping[str, Json]) -> str:
        fields = self._parse(name, text if text.strip() else "")
        other = fields.get("mcpServers")
        if "mcpServers" in table and isinstance(other, Mapping) and SERVER in other:
            raise WrongUsage(self._texts("cli.attach.other", path=str(self._project / name)))
        try:
            return _as_json(merge_configuration(fields, table), text)
        except ValueError as error:
            raise self._unreadable(name) from error

    def _with_tables(self, name: str, text: str, table: Mapping[str, Json]) -> str:
        """The text of a TOML file with our tables after what is there, comments and all."""
        try:
            for own, value in table.items():
                added = _with_table(text, {own: value})
                if added is None and own == SERVERS:
                    raise WrongUsage(self._texts("cli.attach.other", path=str(self._project / name)))
                # Without the mark of its commands an agent is attached all the same.
                text = text if added is None else added
        except (ValueError, RecursionError) as error:
            raise self._unreadable(name) from error
        return text

    def _unreadable(self, name: str) -> WrongUsage:
        kind = "TOML" if name.endswith(".toml") else "JSON"
        return WrongUsage(self._texts("cli.attach.unreadable", path=str(self._project / name), format=kind))


def _with_table(text: str, table: Mapping[str, Json]) -> str | None:
    """The text with one more table; None where something else stands in its place. Raises ValueError for a
    text that is no TOML."""
    known = tomllib.loads(text)
    wanted = merge_configuration(known, table)
    if wanted == known:
        return text
    end = "" if not text or text.endswith("\n") else "\n"
    longer = text + end + "\n" * bool(text.strip()) + _as_toml(table)
    try:
        return longer if tomllib.loads(longer) == wanted else None
    except tomllib.TOMLDecodeError:
        return None


def _as_json(table: Mapping[str, Json], like: str = "") -> str:
    """``table`` as JSON, indented and ended as the text ``like`` is."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(like)
        for indent in (2, 4, "\t", None, 1, 3, 8):
            if like.rstrip("\n") == json.dumps(fields, ensure_ascii=False, indent=indent) and like != "{}":
                end = like[len(like.rstrip("\n")) :]
                return json.dumps(table, ensure_ascii=False, indent=indent) + end
    return json.dumps(table, ensure_ascii=False, indent=2) + "\n"


def _as_toml(table: Mapping[str, Json]) -> str:
    return tomli_w.dumps(cast("dict[str, Any]", table))


def _replace(path: Path, text: str) -> None:
    """The file is there whole, or as it was; one that is a link stays one."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as scratch:
        new = Path(scratch, target.name)
        new.write_text(text, encoding="utf-8", newline="")
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)
