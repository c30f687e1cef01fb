"""A text without the versions of some writers, even if edits were concurrent."""

from __future__ import annotations

import random

import pytest
from effort import rounds
from watchroom.algorithms.crdt import name_replica
from watchroom.algorithms.crdt.text import Text
from watchroom.algorithms.crdt.text_weave import TextWeave

AGENTS = ("alice", "bob", "carol")
REPLICAS = {agent: name_replica(agent, number + 1) for number, agent in enumerate(AGENTS)}
SEEDS = range(rounds(15, 1000))
LETTERS = "abc第二😀\n"


class History:
    """Three writers who see each other's edits late, and the versions of their edits."""

    def __init__(self, seed: int, base: str) -> None:
        self.random = random.Random(seed)
        self.first = Text()
        self.first.insert(0, base, name_replica("base", 9))
        self.replicas = {agent: self.first.copy() for agent in AGENTS}
        self.versions: list[tuple[str, object]] = []
        self.known = dict.fromkeys(AGENTS, 0)

    def catch_up(self, agent: str) -> None:
        for writer, delta in self.versions[self.known[agent] :]:
            if writer != agent:
                self.replicas[agent].merge(delta)  # type: ignore[arg-type]
        self.known[agent] = len(self.versions)

    def edit(self, agent: str, start: int, stop: int, text: str) -> None:
        done = self.replicas[agent].replace(start, stop, text, REPLICAS[agent])
        if done.delta is not None:
            self.versions.append((agent, done.delta))

    def words(self, most: int) -> str:
        return "".join(self.random.choices(LETTERS, k=self.random.randint(0, most)))

    def weave(self) -> TextWeave:
        weave = TextWeave(self.first.copy())
        for version, (_, delta) in enumerate(self.versions, 1):
            weave.add(version, delta)  # type: ignore[arg-type]
        assert weave.is_whole
        return weave

    @property
    def text(self) -> Text:
        whole = self.first.copy()
        for _, delta in self.versions:
            whole.merge(delta)  # type: ignore[arg-type]
        return whole

    def of(self, *agents: str) -> set[int]:
        return {version for version, (agent, _) in enumerate(self.versions, 1) if agent in agents}

    def without(self, off: set[int]) -> str:
        text = self.text
        edits = self.weave().edits(off)
        if edits:
            text.edit_all(edits, name_replica("dana", 7))
        return text.value


def scattered(seed: int) -> History:
    """Make edits at random positions."""
    history = History(seed, "one two three\nfour five six\n")
    for _ in range(30):
        agent = history.random.choice(AGENTS)
        if history.random.random() < 0.5:
            history.catch_up(agent)
        length = len(history.replicas[agent])
        start = history.random.randint(0, length)
        history.edit(agent, start, min(length, start + history.random.choice((0, 0, 1, 5))), history.words(4))
    return history


def apart(seed: int) -> History:
    """Let each writer edit only between its own marks."""
    history = History(seed, "".join(f"<{agent}>...</{agent}>\n" for agent in AGENTS))
    for _ in range(30):
        agent = history.random.choice(AGENTS)
        if history.random.random() < 0.5:
            history.catch_up(agent)
        value = history.replicas[agent].value
        begin, end = value.index(f"<{agent}>") + len(agent) + 2, value.index(f"</{agent}>")
        start = history.random.randint(begin, end)
        stop = min(end, start + history.random.choice((0, 1, 4)))
        history.edit(agent, start, stop, history.words(4).replace("\n", ""))
    return history


@pytest.mark.parametrize("seed", SEEDS)
def test_a_text_without_all_is_the_one_before_and_without_none_the_one_that_stands(seed: int) -> None:
    history = scattered(seed)
    assert history.without(history.of(*AGENTS)) == history.first.value
    assert history.without(set()) == history.text.value


@pytest.mark.parametrize("seed", SEEDS)
def test_what_one_wrote_apart_from_others_goes_and_nothing_else_changes(seed: int) -> None:
    history = apart(seed)
    now = history.text.value.split("\n")
    begun = history.first.value.split("\n")
    expected = [begun[0], *now[1:]]
    assert history.without(history.of("alice")).split("\n") == expected
    assert history.without(history.of("alice", "carol")).split("\n") == [begun[0], now[1], begun[2], begun[3]]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_character_of_others_is_lost_and_what_they_deleted_stays_so(seed: int) -> None:
    history = scattered(seed)
    text = history.text
    theirs = [run for run in text.runs() if run.agent in ("bob", "carol")]
    kept = sum(run.length for run in theirs)
    edits = history.weave().edits(history.of("alice"))
    if edits:
        text.edit_all(edits, name_replica("dana", 7))
    assert sum(run.length for run in text.runs() if run.agent in ("bob", "carol")) == kept
    assert not any(run.agent == "alice" for run in text.runs())
