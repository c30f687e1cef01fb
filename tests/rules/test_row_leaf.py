"""The bytes of a row, which its leaf is made from, and seals as text."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from watchroom.errors import InvalidSeal
from watchroom.kernel.rules.row_leaf import encode_row, hash_row
from watchroom.kernel.rules.seal_note import (
    MAX_CHARACTERS,
    Seal,
    SignedSeal,
    parse_seal,
    parse_signed,
    render_seal,
)
from watchroom.model import OUTCOMES, Row, Zone

texts = st.text(alphabet=st.sampled_from("a0n:ié\ud800"), max_size=4)
numbers = st.integers(-1, 2**62)
rows = st.builds(
    Row,
    seq=numbers,
    time=numbers,
    actor=texts,
    tool=texts,
    zone=st.sampled_from(get_args(Zone)),
    path=texts,
    version=st.none() | numbers,
    base=st.none() | numbers,
    outcome=st.sampled_from(OUTCOMES),
    error=texts,
    message=texts,
    sha256=st.none() | st.text("0123", max_size=3),
    size=st.none() | numbers,
    detail_json=texts,
)
checkpoints = st.builds(
    Seal,
    workspace=st.text("0123456789abcdef", min_size=32, max_size=32),
    size=st.integers(0, 10**17),
    root=st.binary(min_size=32, max_size=32),
    seq=st.integers(0, 2**62),
    time=st.integers(0, 2**62),
)
ROW = Row(1, 2, "alice", "t", "collab", "p", 1, None, "ok", "", "m", "ab", 2, "")


@given(one=rows, other=rows)
@example(one=ROW, other=ROW._replace(sha256="", size=None))
def test_two_rows_have_the_same_bytes_only_if_they_are_the_same(one: Row, other: Row) -> None:
    assert (encode_row(one) == encode_row(other)) == (one == other)


@given(row=rows, data=st.data())
def test_each_column_is_in_the_leaf(row: Row, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(Row._fields))
    changed = row._replace(**{name: getattr(data.draw(rows), name)})
    assert (hash_row(changed) == hash_row(row)) == (changed == row)


def test_the_bytes_are_as_the_page_says() -> None:
    assert encode_row(ROW) == b"i1ei2e5:alice1:t6:collab1:pi1en2:ok0:1:m2:abi2e0:"


@given(checkpoint=checkpoints, signature=st.just("") | st.text("ab\n-", max_size=9))
def test_a_seal_is_read_as_it_was_written(checkpoint: Seal, signature: str) -> None:
    body = render_seal(checkpoint)
    assert parse_seal(body) == checkpoint
    signed = SignedSeal(checkpoint, body, signature)
    assert parse_signed(signed.text) == signed
    assert parse_signed(body) == SignedSeal(checkpoint, body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("watchroom/", "other/"),
        ("\n12\n", "\n012\n"),
        ("\n12\n", "\n-12\n"),
        ("=\n", "\n"),
        ("AA=", "AB="),  # what no encoder writes
        ("seq 13\n", ""),
        ("time 14\n", "time 14\nmore\n"),
        ("time 14\n", "time 14"),
        ("\n12\n", "\n" + "1" * MAX_CHARACTERS + "\n"),
    ],
)
def test_what_is_no_seal_is_refused(old: str, new: str) -> None:
    body = render_seal(Seal("0" * 32, 12, bytes(32), 13, 14))
    assert old in body
    with pytest.raises(InvalidSeal):
        parse_signed(body.replace(old, new, 1))
