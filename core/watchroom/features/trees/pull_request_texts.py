"""The texts of a pull request and of its commits. Pure.

Names, paths and commands come from agents. They are quoted, so that they are neither trailers of a commit nor
Markdown, mentions or references at a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.trees.commit_series import PEOPLE, SeriesStep
from watchroom.features.trees.commits import identity_of
from watchroom.features.trees.line_rules import LineCount
from watchroom.features.trees.provenance import Approval, CheckRun
from watchroom.features.trees.rows import split_repo_path
from watchroom.model import OUTSIDE, SYSTEM, Row
from watchroom.texts import Catalogue
from watchroom.validation import escape_unstorable

MAX_TITLE: Final = 200
MAX_BODY_BYTES: Final = 60_000
"""Maximum bytes of a body. GitHub accepts 65,536 characters, and Linux 128 KiB per argument."""
_MAX_FILES: Final = 200
_MAX_LISTED: Final = 50
_MAX_CODE: Final = 300
_TICKS: Final = re.compile(r"`+")


class CommitOrigin(NamedTuple):
    """The origin of the changes of a commit. ``candidates``: the agents that may have made some of the
    changes."""

    sessions: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    approvals: tuple[Approval, ...] = ()
    candidates: tuple[str, ...] = ()


class PlannedCommit(NamedTuple):
    """A commit of a pull request. ``content``: the id of its git tree."""

    step: SeriesStep
    origin: CommitOrigin
    content: str

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents among its authors. The authors may be sessions, ``AGENT/SESSION``."""
        return tuple(dict.fromkeys(each.partition("/")[0] for each in self.step.authors if each != PEOPLE))

    @property
    def author(self) -> str:
        """The author for git, empty for the person in git's settings."""
        is_alone = len(self.agents) == 1 and PEOPLE not in self.step.authors
        return identity_of(self.agents[0]) if is_alone else ""


class BodyFacts(NamedTuple):
    """The data of a body.

    - ``tree``, ``into``, ``base``: the name of the tree, the target branch, and the commit to compare with.
    - ``left_out``: the paths of files whose bytes were not kept.
    """

    tree: str
    into: str
    base: str
    commits: Sequence[PlannedCommit]
    checks: Sequence[CheckRun] = ()
    settled: Sequence[Row] = ()
    left_out: Sequence[str] = ()


def clean_line(text: str, limit: int) -> str:
    """Return ``text`` as one line of at most ``limit`` characters, without control characters."""
    shown = "".join(each if each.isprintable() else " " for each in escape_unstorable(text, limit * 4))
    return " ".join(shown.split())[:limit]


def name_authors(authors: Iterable[str], texts: Catalogue) -> str:
    """Return the authors of a commit for people."""
    return texts("tree.separator").join(each or texts("pull_request.people") for each in authors)


def format_title(facts: BodyFacts, texts: Catalogue) -> str:
    """Return the default title of a pull request."""
    authors = dict.fromkeys(
        author and author.partition("/")[0] for each in facts.commits for author in each.step.authors
    )
    values = {"authors": name_authors(authors, texts), "tree": facts.tree}
    return clean_line(texts("pull_request.title", **values), MAX_TITLE)


def format_message(commit: PlannedCommit, texts: Catalogue) -> str:
    """Return the message of a commit, with its trailers."""
    values = {"authors": name_authors(commit.step.authors, texts), "count": len(commit.step.files)}
    trailers = "".join(f"{name}: {value}\n" for name, value in _list_trailers(commit))
    subject = clean_line(texts("pull_request.commit", **values), MAX_TITLE)
    return f"{subject}\n\n{trailers}" if trailers else f"{subject}\n"


def _list_trailers(commit: PlannedCommit) -> Iterator[tuple[str, str]]:
    origin = commit.origin
    named = {
        "Watchroom-Agent": commit.agents,
        "Watchroom-Candidate": origin.candidates,
        "Watchroom-Session": origin.sessions,
        "Watchroom-Task": origin.tasks,
        "Watchroom-Approved-By": [f"{each.actor} (row {each.seq})" for each in _approving_rows(origin)],
        "Co-authored-by": [] if commit.author else [identity_of(each) for each in commit.agents],
    }
    for name, values in named.items():
        for value in values:
            yield name, clean_line(value, MAX_TITLE)


def _approving_rows(origin: CommitOrigin) -> list[Row]:
    return [*{each.row.seq: each.row for each in origin.approvals}.values()]


