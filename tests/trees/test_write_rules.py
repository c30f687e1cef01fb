"""What becomes of a write while others change the same file."""

from __future__ import annotations

import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.features.trees.patches import apply_update, build_update, parse_patch
from watchroom.features.trees.write_rules import (
    MAX_DIFF_LINES,
    ChangeNotice,
    Deletion,
    FileView,
    Intent,
    LostLines,
    PassageEdit,
    Update,
    WholeText,
    build_notice,
    build_refusal,
    count_changed_lines,
    decide,
    find_lost_lines,
    merge_texts,
    say_lost_lines,
    say_notices,
)
from watchroom.texts import LANGUAGES, catalogue

BASE: Final = "one\ntwo\nthree\nfour\nfive\nsix\n"
BOB_AT_END: Final = BASE.replace("six", "SIX by bob")
BOB_AT_TWO: Final = BASE.replace("two", "TWO by bob")
ALICE_AT_TWO: Final = BASE.replace("two", "two by alice")
EN = catalogue("en")


def patch(*body: str) -> Update:
    (file,) = parse_patch("\n".join(("*** Begin Patch", "*** Update File: f", *body, "*** End Patch")))
    return Update(file)


def bob(text: str | None, version: int = 2) -> FileView:
    return FileView(version, text, "bob")


SAW: Final = FileView(1, BASE, "system")
BY_ALICE: Final = FileView(2, ALICE_AT_TWO, "alice")
AT_TWO: Final = PassageEdit("two", "two by alice")
HUNK: Final = patch(" one", "-two", "+two by alice", " three")

