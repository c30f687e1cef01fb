"""The command race: give several agents the same prompt, compare their work, and pick one."""

from __future__ import annotations

import math
import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from watchroom.agents.clients.launch import Launch, write_files
from watchroom.agents.clients.race_run import RaceProgress, RaceRun, RaceStart, log_path
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.errors import GitError, InvalidRace
from watchroom.features.races.rows import MAX_AGENTS, MAX_COMMAND, MAX_PROMPT, MIN_AGENTS, PICK_RACE
from watchroom.features.races.service import RacePlan
from watchroom.features.trees.rows import COMMIT_AGENT, Tree
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.validation import extract_first_line
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize, sanitize_lines
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.acting_person import act_as_person, name_of_this_person, refuse_agents
from watchroom_cli.history.land import has_landed, land_tree
from watchroom_cli.start.launch import (
    build_client,
    find_program,
    find_same_folder,
    start_service_if_possible,
)
from watchroom_cli.start.own_tree import caller_of, open_repository, print_added, shown_progress
from watchroom_cli.start.race_table import print_race, progress_line, progress_lines
from watchroom_cli.start.tree import print_refused

if TYPE_CHECKING:
    from watchroom.features.races.reads import Race, RaceEntry
    from watchroom.features.trees.own_trees import OwnTree

_SHOW: Final = "show"
_PICK: Final = "pick"
_MINUTES: Final = 60.0
_CLIENT: Final = "claude"
_MAX_SUBJECT: Final = 72
_MAX_LINES: Final = 5
"""Max lines to print from the end of a failed client's output."""
_RUN_OPTIONS: Final = ("clients", "check", "timeout", "name", "start")
_PICK_OPTIONS: Final = ("land", "into", "person")