def format_body(facts: BodyFacts, texts: Catalogue) -> str:
    """Return the body of a pull request in Markdown. Facts that no row has are left out."""
    values = {"tree": _code(facts.tree), "into": _code(facts.into), "base": facts.base[:12]}
    lines = [texts("pull_request.intro", **values), "", *_format_authors(facts, texts)]
    sections = {
        "files": [*_format_files(facts, texts)],
        "checks": [*_format_checks(facts, texts)],
        "approvals": [*_format_approvals(facts, texts)],
        "settled": [*_format_settled(facts, texts)],
        "left_out": [f"- {_code(each)}" for each in facts.left_out[:_MAX_LISTED]],
    }
    for name, items in sections.items():
        if items:
            lines += ["", f"### {texts(f'pull_request.{name}')}", "", *items]
    return _cut("\n".join(lines) + "\n")


def _format_authors(facts: BodyFacts, texts: Catalogue) -> Iterator[str]:
    yield texts("pull_request.table")
    yield "|---|---|---|"
    files = [file for commit in facts.commits for file in commit.step.files]
    paths: dict[str, set[str]] = {}
    for file in files:
        for author in file.counts:
            paths.setdefault(_quote_author(author, texts), set()).add(file.path)
    for name, count in _sum_lines((file.counts for file in files), texts).items():
        yield f"| {name} | {len(paths[name])} | {_format_count(count)} |"


def _format_files(facts: BodyFacts, texts: Catalogue) -> Iterator[str]:
    changed: dict[str, list[Mapping[str, LineCount]]] = {}
    for commit in facts.commits:
        for file in commit.step.files:
            changed.setdefault(file.path, []).append(file.counts)
    for path in sorted(changed)[:_MAX_FILES]:
        counts = _sum_lines(changed[path], texts).items()
        yield f"- {_code(path)}: {', '.join(f'{name} {_format_count(count)}' for name, count in counts)}"
    if len(changed) > _MAX_FILES:
        yield f"- {texts('pull_request.more', count=len(changed) - _MAX_FILES)}"


def _format_checks(facts: BodyFacts, texts: Catalogue) -> Iterator[str]:
    for each in facts.checks:
        status = texts("pull_request.timeout") if each.status is None else str(each.status)
        values = {"command": _code(" ".join(each.command)), "status": status, "row": each.row.seq}
        if each.agents:
            agents = texts("tree.separator").join(map(_code, each.agents))
            yield f"- {texts('pull_request.tried', agents=agents, **values)}"
        else:
            yield f"- {texts('pull_request.landed', **values)}"


def _format_approvals(facts: BodyFacts, texts: Catalogue) -> Iterator[str]:
    approvals = {each.row.seq: each for commit in facts.commits for each in commit.origin.approvals}
    for each in [*approvals.values()][:_MAX_LISTED]:
        values = {"person": _code(each.row.actor), "agent": _code(each.agent), "row": each.row.seq}
        name = "grant" if each.is_granted else "approval"
        yield f"- {texts(f'pull_request.{name}', **values)}"


def _format_settled(facts: BodyFacts, texts: Catalogue) -> Iterator[str]:
    for row in facts.settled[-_MAX_LISTED:]:
        path = split_repo_path(row.path)[1]
        yield f"- {texts('pull_request.settlement', path=_code(path), person=_code(row.actor), row=row.seq)}"


def _sum_lines(counts: Iterable[Mapping[str, LineCount]], texts: Catalogue) -> dict[str, LineCount]:
    """Return the lines of each author by the author's name in Markdown."""
    found: dict[str, LineCount] = {}
    for each in counts:
        for author, count in each.items():
            name = _quote_author(author, texts)
            before = found.get(name, LineCount(0, 0))
            found[name] = LineCount(before.added + count.added, before.removed + count.removed)
    return found


def _format_count(count: LineCount) -> str:
    return f"+{count.added} −{count.removed}"


def _quote_author(author: str, texts: Catalogue) -> str:
    is_named = author not in (PEOPLE, OUTSIDE, SYSTEM)
    return _code(author) if is_named else texts("pull_request.people")


def _code(text: str) -> str:
    """Return ``text`` as code in Markdown, on one line."""
    shown = clean_line(text, _MAX_CODE)
    ticks = "`" * (1 + max((len(each) for each in _TICKS.findall(shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _cut(body: str) -> str:
    data = body.encode("utf-8", "replace")
    if len(data) <= MAX_BODY_BYTES:
        return body
    return data[:MAX_BODY_BYTES].decode("utf-8", "ignore").rpartition("\n")[0] + "\n\n…\n"
