"""The command verify: compare the files with the journal, and repair them."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.console import Console
from rich.text import Text
from watchroom.errors import JournalError
from watchroom.features.overview.model import Need
from watchroom.features.overview.snapshots import read_model
from watchroom.history.git import SealBranch
from watchroom.history.seal import FINGERPRINT, Anchor, SealReport, read_seal_file
from watchroom.history.verify import Problem
from watchroom.kernel.checkout.materializer import LAY_OUT_TOOL
from watchroom.kernel.journal import Journal
from watchroom.model import OUTSIDE, SYSTEM, Row, row_as_json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.formatters.need_texts import need_text
from watchroom_tui.formatters.seals import seal_as_json, seal_lines
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.output.progress import progress_bar
from watchroom_cli.publication import publish_as_set

if TYPE_CHECKING:
    from watchroom_tui.services.settings import Settings

_GIT: Final = "git:"
"""The prefix of a repository's path."""


class Repair(NamedTuple):
    """The result of a repair.

    - ``mended``: the solved problems.
    - ``recorded``: the rows that the repair wrote.
    - ``needs``: the needs of people among these rows.
    """

    mended: Sequence[Problem] = ()
    recorded: Sequence[Row] = ()
    needs: Sequence[Need] = ()


def declare_verify(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--against", metavar="FILE", help=texts("cli.argument.against"))
    parser.add_argument("--trust", metavar="SHA256:…", help=texts("cli.argument.trust"))
    parser.add_argument("--forget", action="store_true", help=texts("cli.argument.forget"))
    parser.add_argument("--yes", action="store_true", help=texts("cli.argument.forget_yes"))
    parser.add_argument("--repair", action="store_true", help=texts("cli.argument.repair"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_verify(args: Namespace, texts: Catalogue) -> int:
    settings = _read_settings(texts)
    against = _find_branch(args.against, settings)
    given = [] if against is not None else _read_given(args.against, texts)
    if args.trust is not None and not FINGERPRINT.fullmatch(args.trust):
        raise WrongUsage(texts("cli.seal.no_fingerprint", given=sanitize(args.trust)))
    with closing(open_journal(args.dir)) as journal:
        before = journal.last_seq()
    # Its spinner and bar are drawn with escapes, which `OutputStream` would remove.
    console = Console(file=sys.__stderr__)
    repair = Repair()
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        workspace.prepare_sealing = lambda sealing: publish_as_set(sealing, settings)
        if args.forget:
            _forget_replaced(workspace, args, texts)
        if args.trust is not None:
            workspace.sealing.trust_key(args.trust)
        unread: JournalError | None = None
        report = SealReport()
        with ThreadPoolExecutor(1, "verify") as pool:
            # Both checks run at once, because SQLite and the disk do much of the work.
            comparing = pool.submit(workspace.verify)
            try:
                report = _verify_seals(workspace, given, against, texts)
            except JournalError as error:
                unread = error
            with console.status(Text(texts("cli.verify.comparing", root=place_word(args.dir)))):
                problems = comparing.result()
        if args.repair:
            with console.status(Text(texts("cli.verify.comparing", root=place_word(args.dir)))):
                remaining = workspace.repair()
                repair = _repair(workspace.journal, before, problems, remaining)
                problems = remaining
        if unread is not None and not problems:
            # An unreadable journal is usually among the problems. Other errors are raised.
            raise unread
        rows = workspace.journal.last_seq()
    is_missing = against is not None and against.place in report.missing
    is_clean = not problems and not report.findings and not is_missing
    if args.json:
        _print_as_json(is_clean, problems, rows, report, repair if args.repair else None, texts)
    else:
        _print_repair(repair, texts)
        _print_problems(problems, rows, args, texts)
        lines = seal_lines(report, args.dir, texts)
        for line in (*lines.agrees, *lines.findings):
            print(line)
    return 0 if is_clean else 1


def _read_given(path: str | None, texts: Catalogue) -> list[Anchor]:
    """Return the given seal to compare with, if any. Raise `WrongUsage` if the file is not a seal."""
    if path is None:
        return []
    try:
        return [Anchor("given", path, read_seal_file(path))]
    except OSError as error:
        reason = error.strerror or str(error)
        raise WrongUsage(texts("cli.seal.unusable", path=sanitize(path), reason=reason)) from error


def _read_settings(texts: Catalogue) -> Settings:
    # Imported here because settings contain keys, whose module is slow to load.
    from watchroom_tui.services.settings import read_settings, settings_path

    return read_settings(settings_path(), texts)


def _forget_replaced(workspace: Workspace, args: Namespace, texts: Catalogue) -> None:
    """Forget the key and people of another workspace at this place, after a confirmation at the terminal.
    Raise `WrongUsage`."""
    found = workspace.sealing.find_replaced()
    if found is None and not workspace.sealing.has_lost_people():
        raise WrongUsage(texts("cli.seal.nothing_replaced", root=place_word(args.dir)))
    if not args.yes:
        if not sys.stdin.isatty():
            raise WrongUsage(texts("cli.seal.forget_unasked"))
        question = texts("cli.seal.forget_people_question")
        if found is not None:
            time = local_time(found.seal.time)
            question = texts("cli.seal.forget_question", sealed=found.seal.size, time=time)
        if input(f"{question} ").strip().lower() not in ("y", "yes", "是"):
            raise WrongUsage(texts("cli.seal.not_forgotten"))
    workspace.sealing.forget_replaced()


def _find_branch(path: str | None, settings: Settings) -> SealBranch | None:
    """Return the branch of seals in the repository at ``path``: a folder, or ``git:PATH``. None for other
    paths."""
    if path is None or not (path.startswith(_GIT) or os.path.isdir(path)):
        return None
    return SealBranch(os.path.expanduser(path.removeprefix(_GIT)), settings.publication.branch)


def _verify_seals(
    workspace: Workspace,
    given: list[Anchor],
    against: SealBranch | None,
    texts: Catalogue,
) -> SealReport:
    with progress_bar(texts("cli.seal.reading"), workspace.journal.last_seq()) as show:
        return workspace.sealing.verify(given, show, against=against)


def _repair(journal: Journal, before: int, found: list[Problem], remaining: list[Problem]) -> Repair:
    """Return the result of a repair.

    - ``before``: the last row before the repair.
    - ``found``, ``remaining``: the problems before and after the repair.
    """
    recorded: list[Row] = []
    seq = before
    while rows := journal.rows(seq):
        seq = rows[-1].seq
        # Rows of rewritten files are left out, because the problems of these files are in ``mended``.
        recorded += [
            row
            for row in rows
            if row.actor in (OUTSIDE, SYSTEM) and (row.tool, row.outcome) != (LAY_OUT_TOOL, "ok")
        ]
    numbers = {row.seq for row in recorded}
    needs = [need for need in read_model(journal, seq).needs if need.row.seq in numbers] if recorded else []
    # A set, because tens of thousands of problems can remain.
    left = set(remaining)
    return Repair([each for each in found if each not in left], recorded, needs)


def _print_as_json(
    is_clean: bool,
    problems: list[Problem],
    rows: int,
    report: SealReport,
    repair: Repair | None,
    texts: Catalogue,
) -> None:
    found: dict[str, object] = {
        "clean": is_clean,
        "rows": rows,
        "checkpoints": seal_as_json(report),
        "problems": [asdict(each) for each in problems],
    }
    if repair is not None:
        found["mended"] = [asdict(each) for each in repair.mended]
        found["recorded"] = [row_as_json(row) for row in repair.recorded]
        found["needs"] = [
            {
                "kind": each.kind,
                "path": each.row.path,
                "row": each.row.seq,
                "what": need_text(each, texts),
            }
            for each in repair.needs
        ]
    print_json(found, indent=2)


def _print_repair(repair: Repair, texts: Catalogue) -> None:
    for problem in repair.mended:
        zone, path, what = problem.zone, sanitize(problem.path), sanitize(problem.what)
        print(texts("cli.verify.mended", zone=zone, path=path, what=what))
    for row in repair.recorded:
        what = labels.outcome_span(row, texts).text
        print(texts("cli.verify.recorded", row=row.seq, zone=row.zone, path=sanitize(row.path), what=what))
    for need in repair.needs:
        print(texts("cli.verify.need", path=sanitize(need.row.path), what=need_text(need, texts)))


def _print_problems(problems: list[Problem], rows: int, args: Namespace, texts: Catalogue) -> None:
    if not problems:
        print(texts("cli.verify.clean", rows=rows))
        return
    for each in problems:
        print(f"{each.kind}\t{each.zone}\t{sanitize(each.path)}\t{sanitize(each.what)}")
    of_journal = sum(each.kind == "journal" for each in problems)
    of_decisions = sum(each.kind == "decision" for each in problems)
    of_paths = sum(each.kind == "path" for each in problems)
    of_files = len(problems) - of_journal - of_decisions - of_paths
    if of_files:
        closing_text = "cli.verify.remains" if args.repair else "cli.verify.found"
        print(texts(closing_text, count=of_files, root=place_word(args.dir)), file=sys.stderr)
    if of_journal:
        print(texts("cli.verify.journal", count=of_journal), file=sys.stderr)
    if of_decisions:
        print(texts("cli.verify.decisions", count=of_decisions), file=sys.stderr)
    if of_paths:
        print(texts("cli.verify.paths", count=of_paths), file=sys.stderr)
