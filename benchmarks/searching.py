"""Searching a long journal: ``python benchmarks/searching.py [TEXTS]``.

How long it takes to index a text, how large the index becomes, and how soon a search answers with excerpts:
of texts of some 800 bytes, a quarter of them Chinese, with words as often as in a language (Zipf).
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event, Thread

from measure import Measure, percentile, scratch, table
from watchroom.journal import SqliteJournal
from watchroom.model import Write
from watchroom.search import SearchIndex, SearchQuery

_BATCH = 1_000
_PATHS = 900
_SEARCHES = 100
_COMMITS = 300


class Language:
    """Texts of words, each as often as its rank says; the same each time."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = [
            "".join(self.random.choices(letters, k=self.random.randint(2, 10))) for _ in range(20_000)
        ]
        characters = [chr(0x4E00 + n) for n in self.random.sample(range(6_000), 3_000)]
        self._latin = self.random.choices(self.words, self._zipf(20_000), k=1_000_000)
        self.chinese = self.random.choices(characters, self._zipf(3_000), k=1_000_000)

    def text(self) -> str:
        """Some 800 bytes in lines of at most 70 characters."""
        at = self.random.randrange(999_000)
        is_chinese = self.random.random() < 0.25
        text = "".join(self.chinese[at : at + 260]) if is_chinese else " ".join(self._latin[at : at + 120])
        return "\n".join(text[start : start + 70] for start in range(0, len(text), 70)) + "\n"

    def word(self) -> str:
        """One that is as likely as it is frequent."""
        return self.random.choice(self._latin)

    def part(self, length: int) -> str:
        """So many Chinese characters that stand beside each other somewhere."""
        at = self.random.randrange(999_000)
        return "".join(self.chinese[at : at + length])

    @staticmethod
    def _zipf(count: int) -> list[float]:
        return [1 / (rank + 1) ** 0.9 for rank in range(count)]


def measure(texts: int = 100_000) -> list[Measure]:
    """With ``texts`` versions of 900 paths by nine agents."""
    language = Language()
    with scratch() as folder, closing(SqliteJournal(os.path.join(folder, "journal.db"))) as journal:
        size = 0
        for first in range(0, texts, _BATCH):
            drafts = [_draft(language, number) for number in range(first, first + _BATCH)]
            size += sum(len((draft.content or "").encode()) for draft in drafts)
            journal.append(drafts)
        index = SearchIndex(folder)
        began = time.perf_counter()
        index.index_missing(journal, Event(), share=1.0)
        seconds = time.perf_counter() - began
        on_disk = os.path.getsize(os.path.join(folder, "search.db"))
        return [
            Measure(
                f"indexing {texts:,} texts, each", seconds / texts * 1e6, "µs", remark=f"{seconds:.0f} s"
            ),
            Measure("index, of the texts' size", on_disk / size, "×", remark=f"of {size / 1e6:.0f} MB"),
            *_searches(language, journal, index, texts),
            *_commits(language, journal, index, texts),
        ]


def _draft(language: Language, number: int) -> Write:
    path, text = f"{number % _PATHS}.md", language.text()
    return Write(f"agent-{number % 9}", "write", "collab" if number % 3 else "board", path, text)


def _searches(
    language: Language, journal: SqliteJournal, index: SearchIndex, texts: int
) -> Iterator[Measure]:
    kinds: dict[str, Callable[[], SearchQuery]] = {
        "a word": lambda: SearchQuery(language.word()),
        "two words": lambda: SearchQuery(f"{language.word()} {language.word()}"),
        "a beginning of 2": lambda: SearchQuery(language.random.choice(language.words)[:2]),
        "a beginning of 4": lambda: SearchQuery(language.random.choice(language.words)[:4]),
        "1 Chinese character": lambda: SearchQuery(language.part(1)),
        "2 Chinese characters": lambda: SearchQuery(language.part(2)),
        "4 Chinese characters": lambda: SearchQuery(language.part(4)),
        "a word, by agent and zone": lambda: SearchQuery(language.word(), "agent-3", "board"),
        "2 Chinese characters, by agent": lambda: SearchQuery(language.part(2), "agent-3"),
        "a word, in a tenth of the time": lambda: SearchQuery(
            language.word(), after=texts // 2, until=texts // 2 + texts // 10
        ),
        "the best for a word": lambda: SearchQuery(language.word(), order="best"),
    }
    for name, make in kinds.items():
        taken, hits = [], 0
        for _ in range(_SEARCHES):
            query = make()
            began = time.perf_counter()
            hits += len(index.search(journal, query).hits)
            taken.append((time.perf_counter() - began) * 1e3)
        remark = f"p50 {percentile(taken, 50):.1f} ms, {hits / _SEARCHES:.0f} hits"
        goal = None if "best" in name else 50
        yield Measure(f"search: {name}, p95", percentile(taken, 95), "ms", goal, remark=remark)


def _commits(language: Language, journal: SqliteJournal, index: SearchIndex, texts: int) -> Iterator[Measure]:
    """Commits alone, and while the index follows them as it does in an open workspace."""
    ended = Event()

    def follow() -> None:
        while not ended.wait(0.05):
            index.index_missing(journal, ended)

    medians = []
    for follows in (False, True):
        follower = Thread(target=follow)
        if follows:
            follower.start()
        taken = []
        for number in range(_COMMITS):
            draft = _draft(language, texts + number)
            began = time.perf_counter()
            journal.append([draft])
            taken.append(time.perf_counter() - began)
            ended.wait(0.002)
        medians.append(percentile(taken, 50))
        ended.set()
        if follows:
            follower.join()
        ended.clear()
    yield Measure("commit while the index follows, of one alone", medians[1] / medians[0], "×")


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:]))))
