"""Decide whether a run of the tests is green, from the JUnit reports of pytest.

    python3 .ci/verdict.py REPORT [--again REPORT]

``--again`` is the report of a second run of what failed in the first. Exit status 1:

- A test failed twice.
- A test failed and then passed, and is not in tests/known_unstable.toml, which may list five.
- A test was skipped, and is not in tests/expected_skips.toml.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

TESTS: Final = Path(__file__).parents[1] / "tests"
MAX_UNSTABLE: Final = 5


class Outcome(NamedTuple):
    """What happened to one test: ``kind`` is passed, skipped or failed."""

    test: str
    kind: str
    message: str


def read_report(path: Path) -> Iterator[Outcome]:
    """Yield the outcome of each test of a JUnit report."""
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314  # pytest wrote it
        test = f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}"
        failed = [each for each in case if each.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if failed:
            yield Outcome(test, "failed", failed[0].get("message") or "")
        elif skipped is not None and skipped.get("type") != "pytest.xfail":
            yield Outcome(test, "skipped", skipped.get("message") or "")
        else:
            yield Outcome(test, "passed", "")


def read_listed(path: Path, *fields: str) -> Sequence[Mapping[str, Any]]:
    """Return the entries ``[[test]]`` of a list. Raise ValueError if an entry lacks one of ``fields``."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8")).get("test", [])
    for entry in entries:
        if missing := [field for field in fields if not entry.get(field)]:
            raise ValueError(f"{path.name}: an entry lacks {', '.join(missing)}: {entry}")
    return entries


def is_listed(test: str, entries: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the reason of the first entry whose pattern ``id`` matches the test."""
    return next((entry["reason"] for entry in entries if fnmatchcase(test, entry["id"])), None)


def judge(first: Sequence[Outcome], again: Sequence[Outcome], folder: Path = TESTS) -> tuple[bool, list[str]]:
    """Return whether the run is green, and the lines that say why. ``folder`` holds the two lists."""
    unstable = read_listed(folder / "known_unstable.toml", "id", "reason", "since")
    expected = read_listed(folder / "expected_skips.toml", "id", "reason")
    second = {outcome.test: outcome.kind for outcome in again}
    lines, is_green = [], True
    if len(unstable) > MAX_UNSTABLE or not all(isinstance(each["since"], datetime.date) for each in unstable):
        is_green = False
        lines.append(f"RED known_unstable.toml: at most {MAX_UNSTABLE} entries, each with a date")
    for outcome in first:
        if outcome.kind == "passed":
            continue
        name, message = outcome.test, outcome.message
        if outcome.kind == "skipped":
            listed, accepted, refused = is_listed(name, expected), "not run", "unexpected skip"
        elif second.get(name) == "passed":
            listed, accepted, refused = is_listed(name, unstable), "known unstable", "unstable"
        else:
            listed, accepted, refused = None, "", "failed"
        is_green &= listed is not None
        lines.append(
            f"RED {refused}: {name}: {message}" if listed is None else f"{accepted}: {name}: {listed}"
        )
    counts = {kind: sum(each.kind == kind for each in first) for kind in ("passed", "failed", "skipped")}
    lines.append(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return is_green and bool(first), lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path)
    parser.add_argument("--again", type=Path)
    given = parser.parse_args(arguments)
    again = [*read_report(given.again)] if given.again and given.again.exists() else []
    is_green, lines = judge([*read_report(given.report)], again)
    print(*lines, sep="\n")
    return 0 if is_green else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
