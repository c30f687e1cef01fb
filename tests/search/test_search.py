"""Full-text search: what is found, where, and what happens to the index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Event

import pytest
from effort import rounds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_journal import MemoryJournal
from watchroom.errors import InvalidSearch
from watchroom.features.tasks.rows import END, RUN
from watchroom.history.search import CLAIM, SearchIndex, SearchQuery, SearchResult
from watchroom.history.search.database import INDEX_NAME, IndexDatabase
from watchroom.kernel.journal import Journal
from watchroom.model import ANSWER, ASK, MESSAGE, PRINTED, Note, Write

PLAN = "plan.md"


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(MemoryJournal()) as journal:
        yield journal


@pytest.fixture
def index(tmp_path: Path) -> SearchIndex:
    return SearchIndex(str(tmp_path))


def write(text: str, actor: str = "alice", path: str = PLAN, *, expected: int = -1) -> Write:
    return Write(actor, "collab_write", "collab", path, text, expected=expected)


def update(index: SearchIndex, journal: Journal) -> int:
    return index.index_missing(journal, Event(), share=1.0)


def found(index: SearchIndex, journal: Journal, words: str, **filters: object) -> list[int]:
    return [hit.row.seq for hit in search(index, journal, words, **filters).hits]


def search(index: SearchIndex, journal: Journal, words: str, **filters: object) -> SearchResult:
    return index.search(journal, SearchQuery(words, **filters))  # type: ignore[arg-type]


def marked(result: SearchResult) -> list[list[str]]:
    """Of each hit the places that match."""
    return [[hit.excerpt[start:end] for start, end in hit.matches] for hit in result.hits]


def test_of_a_version_only_what_it_added_is_found(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("# Plan\nkeep the cache\n")])
    journal.append([write("# Plan\nkeep the cache\nmeasure café latency\n")])
    update(index, journal)
    assert found(index, journal, "cache") == [1]
    result = search(index, journal, "CAFE")
    assert [(hit.row.seq, hit.row.version, hit.line) for hit in result.hits] == [(2, 2, 3)]
    assert marked(result) == [["café"]]
    assert not result.is_behind


def test_lines_that_stand_apart_make_no_phrase(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("one\ntwo\nthree\n")])
    journal.append([write("alpha\none\ntwo\nbeta\nthree\n")])
    update(index, journal)
    assert found(index, journal, '"alpha beta"') == []
    assert found(index, journal, "alpha beta") == [2]


def test_a_refused_text_a_message_and_a_handoff_are_found(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("first\n"), write("rejected wording\n", "bob", expected=0)])
    journal.append([Note("human:ann", MESSAGE, "session", "alice", message="please", content="please hurry")])
    journal.append([Write("alice", "handoff_file", "handoff", "alice_to_bob/a.md", "draft", "for review")])
    update(index, journal)
    rows = {word: found(index, journal, word) for word in ("wording", "hurry", "draft", "review")}
    assert rows == {"wording": [2], "hurry": [3], "draft": [4], "review": [4]}


def test_of_a_step_is_found_what_was_said_and_called_but_not_what_was_read(
    journal: Journal, index: SearchIndex
) -> None:
    call = {"function": {"name": "collab_write", "arguments": json.dumps({"content": "called\nout"})}}
    messages = [
        {"role": "system", "content": "prompted"},
        {"role": "user", "content": "asked"},
        {"role": "assistant", "content": "answered", "tool_calls": [call]},
        {"role": "tool", "content": "looked"},
    ]
    journal.append([Write("alice", "step", "session", "alice/1", json.dumps({"messages": messages}))])
    update(index, journal)
    words = ("prompted", "asked", "answered", "called", '"called out"', "looked")
    assert [bool(found(index, journal, word)) for word in words] == [False, True, True, True, True, False]


def test_a_command_its_output_a_request_and_its_answer_are_found(
    journal: Journal, index: SearchIndex
) -> None:
    long = {"stdout": "head", "stderr": "warned", "cut": True}
    journal.append([Write("alice", RUN, "command", "t/1", "make everything", "", 0)])
    journal.append([Note("alice", PRINTED, "command", "t/1", content="compiling mid")])
    journal.append([Note("alice", PRINTED, "command", "t/1", content="dle part")])
    journal.append([Write("alice", END, "command", "t/1", json.dumps(long), "", 1)])
    journal.append([Write("alice", ASK, "request", "alice/1/r", json.dumps({"prompt": "which colour"}))])
    journal.append([Write("human:ann", ANSWER, "request", "alice/1/r", json.dumps({"text": "green"}))])
    update(index, journal)
    words = ("everything", "warned", "middle", "colour", "green")
    assert [found(index, journal, word) for word in words] == [[1], [4], [4], [5], [6]]


def test_half_of_a_surrogate_pair_in_a_call_does_not_end_the_index(
    journal: Journal, index: SearchIndex
) -> None:
    journal.append([Note("alice", "x", "buffer", "alice/x", content=json.dumps({"old_text": "odd \ud800x"}))])
    journal.append([write("what comes after it\n", expected=0)])
    update(index, journal)
    assert (found(index, journal, "odd"), found(index, journal, "after")) == ([1], [2])
    assert search(index, journal, "odd").hits[0].excerpt.encode()


def test_a_secret_is_not_indexed(journal: Journal, index: SearchIndex) -> None:
    journal.append([Write("human:ann", "create_token", "token", "alice/1", '{"hash": "deadbeef"}')])
    update(index, journal)
    assert found(index, journal, "deadbeef") == []


def test_agent_zone_and_time_filter(journal: Journal, index: SearchIndex) -> None:
    for actor in ("alice", "bob", "human:bob"):
        journal.append([write(f"shared by {actor}\n", actor, f"{actor[-3:]}.md")])
    journal.append([Write("bob", "whiteboard_write", "board", "top-layer", "shared on a board")])
    update(index, journal)
    assert found(index, journal, "shared") == [4, 3, 2, 1]
    assert found(index, journal, "shared", agent="bob") == [4, 2]
    assert found(index, journal, "shared", agent="bob", zone="collab") == [2]
    assert found(index, journal, "shared", agent="human:bob") == [3]
    assert found(index, journal, "shared", after=1, until=3) == [3, 2]
    result = search(index, journal, "shared", limit=3)
    assert [hit.row.seq for hit in result.hits] == [4, 3, 2]
    assert result.has_more


def test_the_best_come_first_where_that_is_asked_for(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("timeout timeout timeout\n", path="a")])
    journal.append([write("words and words and one timeout among many more words\n", path="b")])
    update(index, journal)
    assert found(index, journal, "timeout") == [2, 1]
    assert found(index, journal, "timeout", order="best") == [1, 2]


def test_the_excerpt_shows_where_most_of_the_words_are_across_line_ends(
    journal: Journal, index: SearchIndex
) -> None:
    text = f"retry once\n{'filler ' * 200}\nthe 数据\n库 has a retry\n"
    journal.append([write(text)])
    update(index, journal)
    result = search(index, journal, "数据库 retr")
    assert marked(result) == [["数据\n库", "retry"]]
    (hit,) = result.hits
    assert hit.line == 3
    assert hit.excerpt in text


LETTERS = st.sampled_from("abcé0")
HAN = st.sampled_from("数据库的一是𠀀がカ한")
WORD = st.text(LETTERS, min_size=1, max_size=8)
CJK = st.text(HAN, min_size=1, max_size=12)
TOKENS = st.lists(
    st.tuples(WORD | CJK, st.sampled_from([" ", "\n", ", ", "\n\n", "-"])), min_size=1, max_size=30
)


@settings(
    max_examples=rounds(40, 1000),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(texts=st.lists(TOKENS, min_size=1, max_size=4), data=st.data())
def test_no_substring_of_an_indexed_text_is_missed_nor_its_place(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[tuple[str, str]]], data: st.DataObject
) -> None:
    index = SearchIndex(str(tmp_path_factory.mktemp("index")))
    with closing(MemoryJournal()) as journal:
        for number, tokens in enumerate(texts):
            journal.append([write("".join(map("".join, tokens)), path=str(number))])
        update(index, journal)
        number = data.draw(st.integers(0, len(texts) - 1))
        tokens = texts[number]
        first = data.draw(st.integers(0, len(tokens) - 1))
        word = tokens[first][0]
        if word[0] in "abcé0":
            last = data.draw(st.integers(first, min(first + 5, len(tokens) - 1)))
            words = '"' + " ".join(token for token, _ in tokens[first : last + 1]) + '"'
            prefix = word[: data.draw(st.integers(2, len(word)))] if len(word) > 1 else word
            queries = [words, prefix]
        else:
            start = data.draw(st.integers(0, len(word) - 1))
            queries = [word[start : data.draw(st.integers(start + 1, len(word)))]]
        for query in queries:
            result = search(index, journal, query, limit=100)
            hit = next((hit for hit in result.hits if hit.row.seq == number + 1), None)
            assert hit is not None, query
            assert hit.matches, query


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("", "search_empty"),
        ("-> ?!", "search_empty"),
        ("x" * 201, "search_length"),
        ("a " * 17, "search_words"),
    ],
)
def test_a_search_without_words_or_with_too_many_is_refused(
    journal: Journal, index: SearchIndex, words: str, rule: str
) -> None:
    with pytest.raises(InvalidSearch) as refused:
        search(index, journal, words)
    assert refused.value.values["rule"] == rule


@pytest.mark.parametrize(
    "words", ['a" OR b', "body:x", "NEAR(a b)", "a*", "^a", "(a", "x AND", "\ud800a", "\ue000 a", "a\0b"]
)
def test_what_is_typed_is_no_expression(journal: Journal, index: SearchIndex, words: str) -> None:
    journal.append([write("a b\n")])
    update(index, journal)
    assert {*found(index, journal, words)} <= {1}


def test_a_search_says_up_to_which_row_the_index_is(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("early\n")])
    assert search(index, journal, "early") == SearchResult(last=1)
    update(index, journal)
    journal.append([write("late\n")])
    result = search(index, journal, "late")
    assert (result.hits, result.indexed, result.last, result.is_behind) == ((), 1, 2, True)
    assert update(index, journal) == 2
    assert found(index, journal, "late") == [2]


def test_one_alone_keeps_the_index(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("early\n")])
    with journal.claim(CLAIM):
        assert update(index, journal) == 0
    assert update(index, journal) == 1


def test_of_several_indexes_one_keeps_up(journal: Journal, tmp_path: Path) -> None:
    first, second = SearchIndex(str(tmp_path)), SearchIndex(str(tmp_path))
    writer = count(1)

    def rounds(index: SearchIndex) -> int:
        """How many rounds it takes until the index holds the row that was just written."""
        number = next(writer)
        journal.append([write(f"word{number}\n", path=str(number))])
        for done in count(1):
            index.keep_up(journal, Event())
            if found(index, journal, f"word{number}"):
                return done
            assert done < 10
        return 0

    begins = rounds(first)
    assert begins > 1, "somebody else may keep up"
    assert [rounds(first) for _ in range(5)] == [1] * 5
    for _ in range(10):
        journal.append([write("more\n", path="more")])
        second.keep_up(journal, Event())
        first.keep_up(journal, Event())
    assert rounds(first) == 1, "the second one has left it to the first"
    # The first one has stopped.
    assert 1 < rounds(second) <= begins + 1
    assert rounds(second) == 1


def test_an_index_that_keeps_up_is_not_in_the_way_of_who_asks(journal: Journal, tmp_path: Path) -> None:
    first, second = SearchIndex(str(tmp_path)), SearchIndex(str(tmp_path))
    journal.append([write("alpha\n")])
    while not found(first, journal, "alpha"):
        first.keep_up(journal, Event())
    journal.append([write("beta\n")])
    assert update(second, journal) == 2
    journal.append([write("gamma\n")])
    assert update(first, journal) == 3


@pytest.mark.parametrize("harm", ["deleted", "no database", "another format", "damaged within"])
def test_an_index_that_is_gone_or_damaged_is_made_anew(
    journal: Journal, index: SearchIndex, tmp_path: Path, harm: str
) -> None:
    journal.append([write(f"text {number} {'word ' * 300}\n", path=str(number)) for number in range(50)])
    update(index, journal)
    path = tmp_path / INDEX_NAME
    if harm == "deleted":
        path.unlink()
    elif harm == "no database":
        path.write_bytes(b"x" * 10_000)
    elif harm == "another format":
        data = bytearray(path.read_bytes())
        data[60:64] = (99).to_bytes(4, "big")
        path.write_bytes(bytes(data))
    else:
        data = bytearray(path.read_bytes())
        data[4096:] = b"\xff" * (len(data) - 4096)
        path.write_bytes(bytes(data))
    fresh = SearchIndex(str(tmp_path))
    journal.append([write("the last one\n", path="last")])
    search(fresh, journal, "text")
    assert update(fresh, journal) == 51
    assert found(fresh, journal, "text", limit=100) == [*range(50, 0, -1)]
    assert found(fresh, journal, "last") == [51]


def test_an_index_that_is_deleted_while_it_is_made_is_begun_again(
    journal: Journal, index: SearchIndex, tmp_path: Path
) -> None:
    class Deleting(Event):
        """Has the file deleted between two batches."""

        def wait(self, timeout: float | None = None) -> bool:
            (tmp_path / INDEX_NAME).unlink(missing_ok=True)
            return False

    journal.append([write(f"text {number}\n", path=str(number)) for number in range(500)])
    assert index.index_missing(journal, Deleting(), share=1.0) < 500
    assert found(index, journal, "text") == []
    assert update(index, journal) == 500
    assert len(found(index, journal, "text", limit=1000)) == 500


def test_the_index_of_another_journal_is_not_used(journal: Journal, index: SearchIndex) -> None:
    journal.append([write("mine\n")])
    update(index, journal)
    with closing(MemoryJournal()) as other:
        other.append([write("theirs\n", "bob")])
        other.append([write("theirs again\n", "bob")])
        update(index, other)
        assert found(index, other, "mine") == []
        assert found(index, other, "theirs") == [2, 1]


def test_the_oldest_go_where_the_index_grows_too_large(journal: Journal, tmp_path: Path) -> None:
    small = IndexDatabase(str(tmp_path), max_bytes=200_000, part_bytes=30_000)
    index = SearchIndex(str(tmp_path), small)
    for first in range(0, 400, 20):
        journal.append(
            [
                write("".join(f"every w{number}x{n} " for n in range(60)), path=str(number))
                for number in range(first, first + 20)
            ]
        )
        update(index, journal)
    result = search(index, journal, "every", limit=1000)
    assert [hit.row.seq for hit in result.hits] == [*range(400, result.oldest - 1, -1)]
    assert 1 < result.oldest < 400
