"""Whose lines are not committed yet, and a file with the changes of some authors."""

from __future__ import annotations

from random import Random

import pytest
from effort import seeds
from watchroom.algorithms.weave import Weave
from watchroom.features.trees.line_rules import (
    UNKNOWN,
    AuthoredLine,
    FileChanges,
    HeadFile,
    KnownVersions,
    LineCount,
    LineVersion,
)

AUTHORS = ("alice", "bob", "carl", "human:ann")


def changes(head: str | None, *versions: tuple[str, str | None]) -> FileChanges:
    """The changes of a file that git had as ``head``, then of each version: its author, and its text."""
    rows = [LineVersion(1, UNKNOWN, head)]
    rows += [LineVersion(number, *each) for number, each in enumerate(versions, 2)]
    return FileChanges(rows, HeadFile(head))


def test_each_author_takes_only_own_lines() -> None:
    found = changes("1\n2\n3\n", ("alice", "A\n2\n3\n"), ("bob", "A\n2\nB\n"))
    assert found.authors == ("alice", "bob")
    assert found.take({"alice"})[:3] == ("A\n2\n3\n", False, (2,))
    assert found.take({"bob"})[:3] == ("1\n2\nB\n", False, (3,))
    assert found.take({"alice", "bob"})[0] == "A\n2\nB\n"
    assert found.take(())[0] == "1\n2\n3\n"


def test_lines_are_attributed_and_counted() -> None:
    found = changes("1\n2\n3\n", ("alice", "A\n2\n3\n"), ("bob", "A\n3\nB\n"))
    assert found.lines == (
        AuthoredLine("1", remover="alice"),
        AuthoredLine("A", adder="alice"),
        AuthoredLine("2", remover="bob"),
        AuthoredLine("3"),
        AuthoredLine("B", adder="bob"),
    )
    assert found.counts == {"alice": LineCount(1, 1), "bob": LineCount(1, 1)}


@pytest.mark.parametrize(
    ("head", "by_alice", "by_both", "only_bob"),
    [
        ("1\r\n2\r\n", "1\r\nA\r\n2\r\n", "1\r\nA\r\n2\r\nB\r\n", "1\r\n2\r\nB\r\n"),
        ("1\r\n2\n3", "1\r\n2\nA\n3", "B\r\n1\r\n2\nA\n3", "B\r\n1\r\n2\n3"),
        ("1\n2", "A\n1\n2", "A\n1\n2\nB", "1\n2\nB"),
        ("1\n2", "1\n2\n", "B\n1\n2\n", "B\n1\n2"),
        ("1\n2\n", "1\n2", "B\n1\n2", "B\n1\n2\n"),
        ("", "A", "A\nB\n", "B\n"),
        ("1\n2\n", "1\n2", "1\n2\nB\n", "1\n2\nB\n"),
        ("1\n\n", "1\n\n\n", "B\n1\n\n\n", "B\n1\n\n"),
    ],
)
def test_line_ends_are_exact(head: str, by_alice: str, by_both: str, only_bob: str) -> None:
    found = changes(head, ("alice", by_alice), ("bob", by_both))
    assert found.take({"alice"})[0] == by_alice
    assert found.take({"bob"})[0] == only_bob
    assert found.take({"alice", "bob"})[0] == by_both


def test_a_line_made_of_anothers_line_is_mixed() -> None:
    found = changes("1\n", ("alice", "1\nalice\n"), ("bob", "1\nalice and bob\n"))
    assert found.take({"alice"}).mixed == frozenset()
    assert found.take({"bob"}).mixed == {"alice"}


def test_work_in_a_file_that_another_created_needs_the_file() -> None:
    found = changes("0\n", ("alice", None), ("carl", "3\n"))
    assert found.take({"carl"}).mixed == {"alice"}
    found = changes(None, ("alice", "1\n"), ("bob", "1\n2\n"))
    assert found.take({"alice"})[:3] == ("1\n", False, (2,))
    assert found.take({"bob"}).mixed == {"alice"}


def test_a_deletion_is_of_its_author() -> None:
    found = changes("1\n", ("alice", "1\n2\n"), ("bob", None))
    assert found.take({"bob"})[:2] == (None, False)
    assert found.take({"alice"})[0] == "1\n2\n"
    assert found.authors == ("bob",)


def test_the_mode_is_of_the_author_who_changed_it() -> None:
    rows = [
        LineVersion(1, UNKNOWN, "1\n"),
        LineVersion(2, "alice", "1\n2\n"),
        LineVersion(3, "bob", "1\n2\n", executable=True),
    ]
    found = FileChanges(rows, HeadFile("1\n"))
    assert found.authors == ("alice", "bob")
    assert found.take({"bob"})[:2] == ("1\n", True)
    assert found.take({"alice"})[:2] == ("1\n2\n", False)


def test_committed_versions_are_found_in_head() -> None:
    rows = [
        LineVersion(1, UNKNOWN, "1\n2\n3\n"),
        LineVersion(2, "bob", "1\n2\n3\nB\n"),
        LineVersion(3, "alice", "A\n1\n2\n3\nB\n"),
        LineVersion(4, "alice", "A\n1\n2\n3\nB\nC\n"),
    ]
    known = FileChanges(rows[:3], HeadFile("1\n2\n3\n")).take({"alice"}).known
    assert known == KnownVersions(1, 1, frozenset({3}))
    found = FileChanges(rows, HeadFile("A\n1\n2\n3\n", commits=[known]))
    assert (found.kind, found.authors) == ("commit", ("alice", "bob"))
    assert found.take({"bob"})[0] == "A\n1\n2\n3\nB\n"


