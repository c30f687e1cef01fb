"""Three agents and a hand behind their backs, against plain dictionaries: results, files and journal agree."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from calls import ok, refused
from effort import rounds
from evidence import all_rows, snapshot
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from watchroom import Toolbox, Workspace
from watchroom.validation import sha256

AGENTS: Final = ("alice", "bob", "charlie")
FILENAMES: Final = ("a.md", "folder/深.md")
agents = st.sampled_from(("alice", "alice", "bob", "charlie"))
filenames = st.sampled_from(("a.md", "a.md", "folder/深.md"))
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


class File:
    """A path: its versions in the journal (None: deleted), and what stands on disk (None: nothing)."""

    def __init__(self) -> None:
        self.versions: list[str | None] = []
        self.authors: list[str] = []
        self.messages: list[str] = []
        self.disk: str | None = None

    @property
    def head(self) -> str | None:
        return self.versions[-1] if self.versions else None

    @property
    def edited(self) -> bool:
        return self.disk != self.head

    def commit(self, author: str, text: str | None, message: str = "") -> int:
        self.versions.append(text)
        self.authors.append(author)
        self.messages.append(message)
        self.disk = text
        return len(self.versions)


class Delivery:
    def __init__(self, text: str, version: int, order: int) -> None:
        self.text, self.version, self.order = text, version, order
        self.read = self.acknowledged = False


class ZonesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.root = self.folder / "team"
        self.private = {key: File() for key in itertools.product(AGENTS, FILENAMES)}
        self.shared = {path: File() for path in FILENAMES}
        self.seen = dict.fromkeys(itertools.product(AGENTS, FILENAMES), 0)
        self.delivered: dict[tuple[str, str, str], Delivery] = {}
        self.deliveries = 0
        self.submitted: set[str] = set()
        self.open()

    def open(self, *, scan: bool = True) -> None:
        self.workspace = Workspace.open(self.root, agents=AGENTS, scan=scan)
        self.toolboxes: dict[str, Toolbox] = {agent: self.workspace.tools(agent) for agent in AGENTS}

    def teardown(self) -> None:
        try:
            assert self.workspace.repair() == []
            self.notice_everything()
            for file in self.shared.values():
                file.disk = file.head
            self.files_are_as_the_model_has_them()
            self.every_text_is_kept()
            assert self.workspace.verify() == []
        finally:
            self.workspace.close()
            shutil.rmtree(self.folder)

    # What the model does when something is noticed

    def notice(self, file: File) -> None:
        """A private file was looked at: what someone did to it behind the journal's back is a version now."""
        if file.edited:
            if file.disk is not None:
                self.submitted.add(file.disk)
            file.commit("outside", file.disk)

    def notice_everything(self) -> None:
        for file in self.private.values():
            self.notice(file)
        for file in self.shared.values():
            self.keep_edit(file)

    def keep_edit(self, file: File) -> None:
        """The edit is kept as a row, beside the versions."""
        if file.edited and file.disk is not None:
            self.submitted.add(file.disk)

    # Private files

    @rule(agent=agents, filename=filenames, text=texts)
    def save(self, agent: str, filename: str, text: str) -> None:
        file = self.private[agent, filename]
        self.keep_edit(file)
        self.submitted.add(text)
        result = ok(self.toolboxes[agent], "save_to_my_workspace", filename=filename, content=text)
        assert (result["version"], result["size"]) == (file.commit(agent, text), len(text.encode()))

    @rule(agent=agents, owner=agents, filename=filenames)
    def read(self, agent: str, owner: str, filename: str) -> None:
        file = self.private[owner, filename]
        self.notice(file)
        toolbox = self.toolboxes[agent]
        if file.disk is None:
            result = refused(toolbox, "read_from_workspace", agent_id=owner, filename=filename)
            assert result["error"] == "file_not_found"
        else:
            result = ok(toolbox, "read_from_workspace", agent_id=owner, filename=filename)
            assert result["content"] == file.disk

    @rule(agent=agents, owner=agents)
    def list_files(self, agent: str, owner: str) -> None:
        there = sorted(
            name for (of, name), file in self.private.items() if of == owner and file.disk is not None
        )
        assert ok(self.toolboxes[agent], "list_workspace_files", agent_id=owner)["files"] == there

    @rule(agent=agents, filename=filenames)
    def delete(self, agent: str, filename: str) -> None:
        file = self.private[agent, filename]
        self.notice(file)
        if file.head is None:
            result = refused(self.toolboxes[agent], "delete_from_my_workspace", filename=filename)
            assert result["error"] == "file_not_found"
        else:
            ok(self.toolboxes[agent], "delete_from_my_workspace", filename=filename)
            file.commit(agent, None)

    # Handoffs

    @rule(sender=agents, receiver=agents, filename=filenames, text=texts)
    def hand_over(self, sender: str, receiver: str, filename: str, text: str) -> None:
        self.submitted.add(text)
        before = self.delivered.get((sender, receiver, filename))
        self.deliveries += 1
        delivery = Delivery(text, before.version + 1 if before else 1, self.deliveries)
        self.delivered[sender, receiver, filename] = delivery
        result = ok(
            self.toolboxes[sender],
            "handoff_file",
            to_agent=receiver,
            filename=filename,
            content=text,
            message=f"delivery {self.deliveries}",
        )
        assert result["delivery"] == delivery.version

    @rule(receiver=agents, everything=st.booleans())
    def check(self, receiver: str, everything: bool) -> None:
        result = ok(self.toolboxes[receiver], "check_my_handoffs", include_acknowledged=everything)
        expected = [
            (sender, filename, each.version, f"delivery {each.order}", each.read, each.acknowledged)
            for (sender, to, filename), each in sorted(self.delivered.items(), key=lambda item: item[1].order)
            if to == receiver and (everything or not each.acknowledged)
        ]
        assert [
            (
                each["from"],
                each["filename"],
                each["delivery"],
                each["message"],
                each["read"],
                each["acknowledged"],
            )
            for each in result["handoffs"]
        ] == expected

    @rule(receiver=agents, sender=agents, filename=filenames, acknowledge=st.booleans())
    def take_delivery(self, receiver: str, sender: str, filename: str, acknowledge: bool) -> None:
        toolbox = self.toolboxes[receiver]
        tool = "acknowledge_handoff" if acknowledge else "read_handoff"
        delivery = self.delivered.get((sender, receiver, filename))
        if delivery is None:
            assert refused(toolbox, tool, from_agent=sender, filename=filename)["error"] == "file_not_found"
            return
        result = ok(toolbox, tool, from_agent=sender, filename=filename)
        assert result["delivery"] == delivery.version
        if acknowledge:
            delivery.acknowledged = delivery.read = True
        else:
            assert result["content"] == delivery.text
            delivery.read = True
            self.workspace.flush()

    # Shared files

    @rule(
        agent=agents,
        path=filenames,
        text=texts,
        expected=st.sampled_from(
            ["left out", "left out", "right", "right", "stale", "ahead", "unchecked", "new"]
        ),
    )
    def write(self, agent: str, path: str, text: str, expected: str) -> None:
        file = self.shared[path]
        current = len(file.versions)
        number = {
            "left out": self.seen[agent, path],
            "right": current,
            "stale": max(0, current - 1),
            "ahead": current + 1,
            "unchecked": -1,
            "new": 0,
        }[expected]
        arguments: dict[str, Any] = {"filepath": path, "content": text, "message": f"by {agent}"}
        if expected != "left out":
            arguments["expected_version"] = number
        self.submitted.add(text)
        if number in (current, -1):
            before = file.authors[-1] if file.authors else None
            self.keep_edit(file)
            result = ok(self.toolboxes[agent], "collab_write", **arguments)
            assert result["version"] == file.commit(agent, text, f"by {agent}")
            self.seen[agent, path] = result["version"]
            overwrote = (current, before) if number == -1 and current else (None, None)
            assert (result.get("overwrote_version"), result.get("overwrote_author")) == overwrote
            return
        result = refused(self.toolboxes[agent], "collab_write", **arguments)
        assert result["is_conflict"] is True
        assert (result["current_version"], result["current_content"]) == (current, file.head)
        assert (result["current_author"], result["your_content"]) == (
            file.authors[-1] if file.authors else None,
            text,
        )

    @rule(agent=agents, path=filenames, back=st.none() | st.integers(0, 3))
    def read_shared(self, agent: str, path: str, back: int | None) -> None:
        file, toolbox = self.shared[path], self.toolboxes[agent]
        current = len(file.versions)
        arguments = {} if back is None else {"version": max(1, current - back)}
        if not current:
            assert refused(toolbox, "collab_read", filepath=path, **arguments)["error"] == "file_not_found"
            return
        version = arguments.get("version", current)
        result = ok(toolbox, "collab_read", filepath=path, **arguments)
        assert (result["version"], result["current_version"]) == (version, current)
        assert (result["content"], result["author"]) == (
            file.versions[version - 1],
            file.authors[version - 1],
        )
        if version == current:
            self.seen[agent, path] = current
            self.workspace.flush()

    @rule(agent=agents, path=filenames, limit=st.none() | st.integers(1, 3))
    def history(self, agent: str, path: str, limit: int | None) -> None:
        file, toolbox = self.shared[path], self.toolboxes[agent]
        arguments = {} if limit is None else {"limit": limit}
        if not file.versions:
            assert refused(toolbox, "collab_history", filepath=path, **arguments)["error"] == "file_not_found"
            return
        expected = list(zip(itertools.count(1), file.authors, file.messages, strict=False))
        entries = ok(toolbox, "collab_history", filepath=path, **arguments)["history"]
        assert [(each["version"], each["author"], each["message"]) for each in entries] == expected[
            -(limit or len(expected)) :
        ]

    @rule(agent=agents, path=filenames, version=st.integers(1, 5))
    def roll_back(self, agent: str, path: str, version: int) -> None:
        file, toolbox = self.shared[path], self.toolboxes[agent]
        if version > len(file.versions):
            error = refused(toolbox, "collab_rollback", filepath=path, to_version=version)["error"]
            assert error == ("version_not_found" if file.versions else "file_not_found")
            return
        self.keep_edit(file)
        result = ok(toolbox, "collab_rollback", filepath=path, to_version=version, message="back")
        assert result["new_version"] == file.commit(agent, file.versions[version - 1], "back")
        self.seen[agent, path] = result["new_version"]

    @rule(agent=agents)
    def list_shared(self, agent: str) -> None:
        files = ok(self.toolboxes[agent], "collab_list")["files"]
        there = [path for path, file in self.shared.items() if file.versions]
        assert [(each["filepath"], each["version"]) for each in files] == [
            (path, len(self.shared[path].versions)) for path in sorted(there, key=str.encode)
        ]

    # Behind the journal's back

    def put(self, place: Path, text: str | None) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.unlink(missing_ok=True)
        else:
            place.write_bytes(text.encode())

    @rule(agent=agents, filename=filenames, text=st.none() | texts)
    def edit_private(self, agent: str, filename: str, text: str | None) -> None:
        self.put(self.root / "agents" / agent / filename, text)
        self.private[agent, filename].disk = text

    @rule(path=filenames, text=st.none() | texts)
    def edit_shared(self, path: str, text: str | None) -> None:
        self.put(self.root / "collaborative/current" / path, text)
        self.shared[path].disk = text

    # The workspace

    @rule()
    def scan(self) -> None:
        self.workspace.scan()
        self.notice_everything()
        assert self.workspace.scan() == []

    @rule(scan=st.booleans())
    def reopen(self, scan: bool) -> None:
        self.workspace.close()
        self.open(scan=scan)
        if scan:
            self.notice_everything()

    @rule()
    def repair(self) -> None:
        assert self.workspace.repair() == []
        self.notice_everything()
        for file in self.shared.values():
            file.disk = file.head

    @invariant()
    def files_are_as_the_model_has_them(self) -> None:
        self.workspace.flush()
        expected = {
            **{f"agents/{agent}/{name}": file.disk for (agent, name), file in self.private.items()},
            **{f"collaborative/current/{path}": file.disk for path, file in self.shared.items()},
            **{
                f"handoff/{sender}_to_{receiver}/{name}": each.text
                for (sender, receiver, name), each in self.delivered.items()
            },
            **{
                f"collaborative/.versions/{path}/v{number}.txt": text
                for path, file in self.shared.items()
                for number, text in enumerate(file.versions, start=1)
            },
        }
        folder_kind = next(iter(snapshot_kinds(self.root)))
        found = {
            name: content.decode() if isinstance(content, bytes) else content
            for name, content in snapshot(self.root).items()
            if content != folder_kind
        }
        views = {name for name in found if name.endswith((".meta.json", "history.json"))}
        assert {name: found[name] for name in found.keys() - views} == {
            name: text for name, text in expected.items() if text is not None
        }
        for path, file in self.shared.items():
            if file.versions:
                history = json.loads(found[f"collaborative/.versions/{path}/history.json"])
                assert [(each["version"], each["author"]) for each in history] == list(
                    enumerate(file.authors, start=1)
                )

    @invariant()
    def verify_finds_what_was_edited_and_nothing_else(self) -> None:
        edited = {
            *(("private", "/".join(key)) for key, file in self.private.items() if file.edited),
            *(("collab", path) for path, file in self.shared.items() if file.edited),
        }
        assert {(problem.zone, problem.path) for problem in self.workspace.verify()} == edited

    @invariant()
    def every_text_is_kept(self) -> None:
        rows = {row.sha256: row for row in all_rows(self.workspace.journal)}
        for text in self.submitted:
            row = rows.get(sha256(text.encode()))
            assert row is not None, text
            assert self.workspace.journal.content(row.seq) == text


def snapshot_kinds(root: Path) -> set[bytes | str]:
    """How `snapshot` describes a folder."""
    return {snapshot(root)["agents"]}


def test_the_zones_answer_as_plain_dictionaries_would() -> None:
    run_state_machine_as_test(
        ZonesMachine,
        settings=settings(
            max_examples=rounds(10, 20),
            stateful_step_count=50,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_who_rolled_a_file_back_has_seen_the_outcome(alice: Toolbox, bob: Toolbox) -> None:
    """In the process that rolled it back as in the next, which learns it from the journal."""
    for text in ("first", "second"):
        ok(alice, "collab_write", filepath="plan.md", content=text, message="m")
    ok(alice, "collab_rollback", filepath="plan.md", to_version=1)
    assert ok(alice, "collab_write", filepath="plan.md", content="third", message="m")["version"] == 4


def test_who_read_the_current_version_by_its_number_has_seen_it(alice: Toolbox, bob: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="first", message="m")
    ok(bob, "collab_read", filepath="plan.md")
    ok(alice, "collab_write", filepath="plan.md", content="second", message="m")
    ok(bob, "collab_read", filepath="plan.md", version=2)
    assert ok(bob, "collab_write", filepath="plan.md", content="third", message="m")["version"] == 3
