"""The weave of a text: lines by versions, and lines that build on versions that are switched off."""

from __future__ import annotations

from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom.algorithms.weave import Replacement, Weave

EXAMPLES = rounds(100, 4000)
LETTERS = st.lists(st.sampled_from("abcdefg"), max_size=7)


def woven(*texts: str) -> Weave:
    """The weave of the first text with the others as versions from 1."""
    weave = Weave(texts[0])
    for number, text in enumerate(texts[1:], 1):
        weave.add(number, text)
    return weave


def test_a_line_that_replaced_a_line_that_is_off_is_reported() -> None:
    weave = woven("a\nz\n", "a\nalice\nz\n", "a\nalice and bob\nz\n")
    assert weave.text({1}) == "a\nalice and bob\nz\n"
    assert weave.replacements({1}) == {Replacement(2, 1)}
    assert [each.kind for each in weave.switch({1})] == ["unchanged", "conflict", "unchanged"]


def test_a_line_that_replaced_it_in_steps_is_reported() -> None:
    weave = woven("a\n", "a\nalice\n", "a\nbob\n", "a\ncarl\n")
    assert weave.replacements({1}) == {Replacement(3, 1)}
    assert weave.replacements({1, 2}) == {Replacement(3, 1), Replacement(3, 2)}
    assert weave.replacements({2, 3}) == frozenset()


def test_a_line_beside_it_is_not_reported() -> None:
    weave = woven("a\nz\n", "a\nalice\nz\n", "a\nalice\nbob\nz\n")
    assert weave.replacements({1}) == frozenset()


def test_a_replacement_is_reported_once() -> None:
    weave = woven("a\nz\n", "a\nalice\nz\n", "a\nbob\nz\n")
    weave.add(3, "a\nbob\nz\n", took={1})
    assert [each.kind for each in weave.switch({1, 3})] == ["unchanged"]


@settings(max_examples=EXAMPLES)
@given(st.lists(LETTERS, min_size=2, max_size=6), st.sets(st.integers(1, 5)))
def test_without_replacements_each_line_that_is_off_is_gone(texts: list[list[str]], off: set[int]) -> None:
    # Lines are marked with the version that brought them, so that a copy is known as one.
    marked = [[f"0 {letter}\n" for letter in texts[0]]]
    for number, letters in enumerate(texts[1:], 1):
        before = marked[-1]
        marked.append(
            [
                before[n] if n < len(before) and before[n][-2:-1] == c else f"{number} {c}\n"
                for n, c in enumerate(letters)
            ]
        )
    weave = woven(*("".join(each) for each in marked))
    assert weave.text() == "".join(marked[-1])
    present = [each for each in weave.lines() if each.is_present(off)]
    assert "".join(each.text for each in present) == weave.text(off)
    assert not {int(each.text.split()[0]) for each in present} & off
    reported = any(region.kind == "conflict" for region in weave.switch(off))
    assert reported or not weave.replacements(off)