def test_an_unknown_text_in_head_is_compared_line_by_line() -> None:
    rows = [
        LineVersion(1, UNKNOWN, "1\n2\n3\n4\n"),
        LineVersion(2, "alice", "A\n1\n2\n3\n4\n"),
        LineVersion(3, "bob", "A\n1\n2\nB\n4\n"),
    ]
    found = FileChanges(rows, HeadFile("0\n1\n2\n3\n4\n"))
    assert found.kind == "text"
    assert found.take({"bob"})[0] == "0\n1\n2\nB\n4\n"
    assert found.take({"alice"})[0] == "A\n1\n2\n3\n4\n"
    assert found.take({"alice", "bob"})[0] == "A\n1\n2\nB\n4\n"


def test_reverted_work_is_not_taken() -> None:
    rows = [
        LineVersion(1, UNKNOWN, "1\n"),
        LineVersion(2, "alice", "1\n2\n"),
        LineVersion(3, "human:ann", "1\n", took=(2,)),
        LineVersion(4, "bob", "1\nB\n"),
    ]
    found = FileChanges(rows, HeadFile("1\n"))
    assert found.take({"alice"})[:3] == ("1\n", False, ())
    assert found.take({"bob"})[0] == "1\nB\n"
    # Once it is in HEAD, the revert removes it.
    found = FileChanges(rows, HeadFile("1\n2\n"))
    assert {*found.lines} == {
        AuthoredLine("1"),
        AuthoredLine("2", remover="human:ann"),
        AuthoredLine("B", adder="bob"),
    }


# Histories


def random_text(random: Random, text: str | None, mark: str) -> str | None:
    """Change some lines of ``text``. Each new line has ``mark``."""
    if text is None or random.random() < 0.06:
        return None if text is not None else f"{mark} new\n"
    lines = text.splitlines(keepends=True)
    at = random.randint(0, len(lines))
    end = "\r\n" if "\r\n" in text and random.random() < 0.8 else "\n"
    added = [f"{mark} {n}{end}" for n in range(random.randint(0, 3))]
    lines[at : at + random.choice((0, 0, 1, 2))] = added
    made = "".join(each if each.endswith("\n") else each + end for each in lines[:-1]) + "".join(lines[-1:])
    return made.removesuffix("\n") if random.random() < 0.1 else made


def revert(random: Random, versions: list[LineVersion], number: int) -> LineVersion:
    """Return the revert of a random version, or of a revert."""
    weave = Weave(versions[0].text or "")
    for each in versions[1:]:
        weave.add(each.number, each.text or "", each.took, each.gave)
    chosen = random.choice(versions[1:])
    off = weave.off | {chosen.number}
    took, gave = {chosen.number}, set(chosen.took) & weave.off
    text = None if versions[-1].text is None else weave.text((off - gave) | set(chosen.gave))
    took |= set(chosen.gave)
    return LineVersion(
        number, "human:ann", text, versions[-1].executable, tuple(took - weave.off), tuple(gave)
    )


def random_history(random: Random) -> list[LineVersion]:
    start = random.choice((None, "", "a\nb\nc\nd\ne\nf", "a\r\nb\r\nc\r\nd\r\ne\r\n", "a\nb\r\nc\nd\n"))
    found = [LineVersion(1, UNKNOWN, start)]
    for number in range(2, random.randint(3, 12)):
        author = random.choice(AUTHORS)
        if len(found) > 1 and random.random() < 0.1:
            found.append(revert(random, found, number))
            continue
        text = random_text(random, found[-1].text, f"{author} {number}")
        executable = found[-1].executable ^ (random.random() < 0.1) if text is not None else False
        found.append(LineVersion(number, author, text, executable))
    return found


@pytest.mark.parametrize("seed", seeds(60, 5000))
def test_commits_one_after_another_give_the_newest_text(seed: int) -> None:
    random = Random(seed)
    versions = random_history(random)
    head = HeadFile(versions[0].text)
    texts = [each.text for each in versions]
    for author in random.sample(AUTHORS, len(AUTHORS)):
        found = FileChanges(versions, head)
        taken = found.take({author})
        if taken.mixed:
            assert author not in taken.mixed
            assert taken.mixed <= {*AUTHORS}
            continue
        lines = {each.rstrip("\r\n") for each in (taken.text or "").split("\n")}
        known = {each.rstrip("\r\n") for each in (head.text or "").split("\n")}
        brought = {each.partition(" ")[0] for each in lines - known}
        has_reverts = any(each.took for each in versions)
        assert has_reverts or brought <= {author, ""}, "another's line"
        assert taken.known is not None
        head = HeadFile(taken.text, taken.executable, [taken.known, *head.commits])
        after = FileChanges(versions, head)
        assert after.kind != "text"
        assert author not in after.authors or head.text in texts
    found = FileChanges(versions, head)
    taken = found.take(AUTHORS)
    assert (taken.text, taken.executable) == (versions[-1].text, versions[-1].executable)
    assert not taken.mixed
    added = sum(each.added for each in found.counts.values())
    removed = sum(each.removed for each in found.counts.values())
    new, old = ((text or "").split("\n") for text in (versions[-1].text, head.text))
    assert abs((len(new) - len(old)) - (added - removed)) <= 1


@pytest.mark.parametrize("seed", seeds(30, 2000))
def test_any_text_in_head_leads_to_the_newest_text(seed: int) -> None:
    random = Random(seed)
    versions = random_history(random)
    head = HeadFile(random_text(random, random.choice(versions).text, "head"))
    for author in random.sample(AUTHORS, len(AUTHORS)):
        found = FileChanges(versions, head)
        taken = found.take({author})
        if not taken.mixed:
            head = HeadFile(taken.text, taken.executable)
    taken = FileChanges(versions, head).take({*AUTHORS, UNKNOWN})
    assert (taken.text, taken.executable) == (versions[-1].text, versions[-1].executable)
