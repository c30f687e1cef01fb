"""The command routine: list, show, run and stop routines. `add_routine` adds one for ``watchroom task``."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.agents.clients.launch import Launch, write_files
from watchroom.agents.clients.registry import LAUNCHED_CLIENTS
from watchroom.agents.clients.routine_run import is_served, log_path
from watchroom.features.routines.rows import ADD_ROUTINE, RUN_ROUTINE, STOP_ROUTINE, Measure
from watchroom.features.routines.rules import MAX_DAYS, SECOND, Trigger, is_clock, parse_interval
from watchroom.kernel.checkout.location import is_workspace
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.formatters.local_time import local_date, local_time
from watchroom_tui.formatters.routines import (
    amount_text,
    next_text,
    outcome_text,
    spent_text,
    trigger_text,
)
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.person_calls import PersonCall

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table
from watchroom_cli.start.launch import (
    build_client,
    find_program,
    run_as,
    start_service_if_possible,
)
from watchroom_cli.start.repository import find_start, make_workspace

if TYPE_CHECKING:
    from watchroom.features.routines.rows import Routine

_ACTIONS: Final = ("list", "show", "stop", "run-now", "start")
_DAY: Final = "day"
_REF: Final = "ref:"
_MINUTES: Final = 60.0
_SHOWN_RUNS: Final = 10
_LOCAL_ZONE: Final = "/etc/localtime"
_AMOUNT: Final = re.compile(r"\$?([0-9]+(?:\.[0-9]+)?)( ?tokens)?")
SCHEDULE_OPTIONS: Final = ("at", "client", "tree", "budget", "total", "until", "timeout", "name")
"""The options of ``watchroom task`` that need ``--every`` or ``--on``."""


class _Amount(NamedTuple):
    amount: float
    measure: Measure


def declare_routine(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=_ACTIONS, help=texts("cli.routine.action"))
    parser.add_argument("name", nargs="?", metavar="NAME", help=texts("cli.routine.name"))
    parser.add_argument("--dir", help=texts("cli.routine.dir"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))


def declare_schedule(parser: ArgumentParser, texts: Catalogue) -> None:
    """Add the options with which ``watchroom task`` adds a routine."""
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--every", metavar="INTERVAL", help=texts("cli.routine.every"))
    when.add_argument("--on", metavar="PATH | ref:NAME", help=texts("cli.routine.on"))
    parser.add_argument("--at", metavar="HH:MM", help=texts("cli.routine.at"))
    parser.add_argument("--client", metavar="CLIENT", help=texts("cli.routine.client"))
    parser.add_argument("--tree", action="store_true", help=texts("cli.routine.tree"))
    parser.add_argument("--budget", metavar="AMOUNT", help=texts("cli.routine.budget"))
    parser.add_argument("--total", metavar="AMOUNT", help=texts("cli.routine.total"))
    parser.add_argument("--until", metavar="DATE", help=texts("cli.routine.until"))
    parser.add_argument("--timeout", type=float, metavar="MINUTES", help=texts("cli.routine.timeout"))
    parser.add_argument("--name", metavar="NAME", help=texts("cli.routine.new_name"))


# Add


def add_routine(args: Namespace, team: Callable[[], str], texts: Catalogue) -> int:
    """Add the routine of ``watchroom task --every`` or ``--on``. ``team``: returns the team's folder, for a
    routine with a model. Return the exit status. Raise `WrongUsage`, `WatchroomError`, OSError."""
    folder = os.path.abspath(args.workspace or os.getcwd())
    fields = _read_fields(args, folder, texts)
    root = _find_root(folder, args, texts) if args.client else team()
    if not is_workspace(root):
        make_workspace(root, args.language or "en")
    with Workspace.open(root, create=False, scan=False) as workspace:
        taken = {each.name for each in workspace.routines.list()}
        name = args.name or next(str(each) for each in count(1) if str(each) not in taken)
        call = PersonCall(ADD_ROUTINE, {**fields, "routine": name})
        result = _act(workspace, call, args)
        if result != 0:
            return result
        start_service_if_possible(root, texts)
        routine = workspace.routines.find(name)
        said = next_text(routine, workspace.journal.now(), texts, is_served=True)
    place = sanitize(root)
    print(texts("cli.routine.added", name=name, next=said, root=place))
    return 0


def _read_fields(args: Namespace, folder: str, texts: Catalogue) -> dict[str, Json]:
    """Return the fields of the tool `ADD_ROUTINE`, without the name. Raise `WrongUsage`."""
    prompt = sys.stdin.read() if args.text == "-" else args.text
    if not prompt or bool(args.client) == bool(args.model) or args.simulate or (args.team and args.client):
        raise WrongUsage(texts("cli.routine.who"))
    if args.budget is None or args.total is None or args.until is None:
        raise WrongUsage(texts("cli.routine.limits"))
    if args.client:
        _check_client(args.client, texts)
    elif args.tree:
        raise WrongUsage(texts("cli.routine.tree_client"))
    budget, total = (_read_amount(each, texts) for each in (args.budget, args.total))
    if budget.measure != total.measure:
        raise WrongUsage(texts("cli.routine.no_amount", given=sanitize(args.total)))
    minutes = _MINUTES if args.timeout is None else args.timeout
    if not 0 < minutes < math.inf:
        raise WrongUsage(texts("cli.race.no_timeout"))
    fields: dict[str, Json] = {"prompt": prompt, "folder": folder, "client": args.client or ""}
    fields |= {"model": args.model or "", "base_url": args.base_url if args.model else "", "tree": args.tree}
    fields |= {"measure": budget.measure, "budget": budget.amount, "total": total.amount}
    fields |= {"until": _read_date(args.until, texts), "timeout": minutes * 60}
    trigger = _read_trigger(args, texts)
    fields |= {"trigger": trigger.kind, "seconds": trigger.seconds, "at": trigger.at}
    return {**fields, "zone": trigger.zone, "target": trigger.target}


def _read_trigger(args: Namespace, texts: Catalogue) -> Trigger:
    if args.on is not None:
        if args.at is not None or args.on in ("", _REF):
            raise WrongUsage(texts("cli.routine.when"))
        if args.on.startswith(_REF):
            return Trigger("ref", target=args.on.removeprefix(_REF))
        return Trigger("file", target=os.path.abspath(args.on))
    if args.every == _DAY:
        if args.at is None or not is_clock(args.at):
            raise WrongUsage(texts("cli.routine.when"))
        return Trigger("daily", at=args.at, zone="UTC" if args.utc else _local_zone())
    seconds = parse_interval(args.every)
    if seconds is None or args.at is not None:
        raise WrongUsage(texts("cli.routine.when"))
    return Trigger("every", seconds)


def _local_zone() -> str:
    """Return the name of this machine's time zone, UTC if it has no name."""
    from zoneinfo import available_timezones

    given = os.environ.get("TZ", "").removeprefix(":")
    linked = os.path.realpath(_LOCAL_ZONE).partition("/zoneinfo/")[2]
    return next((each for each in (given, linked) if each in available_timezones()), "UTC")