INTERLEAVINGS: Final[list[tuple[str, Intent, FileView, FileView | None, str, str | None]]] = [
    # What happened, the write, the newest version, what alice saw, the decision, and the text afterwards or wanted.
    ("edit of other lines", AT_TWO, bob(BOB_AT_END), SAW, "proceed stale", BOB_AT_END.replace("two", "two by alice")),
    ("edit of the same line", AT_TWO, bob(BOB_AT_TWO), SAW, "passage_gone", ALICE_AT_TWO),
    ("edit of a passage that is there twice now", AT_TWO, bob(BASE + "two\n"), SAW, "passage_gone", ALICE_AT_TWO),
    ("edit of a deleted file", AT_TWO, bob(None), SAW, "deleted", ALICE_AT_TWO),
    ("edit of the newest version", AT_TWO, bob(BASE), bob(BASE), "proceed", ALICE_AT_TWO),
    ("write of a new file", WholeText("x\n"), FileView(), None, "proceed", "x\n"),
    ("write of a file as git has it", WholeText("x\n"), SAW._replace(is_baseline=True), None, "proceed", "x\n"),
    ("write of a file never read", WholeText("x\n"), bob(BASE), None, "never_seen", "x\n"),
    ("write of the newest version", WholeText("x\n"), bob(BASE), bob(BASE), "proceed", "x\n"),
    ("write over other lines", WholeText(ALICE_AT_TWO), bob(BOB_AT_END), SAW, "merged stale", BOB_AT_END.replace("two", "two by alice")),
    ("write over the same line", WholeText(ALICE_AT_TWO), bob(BOB_AT_TWO), SAW, "merge_conflict", ALICE_AT_TWO),
    ("write after a deletion", WholeText(ALICE_AT_TWO), bob(None), SAW, "deleted", ALICE_AT_TWO),
    ("write where a file was deleted unseen", WholeText("x\n"), bob(None), None, "proceed", "x\n"),
    ("write after an own version", WholeText("x\n"), BY_ALICE, BY_ALICE, "proceed", "x\n"),
    ("patch of other lines", HUNK, bob(BOB_AT_END), SAW, "proceed stale", BOB_AT_END.replace("two", "two by alice")),
    ("patch with a changed context line", HUNK, bob(BASE.replace("three", "THREE")), SAW._replace(text=BASE), "merge_conflict", ALICE_AT_TWO),
    ("patch with a context line that is far off", patch(" one", "-two", "+two by alice", " three", " four"), bob(BASE.replace("four", "FOUR")), SAW, "merged stale", ALICE_AT_TWO.replace("four", "FOUR")),
    ("patch of the same line", HUNK, bob(BOB_AT_TWO), SAW, "merge_conflict", ALICE_AT_TWO),
    ("patch that adds over a changed file", WholeText(ALICE_AT_TWO, is_patch=True), bob(BOB_AT_TWO), SAW, "merge_conflict", ALICE_AT_TWO),
    ("deletion of a changed file", Deletion(), bob(BOB_AT_END), SAW, "stale_write", None),
    ("deletion of a file never read", Deletion(), bob(BASE), None, "never_seen", None),
    ("deletion of the newest version", Deletion(), bob(BASE), bob(BASE), "proceed", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("intent", "head", "seen", "expected", "text"),
    [each[1:] for each in INTERLEAVINGS],
    ids=[each[0] for each in INTERLEAVINGS],
)
def test_interleavings(
    intent: Intent, head: FileView, seen: FileView | None, expected: str, text: str | None
) -> None:
    decision = decide(intent, head, seen, "alice")
    if decision.kind == "refused":
        assert decision.code == expected
    else:
        assert f"{decision.kind}{' stale' * decision.is_stale}" == expected
    assert decision.text == text
    assert decision.base == (seen.version if seen else 0)


def test_a_patch_whose_base_is_not_known_is_merged_from_an_older_version() -> None:
    hunk = patch(" one", "-two", "+two by alice", " three", " four")
    head = bob(BASE.replace("four", "FOUR"), 3)
    assert decide(hunk, head, None, "alice").kind == "proceed"
    decision = decide(hunk, head, None, "alice", older=(bob("other\n"), SAW))
    assert (decision.kind, decision.base) == ("merged", 1)
    assert decision.text == ALICE_AT_TWO.replace("four", "FOUR")


def test_hunks_that_would_hit_a_place_that_looks_alike_are_merged() -> None:
    seen = SAW._replace(text="def f():\n    return 1\n")
    head = bob("def e():\n    return 1\n\n\ndef f():\n    return 1\n")
    decision = decide(patch("-    return 1", "+    return 2"), head, seen, "alice")
    assert decision.text == "def e():\n    return 1\n\n\ndef f():\n    return 2\n"
    assert decision.kind == "merged"


def test_what_codex_merges_ends_with_a_line_end() -> None:
    seen, head = SAW._replace(text=BASE), bob(BOB_AT_END.removesuffix("\n"))
    decision = decide(patch(" one", "-two", "+2", " three", " four", " five", " six"), head, seen)
    assert decision.kind == "merged"
    assert decision.text == BOB_AT_END.replace("two", "2")
    added = decide(WholeText(ALICE_AT_TWO, is_patch=True), head, seen)
    assert added.text == BOB_AT_END.replace("two", "two by alice")


def test_content_counts_and_not_the_number_of_the_version() -> None:
    decision = decide(WholeText("x"), bob(BASE, 9), SAW, "alice")
    assert (decision.kind, decision.is_stale) == ("proceed", False)
    assert decide(WholeText(BASE), bob(BASE, 9), None, "alice").kind == "proceed"


def test_a_partial_reading_counts_for_its_lines() -> None:
    head = bob(BASE)
    seen = head._replace(lines=((0, 2),))
    assert decide(WholeText(ALICE_AT_TWO), head, seen, "alice").kind == "proceed"
    assert decide(WholeText("one\n2\n"), head, seen, "alice").code == "never_seen"
    newer = bob(BOB_AT_END, 3)
    assert decide(WholeText("one\n2\n"), newer, seen, "alice").code == "stale_write"
    assert decide(WholeText(ALICE_AT_TWO), newer, seen, "alice").kind == "merged"


def test_files_that_are_no_text_are_compared_by_version() -> None:
    image = FileView(2, None, "bob", is_text=False)
    assert decide(WholeText("x"), image, image, "alice").kind == "proceed"
    assert decide(WholeText("x"), image, SAW, "alice").code == "stale_write"
    assert decide(Deletion(), image, SAW, "alice").code == "stale_write"
    assert decide(Deletion(), image, None, "alice").code == "never_seen"
    assert decide(AT_TWO, image, SAW, "alice").kind == "proceed"


def test_an_edit_finds_its_passage_whatever_the_line_ends_are() -> None:
    head = bob((BASE + "more\n").replace("\n", "\r\n"))
    decision = decide(PassageEdit("two\nthree", "2\n3"), head, SAW, "alice")
    assert decision.text == "one\r\n2\r\n3\r\nfour\r\nfive\r\nsix\r\nmore\r\n"
    assert decide(PassageEdit("o", "0", replaces_all=True), bob("o\no\nx\n"), SAW).text == "0\n0\nx\n"


def test_an_edit_without_a_passage_writes_a_file() -> None:
    assert decide(PassageEdit("", "x"), FileView(), None, "alice").kind == "proceed"
    assert decide(PassageEdit("", "x"), bob(BASE), None, "alice").code == "never_seen"


def test_the_clients_own_refusals_are_left_to_it() -> None:
    missing = PassageEdit("nowhere", "x")
    assert decide(missing, bob(BASE), bob(BASE), "alice").kind == "proceed"
    assert decide(missing, bob(BOB_AT_END), SAW, "alice").kind == "proceed"
    assert decide(patch("-nowhere"), bob(BASE), bob(BASE), "alice").kind == "proceed"
    assert decide(patch("-nowhere"), bob(BOB_AT_END), SAW, "alice").code == "passage_gone"


texts = st.lists(st.sampled_from(("a\n", "b\n", "c\n", "\n", "d\r\n", "\0", "\ud800\n")), max_size=8).map(
    "".join
)
ranges = st.one_of(
    st.none(), st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9)), max_size=2).map(tuple)
)
views = st.builds(
    FileView,
    st.integers(0, 3),
    st.one_of(st.none(), texts),
    st.sampled_from(("alice", "bob", "system")),
    lines=st.one_of(
        st.none(), st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9)), max_size=2).map(tuple)
    ),
)


