"""Options for reviews of proposed writes: hunks and commented lines by number."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence

from watchroom.features.requests.reviews import MAX_COMMENT_CHARACTERS, MAX_COMMENTS, LineKey, Review
from watchroom.features.requests.rows import Request
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage

_OLD = "old:"
"""The prefix of a line number in the old text."""


def add_review_arguments(parser: ArgumentParser, texts: Catalogue) -> None:
    for name, form, help_text in (
        ("--take", "[CALL=]N,…", texts("cli.argument.take")),
        ("--decline", "[CALL=]N,…", texts("cli.argument.decline")),
        ("--comment", "[CALL=][old:]LINE:TEXT", texts("cli.argument.comment")),
    ):
        parser.add_argument(name, action="append", default=[], metavar=form, help=help_text)


def has_review(args: Namespace) -> bool:
    """Return whether the options take or decline hunks, or comment on lines."""
    return bool(args.take or args.decline or args.comment)


def review_calls(
    args: Namespace, request: Request, begun: Mapping[str, Review], texts: Catalogue
) -> dict[str, Review]:
    """Return the reviews ``begun`` (by call id) with the options applied. Raise `WrongUsage` if an option
    names a missing call, hunk or line, or if options contradict each other."""
    reviews = dict(begun)
    taken = _hunks(args.take, request, reviews, texts)
    declined = _hunks(args.decline, request, reviews, texts)
    for call in {**taken, **declined}:
        reviews[call] = _choose(reviews[call], taken.get(call), declined.get(call), texts)
    for text in args.comment:
        call, given = split_call(text, request, texts)
        reviews[call] = _comment(_review(call, reviews, texts), given, texts)
    return reviews


def reviewed_calls(args: Namespace, request: Request, texts: Catalogue) -> frozenset[str]:
    """Return the ids of the calls whose hunks ``args`` takes or declines. Raise `WrongUsage`."""
    return frozenset(split_call(text, request, texts)[0] for text in (*args.take, *args.decline))


def split_call(text: str, request: Request, texts: Catalogue) -> tuple[str, str]:
    """Split an option's value into the id of a call of ``request`` and the rest. The id is optional if there
    is only one call. Raise `WrongUsage`."""
    ids = [call.id for call in request.calls]
    call, separator, rest = text.partition("=")
    if separator and call in ids:
        return call, rest
    if len(ids) == 1:
        return ids[0], text
    raise WrongUsage(texts("cli.answer.which", calls=sanitize(", ".join(ids))))


def _hunks(
    given: Sequence[str], request: Request, reviews: Mapping[str, Review], texts: Catalogue
) -> dict[str, frozenset[int]]:
    """Return the indices of the named hunks, by call id."""
    named: dict[str, frozenset[int]] = {}
    for text in given:
        call, numbers = split_call(text, request, texts)
        count = len(_review(call, reviews, texts).hunks)
        found = frozenset(_indices(numbers, count, texts))
        named[call] = named.get(call, frozenset()) | found
    return named


def _indices(numbers: str, count: int, texts: Catalogue) -> Iterator[int]:
    for number in numbers.split(","):
        # Longer numbers are out of range, and slow to convert.
        if not (number.strip().isdecimal() and len(number) <= 9 and 1 <= int(number) <= count):
            raise WrongUsage(texts("cli.answer.no_hunk", given=sanitize(number[:40]), count=count))
        yield int(number) - 1


def _review(call: str, reviews: Mapping[str, Review], texts: Catalogue) -> Review:
    if call not in reviews:
        raise WrongUsage(texts("cli.answer.no_review", call=sanitize(call)))
    return reviews[call]


def _choose(
    review: Review, taken: frozenset[int] | None, declined: frozenset[int] | None, texts: Catalogue
) -> Review:
    """Return ``review`` with the hunks ``taken`` or ``declined``. The other hunks get the reverse.

    Each hunk must be in one of the two sets if both are given. Raise `WrongUsage`.
    """
    everything = frozenset(range(len(review.hunks)))
    if taken is not None and declined is not None and (taken & declined or taken | declined != everything):
        unclear = (taken & declined) or everything - taken - declined
        named = ", ".join(str(each + 1) for each in sorted(unclear)[:20])
        raise WrongUsage(texts("cli.answer.unclear", hunks=named))
    wanted = declined if declined is not None else everything - (taken or frozenset())
    for hunk in wanted ^ review.declined:
        review = review.toggle(hunk)
    return review


def _comment(review: Review, given: str, texts: Catalogue) -> Review:
    is_old = given.startswith(_OLD)
    number, separator, said = given.removeprefix(_OLD).partition(":")
    is_number = number.isdecimal() and len(number) <= 9 and int(number) > 0
    if not separator or not said.strip() or not is_number:
        raise WrongUsage(texts("cli.answer.no_comment", given=sanitize(given[:40])))
    key = LineKey(int(number) - 1, is_old)
    if review.line(key) is None:
        raise WrongUsage(texts("cli.answer.no_line", line=number))
    try:
        return review.comment(key, said)
    except ValueError as error:
        most = {"comments": MAX_COMMENTS, "characters": MAX_COMMENT_CHARACTERS}
        raise WrongUsage(texts("cli.answer.too_much", **most)) from error
