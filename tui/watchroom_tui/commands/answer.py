"""The command answer: answer a request of an agent."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from watchroom.errors import RequestNotFound
from watchroom.queries.requests import find_request, read_request
from watchroom.rules.requests import Request, decide_all
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace

from watchroom_tui.commands.command import add_utc_argument, print_json
from watchroom_tui.commands.person import act_as_person, name_of_this_person
from watchroom_tui.readers.request import request_lines
from watchroom_tui.services import person_calls
from watchroom_tui.services.person_calls import PersonCall
from watchroom_tui.usage import WrongUsage
from watchroom_tui.worker.main import DiffLine, diff


def declare_answer(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("dir", help=texts("cli.argument.dir"))
    parser.add_argument("request", type=int, help=texts("cli.argument.request"))
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--approve", action="store_true", help=texts("cli.argument.approve"))
    answers.add_argument("--reject", nargs="?", const="", metavar="REASON", help=texts("cli.argument.reject"))
    answers.add_argument("--text", help=texts("cli.argument.text"))
    answers.add_argument("--choose", action="append", metavar="VALUE", help=texts("cli.argument.choose"))
    parser.add_argument(
        "--arguments", action="append", default=[], metavar="[CALL=]JSON", help=texts("cli.argument.edited")
    )
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    add_utc_argument(parser, texts)


def run_answer(args: Namespace, texts: Catalogue) -> int:
    """Without an answer, the request is printed."""
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        if args.arguments and not args.approve:
            raise WrongUsage(texts("cli.answer.arguments"))
        request = workspace.requests.find(args.request)
        if not (args.approve or args.reject is not None or args.text is not None or args.choose):
            _print(workspace, args.request, texts)
            return 0
        call = _answer_call(args, request, texts)
        result = act_as_person(workspace, args.person or name_of_this_person(), call)
    print_json(result, indent=2)
    return 0 if result["success"] else 1


def _answer_call(args: Namespace, request: Request, texts: Catalogue) -> PersonCall:
    if args.text is not None:
        return person_calls.reply(args.request, args.text)
    if args.choose:
        return person_calls.choose(args.request, args.choose)
    if not args.arguments:
        return person_calls.decide(args.request, approved=args.approve, reason=args.reject or "")
    edited = dict(_edited(text, request, texts) for text in args.arguments)
    return person_calls.decide_calls(args.request, decide_all(request, True, edited=edited).decisions)


def _edited(text: str, request: Request, texts: Catalogue) -> tuple[str, str]:
    """Which call gets other arguments, and which. Of a single call the name may be left out."""
    ids = [call.id for call in request.calls]
    call_id, separator, arguments = text.partition("=")
    if separator and call_id in ids:
        return call_id, arguments
    if len(ids) == 1:
        return ids[0], text
    raise WrongUsage(texts("cli.answer.which", calls=", ".join(ids)))


def _print(workspace: Workspace, number: int, texts: Catalogue) -> None:
    journal = workspace.journal
    asked = find_request(journal, number)
    if asked is None:
        raise RequestNotFound(request=number)
    full = read_request(journal, asked)
    changes: list[list[DiffLine] | None] = [
        diff(would.before, would.after) if would else None for would in full.proposals
    ]
    for line in request_lines(full, changes, texts):
        print("".join(span.text for span in line).rstrip())