def _read_amount(text: str, texts: Catalogue) -> _Amount:
    found = _AMOUNT.fullmatch(text)
    if found is None or not float(found[1]):
        raise WrongUsage(texts("cli.routine.no_amount", given=sanitize(text)))
    return _Amount(float(found[1]), "tokens" if found[2] else "cost")


def _read_date(text: str, texts: Catalogue) -> int:
    """Return the end of the day ``text``, or the end of an interval from now, in seconds since the epoch."""
    now = int(datetime.now().astimezone().timestamp())
    if (interval := parse_interval(text)) is not None:
        return now + interval
    try:
        day = datetime.strptime(text, "%Y-%m-%d")
        end = int((day + timedelta(days=1)).astimezone().timestamp())
    except (ValueError, OverflowError):
        end = 0
    if not now < end <= now + MAX_DAYS * 86_400:
        raise WrongUsage(texts("cli.routine.no_date", given=sanitize(text)))
    return end


def _check_client(given: str, texts: Catalogue) -> None:
    try:
        name, *own = shlex.split(given)
    except ValueError:
        name, own = "", []
    if name not in LAUNCHED_CLIENTS or "--" in own:
        known = ", ".join(LAUNCHED_CLIENTS)
        raise WrongUsage(texts("cli.race.no_client", given=sanitize(given), known=known))
    find_program(LAUNCHED_CLIENTS[name], texts)


def _find_root(folder: str, args: Namespace, texts: Catalogue) -> str:
    start = find_start(folder)
    if start is None or (args.tree and start.place is None):
        raise WrongUsage(texts("cli.tree.no_repository"))
    return start.root


# The command