def declare_race(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("what", metavar="N", help=texts("cli.race.what"))
    parser.add_argument("words", nargs="*", metavar="PROMPT", help=texts("cli.race.words"))
    parser.add_argument(
        "--client", dest="clients", action="append", metavar="CLIENT", help=texts("cli.race.client")
    )
    parser.add_argument("--check", metavar="COMMAND", help=texts("cli.race.check_command"))
    parser.add_argument("--timeout", type=float, metavar="MINUTES", help=texts("cli.race.timeout"))
    parser.add_argument("--name", metavar="NAME", help=texts("cli.race.name"))
    parser.add_argument("--from", dest="start", metavar="REF", help=texts("cli.race.from"))
    parser.add_argument("--land", action="store_true", help=texts("cli.race.land"))
    parser.add_argument("--into", metavar="BRANCH", help=texts("cli.argument.land_into"))
    parser.add_argument("--dir", help=texts("cli.tree.dir"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def run_race(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if no client succeeded, or if the picked work did not land."""
    folder = os.path.abspath(args.dir or os.getcwd())
    is_run = args.what not in (_SHOW, _PICK)
    foreign = [] if is_run else [*_RUN_OPTIONS]
    foreign += [] if args.what == _PICK else [*_PICK_OPTIONS]
    if any(getattr(args, each) not in (None, False) for each in foreign):
        raise WrongUsage(texts("cli.race.usage"))
    if is_run:
        return _run(args, folder, texts)
    if args.what == _PICK:
        return _pick(args, folder, texts)
    if len(args.words) > 1:
        raise WrongUsage(texts("cli.race.usage"))
    with open_repository(folder, args.language, texts) as workspace:
        race = workspace.races.find(*args.words)
        print_race(workspace, race, texts, as_json=args.json)
    return 0


# Run


def _run(args: Namespace, folder: str, texts: Catalogue) -> int:
    plan = _read_plan(args, texts)
    for each in plan.clients:
        find_program(LAUNCHED_CLIENTS[shlex.split(each)[0]], texts)
    with open_repository(folder, args.language, texts) as workspace:
        refuse_agents(workspace.root)
        plan = plan._replace(name=args.name or workspace.races.choose_name(folder))
        with workspace.races.claim(plan.name) as is_mine:
            if not is_mine:
                raise InvalidRace(name=plan.name, rule="race_running")
            call = caller_of(workspace)
            # First, because a failure must leave no trees.
            launches = [_build(workspace, each, plan.prompt, args, texts) for each in plan.clients]
            _print_notes(plan, texts)
            start_service_if_possible(workspace.root, texts)
            race, trees = _begin(workspace, call, plan, folder, texts)
            starts = _make_starts(race, trees, launches, folder)
            try:
                with _shown_run(texts) as (on_progress, is_measured):
                    RaceRun(workspace, call, starts, on_progress, is_measured=is_measured).run()
                _check(workspace, call, plan.name, texts)
            except (KeyboardInterrupt, SystemExit):
                print(texts("cli.race.stopped", name=sanitize(plan.name)), file=sys.stderr)
                raise
        race = workspace.races.find(plan.name)
        print_race(workspace, race, texts, as_json=args.json)
        _print_failures(workspace, race, texts)
    return 0 if any(each.state == "done" for each in race.entries) else 1


def _read_plan(args: Namespace, texts: Catalogue) -> RacePlan:
    """Return the plan in the arguments, without a name. Raise `WrongUsage`."""
    count = int(args.what) if args.what.isdecimal() and len(args.what) < 4 else 0
    if not MIN_AGENTS <= count <= MAX_AGENTS:
        raise WrongUsage(
            texts("cli.race.count", fewest=MIN_AGENTS, most=MAX_AGENTS, given=sanitize(args.what))
        )
    if len(args.words) != 1:
        raise WrongUsage(texts("cli.race.usage"))
    (prompt,) = args.words
    # Codex takes a hyphen alone as the name of its standard input.
    if prompt.strip() in ("", "-") or len(os.fsencode(prompt)) > MAX_PROMPT:
        raise WrongUsage(texts("cli.race.no_prompt", most=f"{MAX_PROMPT:,}"))
    minutes = _MINUTES if args.timeout is None else args.timeout
    if not (0 < minutes < math.inf):
        raise WrongUsage(texts("cli.race.no_timeout"))
    given = args.clients or [_CLIENT]
    check = args.check or ""
    if max(map(len, (check, *given))) > MAX_COMMAND:
        raise WrongUsage(texts("cli.race.long_command", most=f"{MAX_COMMAND:,}"))
    for each in given:
        _check_client(each, texts)
    clients = tuple(given[number % len(given)] for number in range(count))
    return RacePlan("", prompt, clients, minutes * 60, check, args.start or "")


def _check_client(given: str, texts: Catalogue) -> None:
    """Raise `WrongUsage` unless ``given`` is a client, with or without arguments of its own."""
    try:
        name, *own = shlex.split(given)
    except ValueError:
        name, own = "", []
    if name not in LAUNCHED_CLIENTS or "--" in own:
        known = ", ".join(LAUNCHED_CLIENTS)
        raise WrongUsage(texts("cli.race.no_client", given=sanitize(given), known=known))


def _begin(
    workspace: Workspace, call: CallContext, plan: RacePlan, folder: str, texts: Catalogue
) -> tuple[Race, list[OwnTree]]:
    command = workspace.config.trees.setup
    with shown_progress(command, texts) as listeners:
        begun = workspace.races.begin(
            *(call, plan, folder),
            listeners=listeners,
            on_added=lambda added: print_added(added, command, texts),
        )
    for tree in begun[1]:
        values = {"name": sanitize(tree.name), "branch": sanitize(tree.branch)}
        print(texts("cli.tree.added", folder=sanitize(tree.folder), **values), file=sys.stderr)
    return begun


def _build(
    workspace: Workspace, client: str, prompt: str, args: Namespace, texts: Catalogue
) -> tuple[str, Launch]:
    """Return a client's program, and its start. The client gets the same hooks as a client that a person
    starts."""
    name, *own = shlex.split(client)
    support = LAUNCHED_CLIENTS[name]
    launch = build_client(name, workspace.root, support.work_on(prompt, own), args.language, texts)
    write_files(launch.files)
    return find_program(support, texts), launch


def _print_notes(plan: RacePlan, texts: Catalogue) -> None:
    """Print the steps that a person must take once for each client program."""
    for name in dict.fromkeys(shlex.split(each)[0] for each in plan.clients):
        if f"cli.launch.next_{name}" in texts:
            print(texts(f"cli.launch.next_{name}"), file=sys.stderr)


def _make_starts(
    race: Race, trees: Sequence[OwnTree], launches: Sequence[tuple[str, Launch]], folder: str
) -> list[RaceStart]:
    """Return the starts of all clients, in the subfolder that corresponds to ``folder``."""
    starts = []
    for entry, tree, (program, launch) in zip(race.entries, trees, launches, strict=True):
        place = find_same_folder(tree, folder)
        environment = {**os.environ, **launch.environment, **tree.variables, "PWD": place}
        starts.append(RaceStart(entry, (program, *launch.arguments), environment, place))
    return starts


@contextmanager
def _shown_run(texts: Catalogue) -> Iterator[tuple[Callable[[Sequence[RaceProgress]], object], bool]]:
    """Show the progress of the agents on standard error, in one line for each agent. If it is not a terminal,
    print a line for each change of a state.

    Yields a callback for the progress, and whether it shows the agents' changes while they run.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=sys.__stderr__)
    if console.is_terminal:
        lines: list[str] = []

        def draw() -> Text:
            return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")

        with Live(console=console, auto_refresh=False, transient=True, get_renderable=draw) as live:

            def show(progress: Sequence[RaceProgress]) -> None:
                lines[:] = progress_lines(progress, texts)
                live.refresh()

            yield show, True
        return
    shown: dict[int, object] = {}

    def report(progress: Sequence[RaceProgress]) -> None:
        for each in progress:
            number = each.entry.entrant.number
            state = (each.state, each.is_waiting)
            if shown.get(number) != state:
                shown[number] = state
                print(progress_line(each, texts), file=sys.stderr, flush=True)

    yield report, False


def _check(workspace: Workspace, call: CallContext, race: str, texts: Catalogue) -> None:
    """Run the check on the work of each agent, one after the other, so that the times can be compared."""
    for entry in workspace.races.find(race).entries:
        if entry.entrant.check:
            name = sanitize(entry.entrant.name)
            print(texts("cli.race.checking", name=name), file=sys.stderr)
            try:
                workspace.races.check(call, entry)
            except (GitError, OSError) as error:
                # The other agents are checked all the same.
                reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
                print(texts("cli.race.not_checked", name=name, reason=sanitize(reason)), file=sys.stderr)


def _print_failures(workspace: Workspace, race: Race, texts: Catalogue) -> None:
    """Print the end of the output of each client that failed."""
    for each in race.entries:
        path = log_path(workspace.root, each)
        if each.state == "done" or not os.path.exists(path) or not os.path.getsize(path):
            continue
        print(texts("cli.race.log", name=sanitize(each.entrant.name), path=sanitize(path)), file=sys.stderr)
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = sanitize_lines(file.read().rstrip("\n"))
        for line in lines[-_MAX_LINES:]:
            print(f"  {line}", file=sys.stderr)


# Pick


def _pick(args: Namespace, folder: str, texts: Catalogue) -> int:
    if len(args.words) != 2 or not args.words[1].isdecimal() or (args.into and not args.land):
        raise WrongUsage(texts("cli.race.usage"))
    name, number = args.words[0], int(args.words[1])
    with open_repository(folder, args.language, texts) as workspace:
        person = args.person or name_of_this_person()
        pick = PersonCall(PICK_RACE, {"race": name, "number": number})
        result = act_as_person(workspace, person, pick, language=args.language)
        if not result["success"]:
            print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
            return 1
        race = workspace.races.find(name)
        is_clean = _put_away(workspace, CallContext(f"human:{person}"), race, args, texts)
        if race.picked is not None and args.land:
            return 0 if _land(workspace, race, race.picked, args, texts) and is_clean else 1
        values = {"name": sanitize(str(result["name"])), "folder": sanitize(str(result["folder"]))}
        print(texts("cli.race.picked", **values))
    return 0 if is_clean else 1


def _put_away(workspace: Workspace, call: CallContext, race: Race, args: Namespace, texts: Catalogue) -> bool:
    """Put away the trees that were not picked. Return whether all of them were removed."""
    # Slow to load, and needed only here.
    from watchroom.agents.clients.tree_agents import find_agents_at_work

    agents, is_clean = find_agents_at_work(workspace), True
    for entry in race.entries:
        try:
            done = None if entry.is_picked else workspace.races.put_away(call, entry, agents)
        except GitError as error:
            # This tree stays as it is. The others are put away all the same.
            print(f"{sanitize(entry.entrant.name)}: {error.report(args.language)}", file=sys.stderr)
            is_clean = False
            continue
        if done is None:
            continue
        values = {"name": sanitize(entry.entrant.name), "ref": sanitize(done.kept.ref)}
        print(texts("cli.race.put_away", **values))
        if done.error is not None:
            is_clean = False
            print_refused(done.plan, done.plan.obstacles, texts)
    return is_clean


def _land(workspace: Workspace, race: Race, entry: RaceEntry, args: Namespace, texts: Catalogue) -> bool:
    """Commit the uncommitted changes of the picked tree, and land it with the check of the race."""
    person, entrant = args.person or name_of_this_person(), entry.entrant
    recorder = workspace.trees.tree(entry.tree)
    if recorder is not None:
        workspace.trees.refresh(recorder)
        authors = workspace.agent_commits.plan(recorder.git).authors
        if authors:
            message = extract_first_line(race.prompt, _MAX_SUBJECT)
            fields: dict[str, Json] = {"tree": entry.tree, "agents": [*authors], "message": message}
            commit = PersonCall(COMMIT_AGENT, fields)
            result = act_as_person(workspace, person, commit, language=args.language)
            if not result["success"]:
                print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
                return False
    options = Namespace(
        into=args.into, check=entrant.check, person=person, language=args.language, json=False
    )
    tree = Tree(entry.tree, entrant.folder, "", entrant.branch)
    return has_landed(land_tree(workspace, tree, options, texts))
