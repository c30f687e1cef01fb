"""The verdict of .ci/run: what makes a run of the tests red."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PASSED: Final = '<testcase classname="tests.a.test_a" name="test_one"/>'
FAILED: Final = '<testcase classname="tests.a.test_a" name="test_two"><failure message="broken"/></testcase>'
MENDED: Final = '<testcase classname="tests.a.test_a" name="test_two"/>'
SKIPPED: Final = (
    '<testcase classname="tests.a.test_a" name="test_three"><skipped message="no cat"/></testcase>'
)
UNSTABLE: Final = '[[test]]\nid = "tests/a/test_a::test_two"\nreason = "a race"\nsince = 2026-11-28\n'
EXPECTED: Final = '[[test]]\nid = "tests/a/*::test_three"\nreason = "there is no cat"\n'


@pytest.mark.parametrize(
    ("first", "again", "unstable", "expected", "status", "printed"),
    [
        (PASSED, "", "", "", 0, "1 passed"),
        ("", "", "", "", 1, "0 passed"),
        (FAILED, FAILED, UNSTABLE, "", 1, "RED failed: tests/a/test_a::test_two: broken"),
        (FAILED, "", UNSTABLE, "", 1, "RED failed"),
        (FAILED, MENDED, "", "", 1, "RED unstable: tests/a/test_a::test_two: broken"),
        (FAILED, MENDED, UNSTABLE, "", 0, "known unstable: tests/a/test_a::test_two: a race"),
        (FAILED, MENDED, UNSTABLE * 6, "", 1, "at most 5 entries"),
        (SKIPPED, "", "", "", 1, "RED unexpected skip: tests/a/test_a::test_three: no cat"),
        (SKIPPED, "", "", EXPECTED, 0, "not run: tests/a/test_a::test_three: there is no cat"),
    ],
)
def test_the_verdict(
    tmp_path: Path, first: str, again: str, unstable: str, expected: str, status: int, printed: str
) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / ".ci/verdict.py").write_bytes((ROOT / ".ci/verdict.py").read_bytes())
    (tmp_path / "tests/known_unstable.toml").write_text(unstable)
    (tmp_path / "tests/expected_skips.toml").write_text(expected)
    reports = []
    for name, cases in (("first", first), ("again", again)):
        reports.append(tmp_path / f"{name}.xml")
        reports[-1].write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    done = subprocess.run(
        [sys.executable, tmp_path / ".ci/verdict.py", reports[0], "--again", reports[1]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "")
    assert printed in done.stdout


def test_the_lists_of_the_project_are_valid() -> None:
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        import verdict  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    is_green, lines = verdict.judge([verdict.Outcome("tests/a::b", "passed", "")], [])
    assert is_green, lines