def run_routine(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status: 1 if the call is refused."""
    if (args.action == "list") != (args.name is None):
        raise WrongUsage(texts("cli.routine.usage"))
    with _opened(args, texts) as workspace:
        if args.action == "start":
            return _start(workspace, args, texts)
        if args.action in ("stop", "run-now"):
            tool = STOP_ROUTINE if args.action == "stop" else RUN_ROUTINE
            status = _act(workspace, PersonCall(tool, {"routine": args.name}), args)
            if status == 0:
                if tool == RUN_ROUTINE:
                    start_service_if_possible(workspace.root, texts)
                print(texts(f"cli.routine.{tool}", name=sanitize(args.name)))
            return status
        if args.action == "show":
            _show(workspace, workspace.routines.find(args.name), args, texts)
        else:
            _list(workspace, args, texts)
    return 0


@contextmanager
def _opened(args: Namespace, texts: Catalogue) -> Iterator[Workspace]:
    folder = os.path.abspath(args.dir or os.getcwd())
    start = find_start(folder)
    if start is None or not is_workspace(start.root):
        raise WrongUsage(texts("cli.routine.no_workspace"))
    with Workspace.open(start.root, create=False, scan=False) as workspace:
        yield workspace


def _act(workspace: Workspace, call: PersonCall, args: Namespace) -> int:
    person = args.person or name_of_this_person()
    result = act_as_person(workspace, person, call, language=args.language)
    if result["success"]:
        return 0
    print(f"{result['message']} {result['suggestion']}", file=sys.stderr)
    return 1


def _list(workspace: Workspace, args: Namespace, texts: Catalogue) -> None:
    found = workspace.routines.list()
    now, served = workspace.journal.now(), is_served(workspace.root)
    if args.json:
        print_json([_as_json(each, now, texts, is_known=served) for each in found])
        return
    table = [
        {
            "routine": each.name,
            "when": trigger_text(each.plan, texts),
            "next": next_text(each, now, texts, is_served=served),
            "last": outcome_text(each, texts),
            "spent": spent_text(each, texts),
            "until": local_date(each.plan.until - SECOND),
        }
        for each in found
    ]
    for line in format_table(table, texts) or [texts("cli.routine.no_routine")]:
        print(line)


def _show(workspace: Workspace, routine: Routine, args: Namespace, texts: Catalogue) -> None:
    now, served = workspace.journal.now(), is_served(workspace.root)
    if args.json:
        print_json(_as_json(routine, now, texts, is_known=served))
        return
    plan = routine.plan
    values = {
        "what": sanitize(routine.prompt),
        "who": sanitize(plan.client or plan.model),
        "folder": sanitize(plan.folder),
        "when": trigger_text(plan, texts),
        "next": next_text(routine, now, texts, is_served=served),
        "spent": spent_text(routine, texts),
        "budget": amount_text(plan.budget, plan.measure, texts),
        "until": local_date(plan.until - SECOND),
        "missed": str(routine.missed),
        "log": sanitize(log_path(workspace.root, routine.name)),
    }
    for key, value in values.items():
        print(f"{texts(f'cli.routine.field.{key}')}: {value}")
    for run in routine.runs[-_SHOWN_RUNS:]:
        end = run.end
        state = run.state if end is not None or routine.is_running else "interrupted"
        amount = amount_text(end.amount(plan.measure), plan.measure, texts) if end is not None else "-"
        sessions = ", ".join(sanitize(each) for each in end.sessions) if end is not None else ""
        said = texts(f"routines.state.{state}")
        if end is not None and end.reason:
            said += f": {sanitize(end.reason)}"
        print(f"  {local_time(run.begun.time)}  {said}  {amount}  {sessions or '-'}")


def _as_json(routine: Routine, now: int, texts: Catalogue, *, is_known: bool) -> dict[str, Json]:
    plan = routine.plan
    runs: list[Json] = [
        {
            "row": run.begun.seq,
            "began": run.begun.timestamp,
            "state": run.state if run.end is not None or routine.is_running else "interrupted",
            **({"cost": run.end.cost, "tokens": run.end.tokens} if run.end is not None else {}),
            "reason": run.end.reason if run.end is not None else "",
            "sessions": [*(run.end.sessions if run.end is not None else ())],
        }
        for run in routine.runs
    ]
    fields: dict[str, Json] = {"routine": routine.name, "prompt": routine.prompt, "client": plan.client}
    fields |= {"model": plan.model, "folder": plan.folder, "tree": plan.tree}
    fields |= {"trigger": plan.trigger._asdict(), "measure": plan.measure, "budget": plan.budget}
    fields |= {"total": plan.total, "spent": routine.spent, "until": plan.until // SECOND}
    fields |= {"next": next_text(routine, now, texts, is_served=is_known), "served": is_known}
    return {**fields, "stopped": routine.stopped, "missed": routine.missed, "runs": runs}


def _start(workspace: Workspace, args: Namespace, texts: Catalogue) -> int:
    """Replace this process with the client of a run. The service calls this."""
    routine = workspace.routines.find(args.name)
    name, *own = shlex.split(routine.plan.client)
    support = LAUNCHED_CLIENTS[name]
    program = find_program(support, texts)
    launch = build_client(name, workspace.root, support.work_on(routine.prompt, own), args.language, texts)
    write_files(launch.files)
    workspace.close()
    run_as(program, Launch(launch.arguments, launch.environment, {}))