@st.composite
def intents(draw: st.DrawFn) -> Intent:
    before, after = draw(texts), draw(texts)
    update = build_update("f", before, after)
    choices: list[Intent] = [WholeText(after, draw(st.booleans())), PassageEdit(before, after), Deletion()]
    return draw(st.sampled_from([*choices, *([Update(update)] if update else [])]))


@st.composite
def histories(draw: st.DrawFn) -> tuple[FileView, FileView | None]:
    """Return the newest version of a file, and what alice saw: at least her own last version."""
    versions = draw(
        st.lists(st.tuples(st.one_of(st.none(), texts), st.sampled_from(("alice", "bob"))), max_size=4)
    )
    views = [FileView(), *(FileView(n, text, author) for n, (text, author) in enumerate(versions, 1))]
    if draw(st.booleans()):
        views = [FileView(), *(each._replace(is_baseline=each.version == 1) for each in views[1:])]
    own = max((each.version for each in views if each.author == "alice"), default=0)
    at = draw(st.integers(own, len(views) - 1))
    if at == own:
        return views[-1], views[own] if own else None
    return views[-1], views[at]._replace(lines=draw(ranges))


@given(intents(), histories())
def test_every_write_gets_a_decision_that_loses_nothing(
    intent: Intent, history: tuple[FileView, FileView | None]
) -> None:
    head, seen = history
    decision = decide(intent, head, seen, "alice")
    assert (decision.kind == "refused") == (decision.code is not None)
    if decision.code is not None:
        for language in LANGUAGES:
            assert "f" in build_refusal(decision.code, "f", head, seen).say(catalogue(language))
    if decision.kind == "merged":
        assert decision.text is not None
        assert head.text is not None
        if isinstance(intent, Update):
            update = build_update("f", head.text, decision.text)
            assert update is not None
            assert apply_update(update, head.text) == decision.text
    if decision.kind != "refused" and isinstance(intent, WholeText) and head.author != "alice":
        assert head.is_baseline or find_lost_lines(head.text, decision.text, seen) == ()
    if decision.kind == "proceed" and seen is None and isinstance(intent, WholeText | Deletion):
        is_same = isinstance(intent, WholeText) and intent.text == head.text
        assert is_same or not head.exists or head.is_baseline or head.author == "alice"


@given(texts, texts)
def test_a_merge_with_an_unchanged_side_is_the_other_side(base: str, changed: str) -> None:
    assert merge_texts(base, base, changed) == changed
    assert merge_texts(base, changed, base) == changed


