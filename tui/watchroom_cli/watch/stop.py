"""The command stop: pause or end agents, and print a proof for each stopped agent."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from watchroom.agents.clients.stopping import StopProof, end_agents, prove_paused, running_agents
from watchroom.model import HUMAN_PREFIX, RELEASE_AGENTS, STOP_AGENTS, Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.acting_person import act_as_person, name_of_this_person, refuse_agents
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json


def declare_stop(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agent", nargs="*", help=texts("cli.stop.agent"))
    parser.add_argument("--all", action="store_true", help=texts("cli.stop.all"))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--end", action="store_true", help=texts("cli.stop.end"))
    what.add_argument("--release", action="store_true", help=texts("cli.stop.release"))
    parser.add_argument("--yes", action="store_true", help=texts("cli.stop.yes"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_stop(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if a stop is not proven, or the call is refused."""
    if bool(args.agent) + args.all + args.release != 1:
        raise WrongUsage(texts("cli.stop.which"))
    person = args.person or name_of_this_person()
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        if args.release:
            return _release(workspace, person, args, texts)
        agents = running_agents(workspace) if args.all else list(dict.fromkeys(args.agent))
        if not agents:
            print(texts("cli.stop.nobody"))
            return 0
        _confirm(agents, args, texts)
        proofs = _stop(workspace, person, agents, args, texts)
    _print(proofs, args, texts)
    return 0 if proofs and all(proof.is_proven for proof in proofs) else 1


def _stop(
    workspace: Workspace, person: str, agents: Sequence[str], args: Namespace, texts: Catalogue
) -> list[StopProof]:
    if args.end:
        refuse_agents(workspace.root)
        return end_agents(workspace, agents, HUMAN_PREFIX + person)
    call = PersonCall(STOP_AGENTS, {"agents": agents, "everybody": args.all})
    result = act_as_person(workspace, person, call, language=args.language)
    return prove_paused(workspace, agents) if _is_done(result) else []


def _release(workspace: Workspace, person: str, args: Namespace, texts: Catalogue) -> int:
    agents = workspace.stops.held()
    if not agents and workspace.session_zone.find_stop_of_all() is None:
        print(texts("cli.stop.nobody_stopped"))
        return 0
    _confirm(agents, args, texts)
    result = act_as_person(workspace, person, PersonCall(RELEASE_AGENTS, {}), language=args.language)
    if not _is_done(result):
        return 1
    print(texts("cli.stop.released" if agents else "cli.stop.released_later", agents=_join_names(agents)))
    return 0


def _is_done(result: Mapping[str, Json]) -> bool:
    if not result["success"]:
        print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    return bool(result["success"])


def _confirm(agents: Sequence[str], args: Namespace, texts: Catalogue) -> None:
    """Ask for one confirmation for all agents. Raise `WrongUsage`."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise WrongUsage(texts("cli.stop.unasked"))
    verb = "release" if args.release else "end" if args.end else "pause"
    if args.all and not args.end:
        verb = "pause_all"
    if args.release and not agents:
        verb = "release_later"
    answer = input(texts(f"cli.stop.{verb}_question", count=len(agents), agents=_join_names(agents)) + " ")
    if answer.strip().lower() not in ("y", "yes", "是"):
        raise WrongUsage(texts("cli.stop.left"))


def _join_names(agents: Sequence[str]) -> str:
    return ", ".join(map(sanitize, agents))


def _print(proofs: Sequence[StopProof], args: Namespace, texts: Catalogue) -> None:
    if args.json:
        print_json([proof._asdict() for proof in proofs])
        return
    for proof in proofs:
        state = texts("cli.stop.proven" if proof.is_proven else "cli.stop.unproven")
        print(f"{sanitize(proof.agent)}\t{state}\t{sanitize(proof.how)}")
