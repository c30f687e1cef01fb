"""The command answer: answer a request of an agent."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import get_args

from watchroom.errors import RequestNotFound
from watchroom.features.calls.reads import (
    RequestDetails,
    begin_reviews,
    find_request,
    read_request,
)
from watchroom.features.policy.grants import DEFAULT_SECONDS, DEFAULT_USES, GrantChoice, Scope
from watchroom.features.requests.reviews import decide_calls, reject_calls
from watchroom.features.requests.rows import Request
from watchroom.texts import Catalogue, catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.readers.request import RequestPage
from watchroom_tui.services import person_calls
from watchroom_tui.services.person_calls import PersonCall
from watchroom_tui.worker.main import DiffLine, diff

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.time_argument import seconds_until
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json
from watchroom_cli.watch.review_arguments import (
    add_review_arguments,
    has_review,
    review_calls,
    reviewed_calls,
    split_call,
)


def declare_answer(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("request", type=int, help=texts("cli.argument.request"))
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--approve", action="store_true", help=texts("cli.argument.approve"))
    answers.add_argument("--reject", nargs="?", const="", metavar="REASON", help=texts("cli.argument.reject"))
    answers.add_argument("--text", help=texts("cli.argument.text"))
    answers.add_argument("--choose", action="append", metavar="VALUE", help=texts("cli.argument.choose"))
    parser.add_argument(
        "--arguments", action="append", default=[], metavar="[CALL=]JSON", help=texts("cli.argument.edited")
    )
    add_review_arguments(parser, texts)
    parser.add_argument("--scope", choices=get_args(Scope), help=texts("cli.argument.scope"))
    parser.add_argument("--words", type=int, metavar="N", help=texts("cli.argument.grant_words"))
    parser.add_argument("--uses", type=int, metavar="N", help=texts("cli.argument.grant_uses"))
    parser.add_argument("--until", metavar="TIME", help=texts("cli.argument.grant_until"))
    parser.add_argument("--key", default="", metavar="FILE", help=texts("cli.argument.key"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    add_utc_argument(parser, texts)


def run_answer(args: Namespace, texts: Catalogue) -> int:
    """Answer the request. Print it if no answer is given."""
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        _check_options(args, texts)
        request = workspace.requests.find(args.request)
        is_decision = args.approve or args.reject is not None or args.take or args.decline
        if not (is_decision or args.text is not None or args.choose):
            _print(workspace, args.request, texts)
            return 0
        call = _answer_call(workspace, args, request, texts)
        choice = _choose_grant(args, workspace.journal.now(), texts)
        person = args.person or name_of_this_person()
        result = act_as_person(workspace, person, call, key=args.key)
        if choice is not None and result["success"]:
            call = person_calls.grant(args.request, choice)
            granted = act_as_person(workspace, person, call, key=args.key)
            result = {**result, **granted}
    print_json(result, indent=2)
    return 0 if result["success"] else 1


def _check_options(args: Namespace, texts: Catalogue) -> None:
    chooses = bool(args.take or args.decline)
    if args.scope is None and not (args.words is args.uses is args.until is None):
        raise WrongUsage(texts("cli.answer.needs_scope"))
    if args.scope and (not args.approve or args.arguments or chooses):
        raise WrongUsage(texts("cli.answer.scope"))
    if args.arguments and not args.approve:
        raise WrongUsage(texts("cli.answer.arguments"))
    if chooses and (args.reject is not None or args.text is not None or args.choose):
        raise WrongUsage(texts("cli.answer.take"))
    if args.comment and not (chooses or args.approve or args.reject is not None):
        raise WrongUsage(texts("cli.answer.comment"))


def _choose_grant(args: Namespace, now: int, texts: Catalogue) -> GrantChoice | None:
    """Return the scope in which the call is granted, None to approve it once."""
    if args.scope is None:
        return None
    seconds = seconds_until(args.until, now, texts) if args.until else None
    if seconds is None and args.scope == "place":
        seconds = DEFAULT_SECONDS
    return GrantChoice(args.scope, DEFAULT_USES if args.uses is None else args.uses, seconds, args.words)


def _answer_call(workspace: Workspace, args: Namespace, request: Request, texts: Catalogue) -> PersonCall:
    if args.text is not None:
        return person_calls.reply(args.request, args.text)
    if args.choose:
        return person_calls.choose(args.request, args.choose)
    if not args.arguments and not has_review(args):
        return person_calls.decide(args.request, approved=args.approve, reason=args.reject or "")
    reviews = review_calls(args, request, begin_reviews(_read(workspace, args.request)), texts)
    words = catalogue(args.language)
    if args.reject is not None:
        decisions = reject_calls(request.calls, reviews, words, args.reject)
        return person_calls.decide_calls(args.request, decisions, args.reject)
    edited = dict(split_call(text, request, texts) for text in args.arguments)
    chosen = reviewed_calls(args, request, texts)
    if chosen.intersection(edited):
        raise WrongUsage(texts("cli.answer.either"))
    calls = {call.id for call in request.calls}
    if not args.approve and calls - chosen:
        # The other calls are undecided.
        raise WrongUsage(texts("cli.answer.others", calls=sanitize(", ".join(sorted(calls - chosen)))))
    decisions = decide_calls(request.calls, reviews, words, approved=calls, edited=edited)
    return person_calls.decide_calls(args.request, decisions)


def _read(workspace: Workspace, number: int) -> RequestDetails:
    asked = find_request(workspace.journal, number)
    if asked is None:
        raise RequestNotFound(request=number)
    return read_request(workspace.journal, asked)


def _print(workspace: Workspace, number: int, texts: Catalogue) -> None:
    full = _read(workspace, number)
    changes: list[list[DiffLine] | None] = [
        diff(would.before, would.after) if would else None for would in full.proposals
    ]
    reviews = begin_reviews(full) if full.asked.ended is None else {}
    before = None
    for row in RequestPage(full, changes, texts).rows(reviews):
        if row.hunk is not None and (row.call, row.hunk) != before:
            count = len(reviews[row.call].hunks)
            print("   " + texts("cli.answer.hunk", number=row.hunk + 1, count=count))
        before = (row.call, row.hunk)
        print("".join(span.text for span in row.line).rstrip())