@pytest.mark.parametrize(
    ("before", "after", "seen", "lost"),
    [
        (BOB_AT_END, ALICE_AT_TWO, BASE, (LostLines(5, ("SIX by bob\n",)),)),
        (BOB_AT_END, None, BASE, (LostLines(5, ("SIX by bob\n",)),)),
        (BOB_AT_END, BASE, BOB_AT_END, ()),
        (BASE, "", None, (LostLines(0, tuple(BASE.splitlines(keepends=True))),)),
        (None, "x", None, ()),
        ("a\nb\nc\n", "c\na\nb\n", None, ()),
        ("  a\n\nb\n", "a\n    b\n", None, ()),
        ("a\nb\nc\nd\n", "a\nd\n", "a\nd\n", (LostLines(1, ("b\n", "c\n")),)),
        ("a\nb\na\n", "b\n", None, (LostLines(0, ("a\n",)), LostLines(2, ("a\n",)))),
    ],
)
def test_lines_that_a_command_removed_unseen_are_found(
    before: str | None, after: str | None, seen: str | None, lost: tuple[LostLines, ...]
) -> None:
    assert find_lost_lines(before, after, None if seen is None else FileView(1, seen)) == lost


@given(texts, texts, st.one_of(st.none(), views))
def test_lost_lines_are_lines_that_were_there(before: str, after: str, seen: FileView | None) -> None:
    lines = before.split("\n")
    for each in find_lost_lines(before, after, seen):
        assert [line.removesuffix("\n") for line in each.lines] == lines[each.start :][: len(each.lines)]
    assert find_lost_lines(before, after, FileView(1, before)) == ()
    assert find_lost_lines(before, before, seen) == ()


def test_a_refusal_names_the_authors_and_shows_a_short_difference() -> None:
    refusal = build_refusal("merge_conflict", "src/a.ts", bob(BOB_AT_TWO), SAW, ("bob", "carol", "bob"))
    assert refusal.authors == ("bob", "carol")
    assert "-two\n+TWO by bob" in refusal.diff
    said = refusal.say(EN)
    assert said.startswith("Not written: bob, carol changed 'src/a.ts'")
    assert "kept" in said
    assert "Read 'src/a.ts' again" in said

    assert "kept" not in build_refusal("stale_write", "a", bob(BASE), None, has_text=False).say(EN)
    long = build_refusal("stale_write", "a", bob("".join(f"{n}\n" for n in range(200))), SAW)
    assert len(long.diff.split("\n")) == MAX_DIFF_LINES
    assert f"({long.omitted} more lines" in long.say(EN)
    wide = build_refusal("stale_write", "a", bob("x" * 1_000_000), SAW)
    assert len(wide.diff) < 10_000
    assert build_refusal("never_seen", "a", bob(BASE), None).say(EN).count("bob") == 1
    assert "somebody" in build_refusal("deleted", "a", FileView(3, None), SAW).say(EN)


def test_an_agent_reads_what_others_changed() -> None:
    changed = build_notice("types.ts", bob(BOB_AT_END.replace("one", "1")), SAW)
    assert changed.say(EN) == "bob changed types.ts since you read it (2 lines)."
    assert build_notice("a", bob(BOB_AT_END), SAW).say(EN) == "bob changed a since you read it (1 line)."
    assert build_notice("a", bob(None), SAW).say(EN) == "bob deleted a since you read it."
    moved = build_notice("a", bob(None), SAW, ("bob",), moved_to="b")
    assert moved.say(EN) == "bob moved a to b since you read it: the new file has the same content."
    many = [ChangeNotice(f"f{n}", ("bob",), 3) for n in range(12)]
    said = say_notices(many, EN).split("\n")
    assert len(said) == 11
    assert said[-1] == "2 more files that you read have changed."
    lost = say_lost_lines("a", "bob", find_lost_lines(BOB_AT_END, BASE, SAW), EN)
    assert lost.startswith("You removed 1 line of bob in 'a' that you had not read.")


def test_changed_lines_are_counted() -> None:
    assert count_changed_lines(BASE, BASE) == 0
    assert count_changed_lines(BASE, BOB_AT_END) == 1
    assert count_changed_lines(None, BASE) == count_changed_lines(BASE, None) == 6


def test_large_texts_take_no_quadratic_time() -> None:
    base = "".join(f"{n % 7}\n" for n in range(200_000))
    head, mine = base + "x\n", "y\n" + base
    started = time.process_time()
    assert merge_texts(base, head, mine) == f"y\n{base}x\n"
    assert decide(WholeText(mine), bob(head), SAW._replace(text=base)).kind == "merged"
    assert find_lost_lines(head, "z\n" * 200_000, SAW)
    assert merge_texts(base, "x" * 20_000_000, mine) is None
    assert time.process_time() - started < 20
