"""The command hand-over: brief another agent on the work of an agent, from the journal."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from watchroom.agents.clients.agent_claims import reserve_for_launch
from watchroom.agents.clients.launch import Launch, write_files
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.agents.clients.stopping import prove_paused
from watchroom.errors import SessionNotFound
from watchroom.features.config.rows import Agent
from watchroom.features.handoffs.rows import HAND_OVER
from watchroom.history.briefing import (
    MAX_NOTE,
    format_briefing,
    read_briefing,
    write_prompt,
    write_wake_message,
)
from watchroom.kernel.checkout.location import is_workspace
from watchroom.model import STOP_AGENTS, Json
from watchroom.texts import Catalogue
from watchroom.texts import catalogue as core_texts
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall, write_message

from watchroom_cli.acting_person import act_as_person, name_of_this_person, refuse_agents
from watchroom_cli.command import print_json
from watchroom_cli.start.launch import build_client, find_program, run_as, start_service_if_possible
from watchroom_cli.start.repository import find_start


def declare_hand_over(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("agent", metavar="AGENT", help=texts("cli.hand_over.agent"))
    parser.add_argument("to", nargs="?", metavar="TO", help=texts("cli.hand_over.to"))
    parser.add_argument("--note", default="", metavar="TEXT", help=texts("cli.hand_over.note"))
    parser.add_argument("--start", choices=[*LAUNCHED_CLIENTS], help=texts("cli.hand_over.start"))
    parser.add_argument("--stop", action="store_true", help=texts("cli.hand_over.stop"))
    parser.add_argument("--dir", help=texts("cli.tree.dir"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_hand_over(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if the hand-over is refused, or a stop is not proven."""
    if args.to is None and (args.start or args.stop):
        raise WrongUsage(texts("cli.hand_over.no_receiver"))
    if len(args.note) > MAX_NOTE:
        raise WrongUsage(texts("cli.hand_over.long_note", most=f"{MAX_NOTE:,}"))
    start = find_start(os.path.abspath(args.dir or os.getcwd()))
    if start is None or not is_workspace(start.root):
        raise WrongUsage(texts("cli.hand_over.no_workspace"))
    program = find_program(LAUNCHED_CLIENTS[args.start], texts) if args.start else ""
    with Workspace.open(start.root, create=False, scan=False) as workspace:
        if args.to is None:
            text, _ = _write(workspace, args)
            print_json({"agent": args.agent, "briefing": text}) if args.json else _print_text(text)
            return 0
        status, launch, folder = _hand_over(workspace, args, texts)
    if status or launch is None:
        return status
    if os.path.isdir(folder):
        os.chdir(folder)
    values = {"title": LAUNCHED_CLIENTS[args.start].title, "folder": sanitize(os.getcwd())}
    print(texts("cli.launch.supervised", root=sanitize(start.root), **values), file=sys.stderr)
    start_service_if_possible(start.root, texts)
    return run_as(program, launch._replace(environment={**launch.environment, "PWD": os.getcwd()}))


def _hand_over(workspace: Workspace, args: Namespace, texts: Catalogue) -> tuple[int, Launch | None, str]:
    """Return the exit status, and the start of the receiver's client in the agent's folder, if it is
    started."""
    refuse_agents(workspace.root)
    if args.start and args.to in workspace.registry.current().agents:
        raise WrongUsage(texts("cli.hand_over.taken", agent=sanitize(args.to)))
    workspace.registry.agent(args.agent)
    is_stopped = _stop(workspace, args, texts) if args.stop else True
    text, folder = _write(workspace, args)
    # First, because a failure must leave nothing.
    launch = _build(workspace, text, args, texts) if args.start else None
    if launch is not None:
        workspace.register([Agent(args.to)])
    fields: dict[str, Json] = {"agent_id": args.agent, "to_agent": args.to, "briefing": text}
    result = _act(workspace, PersonCall(HAND_OVER, {**fields, "is_prompt": bool(args.start)}), args)
    if not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
        return 1, None, ""
    is_awake = launch is None and _wake(workspace, args)
    if args.json:
        fields = {name: result[name] for name in ("agent_id", "to", "row")}
        print_json({**fields, "is_awake": is_awake, "is_stopped": args.stop and is_stopped, "briefing": text})
    else:
        values = {"agent": sanitize(args.agent), "to": sanitize(args.to), "size": f"{len(text):,}"}
        print(texts("cli.hand_over.done", **values))
        if launch is None:
            print(texts("cli.hand_over.woken" if is_awake else "cli.hand_over.later", **values))
    # The reason why a stop is not proven is printed. The client is started all the same.
    return (0 if is_stopped or launch is not None else 1), launch, folder


def _build(workspace: Workspace, text: str, args: Namespace, texts: Catalogue) -> Launch:
    """Return the start of a client as the new agent, with the briefing as its prompt."""
    prompt = write_prompt(text, args.agent, core_texts(workspace.config.language))
    given = LAUNCHED_CLIENTS[args.start].begin_with(prompt)
    launch = build_client(args.start, workspace.root, given, args.language, texts, (args.to,))
    write_files(launch.files)
    if LAUNCHED_CLIENTS[args.start].trusts_texts:
        reserve_for_launch(workspace, args.to, args.start)
    return launch


def _write(workspace: Workspace, args: Namespace) -> tuple[str, str]:
    """Return the briefing, and the folder in which the agent works, empty if unknown."""
    briefing = read_briefing(workspace.journal, args.agent)
    return format_briefing(briefing, core_texts(workspace.config.language), args.note), briefing.folder


def _print_text(text: str) -> None:
    for line in sanitize_lines(text.rstrip("\n")):
        print(line)


def _act(workspace: Workspace, call: PersonCall, args: Namespace) -> Mapping[str, Json]:
    person = args.person or name_of_this_person()
    return act_as_person(workspace, person, call, language=args.language)


def _wake(workspace: Workspace, args: Namespace) -> bool:
    """Send the receiver a message. Return whether it has a session that can get one."""
    text = write_wake_message(args.agent, core_texts(workspace.config.language))
    result = _act(workspace, write_message(args.to, text), args)
    if not result["success"] and result["error"] != SessionNotFound.code:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    return bool(result["success"])


def _stop(workspace: Workspace, args: Namespace, texts: Catalogue) -> bool:
    """Pause the agent that hands over. Return whether that is proven."""
    result = _act(workspace, PersonCall(STOP_AGENTS, {"agents": [args.agent]}), args)
    if not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
        return False
    proofs = prove_paused(workspace, [args.agent])
    for proof in proofs:
        state = texts("cli.stop.proven" if proof.is_proven else "cli.stop.unproven")
        print(f"{sanitize(proof.agent)}\t{state}\t{sanitize(proof.how)}", file=sys.stderr)
    return all(proof.is_proven for proof in proofs)
