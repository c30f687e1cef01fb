"""The command machine: show and answer the agents of workspaces on other machines, through ssh."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from queue import Empty, Queue
from time import monotonic
from typing import TYPE_CHECKING, Final

from watchroom import __version__
from watchroom.features.trees.place import display_name
from watchroom.model import timestamp
from watchroom.serving.machines.address import AddressProblem, Machine, parse_machine
from watchroom.texts import LANGUAGES, Catalogue
from watchroom.validation import check_human_name
from watchroom_tui.formatters.machines import agent_status, left_out_text, machine_text, outcome_text
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.settings import read_settings, settings_path, write_machines

from watchroom_cli.acting_person import name_of_this_person, refuse_agents
from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import find_workspace, workspace_of
from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table

if TYPE_CHECKING:
    from watchroom.serving.machines.connection import MachineView, Outcome
    from watchroom.serving.machines.messages import FarAnswer

_ACTIONS: Final = ("add", "list", "remove", "show", "answer", "serve")
_PATIENCE: Final = 45.0
"""Seconds to wait for a connection, and for the fate of an answer."""


def declare_machine(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("action", choices=_ACTIONS, help=texts("cli.machine.action"))
    parser.add_argument("name", nargs="?", metavar="NAME", help=texts("cli.machine.name"))
    parser.add_argument("address", nargs="?", metavar="ADDRESS", help=texts("cli.machine.address"))
    parser.add_argument("--program", default="", metavar="PATH", help=texts("cli.machine.program"))
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--approve", action="store_true", help=texts("cli.argument.approve"))
    answers.add_argument("--reject", nargs="?", const="", metavar="REASON", help=texts("cli.argument.reject"))
    answers.add_argument("--text", help=texts("cli.argument.text"))
    answers.add_argument("--choose", action="append", metavar="VALUE", help=texts("cli.argument.choose"))
    answers.add_argument("--seen", action="store_true", help=texts("cli.machine.seen"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_machine(args: Namespace, texts: Catalogue) -> int:
    """Return the exit status."""
    run: Callable[[Namespace, Catalogue], int] = {
        "add": _add,
        "list": _list,
        "remove": _remove,
        "show": _show,
        "answer": _answer,
        "serve": _serve,
    }[args.action]
    return run(args, texts)


def _add(args: Namespace, texts: Catalogue) -> int:
    if not args.name or not args.address:
        raise WrongUsage(texts("cli.machine.add_usage"))
    try:
        parse_machine(args.name, args.address, args.program)
    except AddressProblem as problem:
        raise WrongUsage(texts(f"machine.problem.{problem.rule}")) from problem
    path = settings_path()
    machines = dict(read_settings(path, texts).machines)
    if args.name in machines:
        raise WrongUsage(texts("cli.machine.exists", name=args.name))
    entry = {"address": args.address, "program": args.program}
    machines[args.name] = entry if args.program else args.address
    _write(machines, texts)
    print(texts("cli.machine.added", name=args.name))
    return 0


def _remove(args: Namespace, texts: Catalogue) -> int:
    machines = dict(read_settings(settings_path(), texts).machines)
    if machines.pop(args.name or "", None) is None:
        raise WrongUsage(texts("cli.machine.none_such", name=sanitize(args.name or "")))
    _write(machines, texts)
    print(texts("cli.machine.removed", name=args.name))
    return 0


def _write(machines: dict[str, str | Mapping[str, str]], texts: Catalogue) -> None:
    path = settings_path()
    try:
        write_machines(path, machines)
    except ValueError as error:
        raise WrongUsage(texts("settings.problem", path=path, problem=error)) from error


def _list(args: Namespace, texts: Catalogue) -> int:
    machines = _known(texts)
    if args.json:
        fields = ("name", "address", "program")
        print_json([{field: getattr(each, field) for field in fields} for each in machines])
    elif not machines:
        print(texts("cli.machine.empty"))
    for each in () if args.json else machines:
        print(f"{each.name}\t{sanitize(each.address)}")
    return 0


def _known(texts: Catalogue) -> tuple[Machine, ...]:
    return read_settings(settings_path(), texts).machine_list


def _find(name: str, texts: Catalogue) -> Machine:
    found = next((each for each in _known(texts) if each.name == name), None)
    if found is None:
        raise WrongUsage(texts("cli.machine.none_such", name=sanitize(name)))
    return found


class _News:
    """The connections to ``machines``, and their news in order."""

    def __init__(self, machines: Sequence[Machine], args: Namespace) -> None:
        # Loaded here, because the other actions need no connection.
        from watchroom.serving.machines.connection import Machines

        self._news: Queue[MachineView | Outcome] = Queue()
        person = check_human_name(args.person or name_of_this_person())
        self.machines = Machines(
            machines, person, args.language, __version__, self._put_views, self._news.put
        )

    def _put_views(self, views: tuple[MachineView, ...]) -> None:
        for view in views:
            self._news.put(view)

    def next(self, seconds: float) -> MachineView | Outcome | None:
        """Return the next news, None after ``seconds``."""
        try:
            return self._news.get(timeout=max(0.0, seconds))
        except Empty:
            return None


def _show(args: Namespace, texts: Catalogue) -> int:
    """Show the machine, or all machines. Return 0 if all are connected."""
    machines = (_find(args.name, texts),) if args.name else _known(texts)
    if not machines:
        print(texts("cli.machine.empty"))
        return 0
    news = _News(machines, args)
    deadline = monotonic() + _PATIENCE
    with closing(news.machines):
        news.machines.start()
        while any(each.state == "connecting" for each in news.machines.views):
            if news.next(deadline - monotonic()) is None:
                break
        views = news.machines.views
    if args.json:
        print_json([_as_json(each) for each in views])
    else:
        for view in views:
            _print_view(view, texts)
    return 0 if all(each.is_connected for each in views) else 1


def _print_view(view: MachineView, texts: Catalogue) -> None:
    print(machine_text(view, __version__, texts))
    if left_out := left_out_text(view, texts):
        print(left_out)
    agents = [
        {"agent": f"{view.name}/{each.id}", "status": agent_status(view, each, texts), "what": each.text}
        for each in view.agents
    ]
    needs = [
        {"need": f"{view.name}/{each.row}", "kind": each.kind, "who": each.party, "what": each.matter}
        for each in view.needs
    ]
    for table in (agents, needs):
        for line in format_table(table, texts):
            print(line)


def _as_json(view: MachineView) -> dict[str, object]:
    return {
        "name": view.name,
        "state": view.state,
        "since": timestamp(view.since),
        "reason": view.reason,
        "place": view.place,
        "version": view.version,
        "agents": [each.model_dump(mode="json") for each in view.agents],
        "needs": [each.model_dump(mode="json", exclude={"shown"}) for each in view.needs],
    }


def _answer(args: Namespace, texts: Catalogue) -> int:
    """Answer a need. Print it if no answer is given. Return 0 if the answer was accepted."""
    name, _, row = (args.name or "").partition("/")
    if not row.isdecimal():
        raise WrongUsage(texts("cli.machine.answer_usage"))
    refuse_agents(find_workspace() or os.curdir)
    machine, number = _find(name, texts), int(row)
    news = _News([machine], args)
    deadline = monotonic() + _PATIENCE
    with closing(news.machines):
        news.machines.start()
        while (view := news.machines.views[0]).state == "connecting":
            if news.next(deadline - monotonic()) is None:
                break
        if not view.is_connected:
            print(machine_text(view, __version__, texts), file=sys.stderr)
            return 1
        need = next((each for each in view.needs if each.row == number), None)
        if need is None:
            print(texts("cli.machine.no_need", name=name, row=number), file=sys.stderr)
            return 1
        decision, text, values = _decision(args)
        if decision is None:
            for line in need.details:
                print(sanitize(line))
            return 0
        if decision not in need.answers:
            raise WrongUsage(texts("cli.machine.not_here", answers=", ".join(need.answers) or "-"))
        news.machines.answer(name, need, decision, text, values)
        return _follow(news, texts)


def _decision(args: Namespace) -> tuple[FarAnswer | None, str, Sequence[str]]:
    if args.approve:
        return "approve", "", ()
    if args.reject is not None:
        return "reject", args.reject, ()
    if args.text is not None:
        return "reply", args.text, ()
    if args.choose:
        return "choose", "", args.choose
    return ("seen" if args.seen else None), "", ()


def _follow(news: _News, texts: Catalogue) -> int:
    """Print the fate of the answer. Wait longer if it is not known. Return the exit status."""
    from watchroom.serving.machines.connection import Outcome

    deadline = monotonic() + _PATIENCE
    while (each := news.next(deadline - monotonic())) is not None:
        if isinstance(each, Outcome):
            is_fine = each.fate == "accepted"
            print(outcome_text(each, texts), file=sys.stdout if is_fine else sys.stderr, flush=True)
            if each.fate != "unknown":
                return 0 if is_fine else 1
    return 1


def _serve(args: Namespace, texts: Catalogue) -> int:
    """Serve the workspace in ``name`` on standard input and output, for another machine."""
    if not args.name:
        raise WrongUsage(texts("cli.machine.serve_usage"))
    # Loaded here, because they are slow.
    from watchroom.serving.machines.answers import PersonAnswers
    from watchroom.serving.machines.far_end import Channel, FarEnd
    from watchroom.serving.machines.messages import PROTOCOL, Hello

    from watchroom_cli.machines.summary import SummaryMaker

    person = check_human_name(args.person or name_of_this_person())
    root = workspace_of(args.name)
    with closing(open_journal(root)) as journal:
        answers = PersonAnswers(root, journal, person, args.language)
        hello = Hello(protocol=PROTOCOL, version=__version__, place=display_name(root)[:200])
        maker = SummaryMaker(journal, load_texts(args.language))
        FarEnd(journal, hello, maker, answers, Channel(0, 1)).run()
    return 0
