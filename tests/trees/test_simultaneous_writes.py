"""Two clients write the same file at the same moment, again and again: no text is lost unseen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from effort import rounds
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Workspace
from watchroom.features.trees.rows import REPO

WRITES = rounds(50, 500)


def test_simultaneous_writes_are_versions_or_refused(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    # Each number is written by both at once, so that there are twice as many writes.
    starts, settled = Barrier(2), Barrier(2)

    def work(client: ScriptedClient) -> list[tuple[str, str]]:
        outcomes = []
        for number in range(WRITES):
            starts.wait(30)
            text = f"{client.agent} {number}\n"
            try:
                client.write("a.txt", text)
                outcomes.append((text, ""))
            except Refused as refused:
                outcomes.append((text, refused.reason))
                # As agents do. An agent that is only ever refused would be paused.
                settled.wait(30)
                client.read("a.txt")
                client.write("a.txt", f"{text}again\n")
            else:
                settled.wait(30)
        return outcomes

    with ThreadPoolExecutor(2) as pool:
        outcomes = [each for one in pool.map(work, (alice, bob)) for each in one]
    kept.trees.refresh_all()
    (tree,) = kept.trees.all()
    path = tree.path("a.txt")
    versions = {text for _, text in kept.journal.versions(REPO, path)}
    kept_texts = {kept.journal.content(row.seq) for row in kept.journal.refused(REPO, path, limit=10_000)}
    assert len(outcomes) == 2 * WRITES
    for text, reason in outcomes:
        assert text in (kept_texts if reason else versions), (text, reason)
    refusals = [reason for _, reason in outcomes if reason]
    # Of two writes at once that replace the same line, one has to be refused.
    assert len(refusals) >= WRITES // 2
    assert all("alice" in reason or "bob" in reason for reason in refusals)
    assert repository.read("a.txt") in versions
