"""One line about the output of a check: the counts of known test programs, else its last line. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from watchroom.features.checks.rows import MAX_SUMMARY, MAX_TAIL
from watchroom.validation import escape_unstorable

_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|.)")
_MAX_LINES: Final = 400
"""Maximum number of last lines that are searched."""
_MAX_LINE: Final = 500
_COUNT: Final = re.compile(r"(\d{1,9}) (passed|failed|errors?|total)\b")
_PYTEST: Final = re.compile(r"^=* ?(?=.*\d (?:passed|failed|errors?)\b).* in [\d.:]+s\b")
_JEST: Final = re.compile(r"^Tests: +(?=.*\d total)")
_CARGO: Final = re.compile(r"^test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed;")
_GO: Final = re.compile(r"^ *--- (PASS|FAIL|SKIP): ")
_UNITTEST: Final = re.compile(r"^Ran (\d{1,9}) tests? in ")
_UNITTEST_FAILED: Final = re.compile(r"^FAILED \((.*)\)$")
_NUMBER: Final = re.compile(r"(?:failures|errors)=(\d{1,9})")


class OutputSummary(NamedTuple):
    """``line``: one line. ``failed``, ``total``: the numbers of failed and of all tests; 0 if unknown."""

    line: str
    failed: int = 0
    total: int = 0


def clean_output(output: str) -> str:
    """Return the end of ``output`` as plain text, at most `MAX_TAIL` characters."""
    text = _ESCAPE.sub("", output[-4 * MAX_TAIL :]).replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(each if each.isprintable() or each in "\n\t" else " " for each in text).strip("\n")
    if len(kept) > MAX_TAIL:
        kept = kept[-MAX_TAIL:].partition("\n")[2] or kept[-MAX_TAIL:]
    return escape_unstorable(kept, MAX_TAIL)


def summarize(output: str) -> OutputSummary:
    """Return a summary of ``output``, the result of `clean_output`."""
    lines = [line.rstrip()[:_MAX_LINE] for line in output.split("\n") if line.strip()][-_MAX_LINES:]
    for find in (_find_pytest, _find_jest, _find_cargo, _find_unittest, _find_go):
        found = find(lines)
        if found is not None:
            return found._replace(line=escape_unstorable(found.line.strip("= "), MAX_SUMMARY))
    return OutputSummary(escape_unstorable(lines[-1].strip() if lines else "", MAX_SUMMARY))


def _find_pytest(lines: list[str]) -> OutputSummary | None:
    return _find_counts(lines, _PYTEST, lambda counts: counts["failed"] + counts["passed"])


def _find_jest(lines: list[str]) -> OutputSummary | None:
    return _find_counts(lines, _JEST, lambda counts: counts["total"])


def _find_counts(
    lines: list[str], form: re.Pattern[str], total: Callable[[Mapping[str, int]], int]
) -> OutputSummary | None:
    line = next((each for each in reversed(lines) if form.match(each)), None)
    if line is None:
        return None
    counts = {"passed": 0, "failed": 0, "total": 0}
    for number, word in _COUNT.findall(line):
        counts["failed" if word.startswith("error") else word] += int(number)
    return OutputSummary(line, counts["failed"], total(counts))


def _find_cargo(lines: list[str]) -> OutputSummary | None:
    found = [match for line in lines if (match := _CARGO.match(line))]
    if not found:
        return None
    passed, failed = (sum(int(match[group]) for match in found) for group in (1, 2))
    return OutputSummary(found[-1].string, failed, passed + failed)


def _find_unittest(lines: list[str]) -> OutputSummary | None:
    ran = next((match for line in reversed(lines) if (match := _UNITTEST.match(line))), None)
    if ran is None:
        return None
    failed = next((match for line in reversed(lines) if (match := _UNITTEST_FAILED.match(line))), None)
    count = sum(map(int, _NUMBER.findall(failed[1]))) if failed else 0
    return OutputSummary(failed.string if failed else ran.string, count, int(ran[1]))


def _find_go(lines: list[str]) -> OutputSummary | None:
    found = [match[1] for line in lines if (match := _GO.match(line))]
    if not found:
        return None
    # Without -v, go names only the tests that failed.
    total = len(found) if "PASS" in found else 0
    return OutputSummary(lines[-1], found.count("FAIL") if total else 0, total)
