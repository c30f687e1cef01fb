"""Branches with one commit per author of a working tree, and pull requests of them."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from cli.running import Captured, misuse, printed, printed_json, run
from effort import seeds
from trees.code_host_programs import HostPrograms
from trees.git_repo import git, git_bytes, make_repository, write
from trees.git_repository import Repository
from trees.recorded_tree import PERSON, RecordedTree
from trees.test_commits import AGENTS, TEN, play
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.errors import GitBusy, InvalidBranch, InvalidTarget, NothingToCommit
from watchroom.features.policy.grants import DEFAULT_USES, PLACE, GrantChoice
from watchroom.features.requests.rows import PendingCall, Request, decide_all
from watchroom.features.trees.code_hosts import (
    CodeHost,
    HostCheck,
    compare_address,
    parse_remote,
    read_request,
)
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.pull_requests import (
    PullRequestOptions,
    PullRequestPlan,
    read_pull_request,
)
from watchroom.features.trees.rows import PULL_REQUEST, REPO, repo_path
from watchroom.kernel.call_context import CallContext
from watchroom.model import SPAWN, Write
from watchroom.texts import catalogue

TEXTS: Final = catalogue("en")
DANA: Final = CallContext("human:dana")
URL: Final = "https://github.com/acme/app/pull/7"

# The law


def make(workspace: Workspace, tree: RecordedTree) -> tuple[PullRequestPlan, str]:
    """Make a branch with the work since the branch ``base``. Return the plan and the branch's commit."""
    requests = workspace.pull_requests
    plan = requests.plan(tree.tree, PullRequestOptions("base"), TEXTS)
    return plan, requests.open(DANA, tree.tree, plan, TEXTS, is_pushed=False).commit


def show(folder: Path, commit: str) -> dict[str, set[bytes]]:
    """Return the lines of each file of a commit, without their line ends."""
    names = git(folder, "ls-tree", "-r", "--name-only", commit).split("\n")
    return {name: {*git_bytes(folder, "show", f"{commit}:{name}").splitlines()} for name in names if name}


def count_foreign(tree: RecordedTree, base: str, commit: str) -> int:
    """Return the number of lines that commits bring which their authors have not written. A file that was
    binary is the work of its later authors."""
    found, folder = 0, tree.folder
    for each in git(folder, "rev-list", "--reverse", f"{base}..{commit}").split():
        before, after = show(folder, f"{each}~"), show(folder, each)
        message = git(folder, "show", "--no-patch", "--format=%B", each)
        for name, lines in after.items():
            rows = tree.store.journal.history(REPO, repo_path(tree.id, name))
            if any("sha256" in row.detail for row in rows):
                continue
            for line in {line for line in lines - before.get(name, set()) if b" " in line}:
                author = line.split()[0].decode()
                named = "people" if author == PERSON else f"Watchroom-Agent: {author}\n"
                found += named not in f"{message}\n"
    return found


@pytest.mark.parametrize("seed", seeds(12, 1000))
def test_the_last_commit_has_the_content_of_the_tree(seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as place, Workspace.open(Path(place) / "team") as workspace:
        files = {"one": TEN, "two.txt": b"1\n2\n3", "dir/crlf": TEN.replace(b"\n", b"\r\n")}
        folder = make_repository(Path(place) / "r", files, autocrlf="false")
        git(folder, "config", "core.autocrlf", random.choice(("false", "input", "true")))
        git(folder, "branch", "base")
        tree = RecordedTree(workspace, folder)
        if random.random() < 0.3:
            write(folder, "early", b"early\n")
            git(folder, "add", "early")
            git(folder, "commit", "--quiet", "--message=early")
        for _ in range(random.randint(1, 3)):
            play(random, tree)
            if random.random() < 0.5:
                with suppress(NothingToCommit):
                    tree.commit(*random.choice((AGENTS, AGENTS[:1], ())))
        before = git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD", "base")
        wanted = tree.full_tree()
        if wanted == git(folder, "rev-parse", "base^{tree}"):
            return
        plan, commit = make(workspace, tree)
        assert git(folder, "rev-parse", f"{commit}^{{tree}}") == wanted == plan.content
        assert git(folder, "merge-base", "base", commit) == git(folder, "rev-parse", "base")
        assert (git(folder, "status", "--porcelain"), git(folder, "rev-parse", "HEAD", "base")) == before
        assert len(plan.commits) <= len(AGENTS) + 1
        assert count_foreign(tree, "base", commit) == 0
        git(folder, "fsck", "--strict")


# A tree of two agents


class World:
    """A repository with a linked tree, and a bare remote whose address is one at a host."""

    def __init__(self, repository: Repository, host: str = "github.com") -> None:
        self.repository = repository
        self.folder = repository.folder.parent / "work"
        self.remote = repository.folder.parent / "remote.git"
        git(repository.folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.remote))
        url = f"https://{host}/acme/app.git"
        repository.git("remote", "add", "origin", url)
        repository.git("config", f"url.{self.remote}.pushInsteadOf", url)
        repository.git("push", "--quiet", "origin", "main")
        repository.git("worktree", "add", "--quiet", "-b", "work", str(self.folder))

    @property
    def tree(self) -> GitTree:
        found = GitTree.find(str(self.folder))
        assert found is not None
        return found

    def let_work(self, workspace: Workspace) -> None:
        """Let alice and bob change a file each, and one together. A person changes one too."""
        workspace.trees.refresh_all()
        alice = ScriptedClient(workspace, "alice", self.folder, session="s1")
        bob = ScriptedClient(workspace, "bob", self.folder)
        alice.read("a.txt")
        alice.edit("a.txt", "one\n", "ONE\nand more\n")
        bob.read("a.txt")
        bob.edit("a.txt", "five\n", "FIVE\n")
        bob.write("new.txt", "new\n")
        write(self.folder, "hand.txt", b"by hand\n")
        workspace.trees.refresh_all()

    def log(self, commit: str, form: str) -> list[str]:
        """Return the commits since main in this form, oldest first."""
        shown = git(self.folder, "log", "--reverse", f"--format={form}%x00", f"main..{commit}")
        return [each.strip("\n") for each in shown.split("\0") if each.strip("\n")]

    def read_remote(self, branch: str) -> str:
        return git(self.remote, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")


@pytest.fixture
def world(kept: Workspace, repository: Repository) -> World:
    made = World(repository)
    made.let_work(kept)
    return made


def plan_of(workspace: Workspace, world: World, **more: Any) -> PullRequestPlan:
    return workspace.pull_requests.plan(world.tree, PullRequestOptions(**more), TEXTS)


def trailers(world: World, commit: str) -> list[str]:
    """Return the trailers of a commit as git reads them."""
    message = git_bytes(world.folder, "show", "--no-patch", "--format=%B", commit)
    return git(world.folder, "interpret-trailers", "--parse", given=message).split("\n")


def states(workspace: Workspace) -> list[str]:
    rows = [row for row in workspace.journal.rows(0, limit=100_000) if row.tool == PULL_REQUEST]
    assert {row.actor for row in rows} <= {"human:dana"}
    return [read_pull_request(row).state for row in rows]


def test_each_author_has_a_commit_in_the_order_of_the_first_change(kept: Workspace, world: World) -> None:
    plan = plan_of(kept, world)
    before = git(world.folder, "status", "--porcelain")
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    assert (record.state, record.branch, record.into) == ("made", "watchroom/work", "main")
    assert git(world.folder, "status", "--porcelain") == before
    assert world.log(record.commit, "%an: %s") == [
        "alice: Work of alice (files: 1)",
        "bob: Work of bob (files: 2)",
        "Pat: Work of people and other programs (files: 1)",
    ]
    first, second, third = world.log(record.commit, "%H")
    assert trailers(world, first) == ["Watchroom-Agent: alice", "Watchroom-Session: alice/s1"]
    assert trailers(world, second) == ["Watchroom-Agent: bob", "Watchroom-Session: bob/session-of-bob"]
    assert trailers(world, third) == [""]
    assert git_bytes(world.folder, "show", f"{first}:a.txt") == b"ONE\nand more\ntwo\nthree\nfour\nfive\n"
    assert git(world.folder, "rev-parse", f"{third}^{{tree}}") == plan.content
    assert states(kept) == ["decided", "made"]


def test_each_session_may_have_a_commit(kept: Workspace, world: World) -> None:
    again = ScriptedClient(kept, "alice", world.folder, session="s2")
    again.write("later.txt", "later\n")
    plan = plan_of(kept, world, per="session")
    assert [each.step.authors for each in plan.commits] == [
        ("alice/s1",),
        ("bob/session-of-bob",),
        ("",),
        ("alice/s2",),
    ]
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    assert world.log(record.commit, "%an") == ["alice", "bob", "Pat", "alice"]
    last = world.log(record.commit, "%H")[-1]
    assert trailers(world, last) == ["Watchroom-Agent: alice", "Watchroom-Session: alice/s2"]


def test_work_on_the_lines_of_a_later_author_is_in_the_later_commit(
    kept: Workspace, repository: Repository
) -> None:
    world = World(repository)
    kept.trees.refresh_all()
    alice = ScriptedClient(kept, "alice", world.folder)
    bob = ScriptedClient(kept, "bob", world.folder)
    alice.write("first.txt", "first\n")
    bob.write("shared.txt", "bob\n")
    alice.read("shared.txt")
    alice.edit("shared.txt", "bob\n", "bob and alice\n")
    record = kept.pull_requests.open(DANA, world.tree, plan_of(kept, world), TEXTS, is_pushed=False)
    first, second = world.log(record.commit, "%H")
    assert git(world.folder, "show", "--name-only", "--format=", first) == "first.txt"
    assert git(world.folder, "show", "--name-only", "--format=", second) == "shared.txt"
    assert trailers(world, second)[:2] == ["Watchroom-Agent: alice", "Watchroom-Agent: bob"]
    assert "Co-authored-by: bob <bob@watchroom.invalid>" in trailers(world, second)


def test_approvals_of_the_calls_that_changed_the_files_are_named(kept: Workspace, world: World) -> None:
    client = ScriptedClient(kept, "alice", world.folder, session="s1")
    call, given = client.begin_write("asked.txt", "asked\n")
    rows = []
    for own in (call, "other-call"):
        request = Request("approve", calls=(PendingCall(own, "Write", json.dumps(given)),))
        asked = kept.requests.ask(CallContext("alice"), f"alice/s1/{own}", request)
        rows.append(kept.requests.answer(DANA, asked.seq, decide_all(request, approved=True)).seq)
    client.end_write(call, given)
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    first = world.log(record.commit, "%H")[0]
    assert [each for each in trailers(world, first) if "Approved" in each] == [
        f"Watchroom-Approved-By: human:dana (row {rows[0]})"
    ]
    assert f"- `human:dana` approved a call of `alice` (row {rows[0]})" in plan.body


def test_a_call_that_a_grant_permitted_is_named_with_the_grant(kept: Workspace, world: World) -> None:
    client = ScriptedClient(kept, "alice", world.folder, session="s1")
    target = str(world.folder / "granted.txt")

    def ask(call: str, given: object) -> int:
        request = Request(
            "approve",
            calls=(PendingCall(call, "Write", json.dumps(given)),),
            metadata={PLACE: {"folder": str(world.folder), "target": target}},
        )
        return kept.requests.ask(CallContext("alice"), f"alice/s1/{call}", request).seq

    shown = ask("shown", {"file_path": target, "content": "shown\n"})
    made = kept.grants.make(DANA, shown, GrantChoice("session"))
    for content in ("first\n", "second\n"):
        call, given = client.begin_write("granted.txt", content)
        ask(call, given)
        client.end_write(call, given)
    assert kept.grants.list_active()[0].uses_left == DEFAULT_USES - 2
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    first = world.log(record.commit, "%H")[0]
    assert [each for each in trailers(world, first) if "Approved" in each] == [
        f"Watchroom-Approved-By: human:dana (row {made.seq})"
    ]
    assert plan.body.count(f"- `human:dana` granted calls like a call of `alice` (row {made.seq})") == 1


def test_the_task_of_an_agent_and_the_agents_of_simultaneous_commands_are_named(
    kept: Workspace, world: World
) -> None:
    spawned = Write("system", SPAWN, "agent", "alice", "{}", detail={"task": "t1"})
    kept.journal.append([spawned])
    alice = ScriptedClient(kept, "alice", world.folder)
    bob = ScriptedClient(kept, "bob", world.folder)
    first, second = alice.begin_bash("make"), bob.begin_bash("make")
    write(world.folder, "made.txt", b"made\n")
    alice.end_bash(*first)
    bob.end_bash(*second)
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    commits = world.log(record.commit, "%H")
    assert trailers(world, commits[0])[-1] == "Watchroom-Task: t1"
    assert trailers(world, commits[-1]) == ["Watchroom-Candidate: alice", "Watchroom-Candidate: bob"]


def test_commits_of_a_person_and_of_agents_are_replaced_by_one_of_each(kept: Workspace, world: World) -> None:
    kept.agent_commits.commit(DANA, world.tree, ["bob"], "bob's work")
    write(world.folder, "early.txt", b"early\n")
    git(world.folder, "add", "hand.txt", "early.txt")
    git(world.folder, "commit", "--quiet", "--message", "by hand")
    kept.trees.refresh_all()
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    assert sorted(world.log(record.commit, "%an")) == ["Pat", "alice", "bob"]
    assert git(world.folder, "diff", "--stat", record.commit) == ""


def test_files_without_versions_are_in_the_first_commit_which_is_the_persons(
    kept: Workspace, repository: Repository
) -> None:
    world = World(repository)
    write(world.folder, "early.txt", b"early\nearly\n")
    (world.folder / "b.txt").unlink()
    git(world.folder, "add", "--all")
    git(world.folder, "commit", "--quiet", "--message", "before Watchroom")
    world.let_work(kept)
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    assert world.log(record.commit, "%an: %s")[0] == "Pat: Work of people and other programs (files: 3)"
    first = world.log(record.commit, "%H")[0]
    names = git(world.folder, "show", "--name-only", "--format=", first).split("\n")
    assert names == ["b.txt", "early.txt", "hand.txt"]
    assert "- `early.txt`: people and other programs +2 −0" in plan.body.splitlines()
    assert "| people and other programs | 3 | +3 −1 |" in plan.body.splitlines()


def test_the_body_has_what_rows_have(kept: Workspace, world: World, tmp_path: Path) -> None:
    write(world.folder, "odd `name` @all <b>.txt", b"x\n")
    kept.trees.refresh_all()
    tried = ["sh", "-c", "exit 3"]
    kept.agent_commits.try_agent(world.tree, ["bob"], tried, call=DANA, cache=str(tmp_path / "cache"))
    plan = plan_of(kept, world)
    assert plan.title == "work: work of alice, bob, people and other programs"
    lines = plan.body.splitlines()
    assert "| `alice` | 1 | +2 −1 |" in lines
    assert "- `a.txt`: `alice` +2 −1, `bob` +1 −1" in lines
    assert "- ``odd `name` @all <b>.txt``: people and other programs +1 −0" in lines
    assert any(line.startswith("- `sh -c exit 3` with the work of `bob`: exit status 3") for line in lines)
    assert "### Approvals" not in lines


def test_odd_paths_are_neither_trailers_nor_lines_of_the_body(kept: Workspace, world: World) -> None:
    for name in ("a\nWatchroom-Agent: eve", " leading", os.fsdecode(b"not utf-8 \xff"), "ä\x1b[31m"):
        write(world.folder, name, b"x\n")
    kept.trees.refresh_all()
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    assert git(world.folder, "rev-parse", f"{record.commit}^{{tree}}") == plan.content
    assert "eve" not in "".join(world.log(record.commit, "%B"))
    assert "- `a Watchroom-Agent: eve`: people and other programs +1 −0" in plan.body.splitlines()
    assert "- `not utf-8 \\udcff`: people and other programs +1 −0" in plan.body.splitlines()
    assert "\x1b" not in plan.body


# The branch


def test_a_branch_of_others_is_never_moved(kept: Workspace, world: World) -> None:
    git(world.folder, "branch", "watchroom/work", "main")
    with pytest.raises(InvalidBranch):
        plan_of(kept, world)
    with pytest.raises(InvalidBranch):
        plan_of(kept, world, branch="work")
    for name in ("-x", "a..b", "12", "#12"):
        with pytest.raises(InvalidBranch):
            plan_of(kept, world, branch=name)
    git(world.folder, "branch", "--delete", "--force", "watchroom/work")
    plan = plan_of(kept, world)
    git(world.folder, "branch", "watchroom/work", "main")
    with pytest.raises(InvalidBranch):
        kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    assert git(world.folder, "rev-parse", "watchroom/work", "main").split()[0] == plan.base


def test_a_branch_made_here_is_moved_by_new_work_only(kept: Workspace, world: World) -> None:
    first = kept.pull_requests.open(DANA, world.tree, plan_of(kept, world), TEXTS, is_pushed=False)
    same = kept.pull_requests.open(DANA, world.tree, plan_of(kept, world), TEXTS, is_pushed=False)
    assert same.commit == first.commit
    ScriptedClient(kept, "bob", world.folder).write("more.txt", "more\n")
    moved = kept.pull_requests.open(DANA, world.tree, plan_of(kept, world), TEXTS, is_pushed=False)
    assert git(world.folder, "rev-parse", "watchroom/work") == moved.commit != first.commit
    git(world.folder, "checkout", "--quiet", "--detach")
    git(world.folder, "commit", "--quiet", "--allow-empty", "--message", "by a person")
    git(world.folder, "branch", "--force", "watchroom/work", "HEAD")
    with pytest.raises(InvalidBranch):
        plan_of(kept, world)


def test_a_process_that_was_killed_before_the_move_leaves_nothing_in_the_way(
    kept: Workspace, world: World
) -> None:
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    git(world.folder, "branch", "--delete", "--force", "watchroom/work")
    kept.pull_requests.record(DANA, record._replace(state="decided"))
    again = kept.pull_requests.open(DANA, world.tree, plan_of(kept, world), TEXTS, is_pushed=False)
    assert git(world.folder, "rev-parse", "watchroom/work") == again.commit


def test_a_row_of_an_agent_makes_no_branch_ours(kept: Workspace, world: World) -> None:
    plan = plan_of(kept, world)
    record = kept.pull_requests.open(DANA, world.tree, plan, TEXTS, is_pushed=False)
    target = git(world.folder, "rev-parse", "main")
    git(world.folder, "branch", "release", "main")
    kept.pull_requests.record(CallContext("alice"), record._replace(branch="release", commit=target))
    with pytest.raises(InvalidBranch):
        plan_of(kept, world, branch="release")


def test_targets_and_states_without_a_pull_request(kept: Workspace, world: World) -> None:
    with pytest.raises(InvalidTarget):
        plan_of(kept, world, into="missing")
    with pytest.raises(InvalidTarget):
        plan_of(kept, world, into="main~1")
    git(
        world.folder,
        "update-ref",
        "refs/heads/other",
        git(world.folder, "commit-tree", "-m", "x", "main^{tree}"),
    )
    with pytest.raises(InvalidTarget):
        plan_of(kept, world, into="other")
    write(world.folder, "../project/.git/worktrees/work/MERGE_HEAD", b"x\n")
    with pytest.raises(GitBusy):
        plan_of(kept, world)
    git_dir = world.repository.folder / ".git/worktrees/work"
    (git_dir / "MERGE_HEAD").unlink()
    main = GitTree.find(str(world.repository.folder))
    assert main is not None
    with pytest.raises(NothingToCommit):
        kept.pull_requests.plan(main, PullRequestOptions(), TEXTS)


def test_the_default_target_is_that_of_the_remote(kept: Workspace, world: World) -> None:
    git(world.folder, "update-ref", "refs/remotes/origin/trunk", "main")
    git(world.folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert plan_of(kept, world).options.into == "trunk"


# Hosts


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://github.com/acme/app.git", CodeHost("github", "github.com", "acme/app")),
        ("https://token@github.com/acme/app", CodeHost("github", "github.com", "acme/app")),
        ("git@github.com:acme/app.git", CodeHost("github", "github.com", "acme/app")),
        ("ssh://git@github.com:22/acme/app.git", CodeHost("github", "github.com", "acme/app")),
        ("git@gitlab.com:group/sub/app.git", CodeHost("gitlab", "gitlab.com", "group/sub/app")),
        ("https://gitlab.example.org/a/b/", CodeHost("gitlab", "gitlab.example.org", "a/b")),
        ("https://example.org/github/app", None),
        ("/srv/github.com/app.git", None),
        ("file:///srv/app.git", None),
        ("ext::sh -c github.com/a/b", None),
        ("https://github.com/acme/app?x=--y", None),
    ],
)
def test_the_host_of_a_remote(url: str, found: CodeHost | None) -> None:
    assert parse_remote(url) == found


def test_the_address_that_opens_a_pull_request() -> None:
    github = CodeHost("github", "github.com", "acme/app")
    gitlab = CodeHost("gitlab", "gitlab.com", "acme/app")
    assert compare_address(github, "main", "watchroom/ö#1") == (
        "https://github.com/acme/app/compare/main...watchroom/%C3%B6%231?expand=1"
    )
    assert compare_address(gitlab, "main", "watchroom/work") == (
        "https://gitlab.com/acme/app/-/merge_requests/new"
        "?merge_request%5Bsource_branch%5D=watchroom%2Fwork&merge_request%5Btarget_branch%5D=main"
    )


def use_programs(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> HostPrograms:
    """Put programs on PATH, and keep real ones away."""
    programs = HostPrograms(folder, *names)
    (folder / "git").symlink_to(shutil.which("git") or "")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return programs


CHECKS: Final = {
    "state": "OPEN",
    "url": URL,
    "statusCheckRollup": [
        {"__typename": "CheckRun", "name": "unit", "status": "COMPLETED", "conclusion": "FAILURE"},
        {"__typename": "CheckRun", "name": "lint", "status": "COMPLETED", "conclusion": "SKIPPED"},
        {"__typename": "CheckRun", "name": "slow", "status": "IN_PROGRESS", "conclusion": ""},
        {"__typename": "StatusContext", "context": "old", "state": "PENDING"},
        {"__typename": "StatusContext", "context": "older", "state": "ERROR"},
    ],
}


def test_the_checks_of_a_pull_request_at_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "gh")
    programs.answer_json("gh view", CHECKS)
    found = read_request(CodeHost("github", "github.com", "acme/app"), str(tmp_path), "watchroom/work")
    assert found.request is not None
    assert (found.request.url, found.request.status) == (URL, "open")
    assert found.request.checks == (
        HostCheck("unit", "failed"),
        HostCheck("lint", "passed"),
        HostCheck("slow", "running"),
        HostCheck("old", "running"),
        HostCheck("older", "failed"),
    )
    (call,) = programs.calls()
    assert call.arguments == [
        *("pr", "view", "--repo=github.com/acme/app", "--json=state,statusCheckRollup,url"),
        *("--", "watchroom/work"),
    ]


@pytest.mark.parametrize(
    ("pipeline", "checks"),
    [("success", ["passed"]), ("canceled", ["failed"]), ("manual", ["running"]), (None, [])],
)
def test_the_pipeline_of_a_merge_request_at_gitlab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipeline: str | None, checks: list[str]
) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "glab")
    head = {"status": pipeline} if pipeline else None
    programs.answer_json("glab view", {"state": "merged", "web_url": URL, "head_pipeline": head})
    found = read_request(CodeHost("gitlab", "gitlab.com", "acme/app"), str(tmp_path), "12")
    assert found.request is not None
    assert (found.request.status, [each.status for each in found.request.checks]) == ("merged", checks)
    (call,) = programs.calls()
    assert call.arguments == [
        *("mr", "view", "--repo=https://gitlab.com/acme/app", "--output=json", "--", "12")
    ]


@pytest.mark.parametrize("answer", ["", "{", "[]", '{"state": 3}', "[" * 100_000])
def test_an_answer_that_is_none_claims_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "gh")
    programs.answer("gh view", answer)
    found = read_request(CodeHost("github", "github.com", "acme/app"), str(tmp_path), "x")
    assert (found.request, found.reason) == (None, "gh: ?")


# The command


@pytest.fixture
def closed(repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    """The world in which agents have worked, and then nobody has the workspace open."""
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    made = World(repository)
    with Workspace.open(repository.root, agents=["alice", "bob"]) as workspace:
        assert workspace.keep()
        made.let_work(workspace)
    monkeypatch.chdir(repository.folder)
    return made


def all_states(world: World) -> list[str]:
    with Workspace.open(world.repository.root) as workspace:
        return states(workspace)


def test_a_branch_is_made_without_a_push(
    capsys: Captured, closed: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "gh")
    out = printed(capsys, "pull-request", "work", "--no-push", "--as", "dana")
    assert out.startswith("Branch watchroom/work for main, from ")
    assert "     Watchroom-Session: alice/s1\n" in out
    assert out.endswith("To push it: git push origin watchroom/work\n")
    assert closed.read_remote("watchroom/work") == ""
    assert programs.calls() == []


def test_a_push_needs_a_persons_yes(capsys: Captured, closed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for more in ((), ("--json",)):
        assert "--yes" in run(capsys, "pull-request", "work", *more)[2]
    monkeypatch.setattr("watchroom_cli.history.pull_request.has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "")
    status, _, said = run(capsys, "pull-request", "work")
    assert (status, said) == (1, "Nothing was changed.\n")
    monkeypatch.setenv(AGENT_VARIABLE, "alice")
    status, _, said = run(capsys, "pull-request", "work", "--yes")
    assert (status, "alice" in said) == (1, True)
    assert closed.read_remote("watchroom/work") == ""
    assert closed.repository.git("for-each-ref", "refs/heads/watchroom") == ""


def test_a_pull_request_is_opened_by_gh_and_moved_later(
    capsys: Captured, closed: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "gh")
    programs.answer("gh create", f"{URL}\n")
    title = "--title; $(touch x) `y`\n\x1b[31mred"
    out = printed(capsys, "pull-request", "work", "--yes", "--draft", "--as", "dana", f"--title={title}")
    assert out.endswith(f"Pull request: {URL}\n")
    assert "\x1b" not in out
    head = closed.repository.git("rev-parse", "watchroom/work")
    assert closed.read_remote("watchroom/work") == head
    view, create = programs.calls()
    assert view.arguments[:2] == ["pr", "view"]
    assert create.arguments == [
        *("pr", "create", "--repo=github.com/acme/app", "--base=main", "--head=watchroom/work"),
        *("--title=--title; $(touch x) `y` [31mred", "--body-file=-", "--draft"),
    ]
    assert "| `alice` | 1 | +2 −1 |" in create.given
    assert all_states(closed) == ["decided", "made", "pushed", "opened"]
    programs.answer_json("gh view", CHECKS)
    write(closed.folder, "later.txt", b"later\n")
    out = printed(capsys, "pull-request", "work", "--yes", "--as", "dana")
    assert out.endswith(f"Pull request: {URL}\n")
    assert [each.arguments[-1] for each in programs.calls()] == [URL]
    assert (
        closed.read_remote("watchroom/work") == closed.repository.git("rev-parse", "watchroom/work") != head
    )
    out = printed(capsys, "pull-request", "work", "--status")
    assert out.splitlines() == [
        f"watchroom/work → main: open  {URL}",
        "Checks: failed 2, running 2, passed 1",
        "  ✗ unit",
        "  ✗ older",
    ]
    found = printed_json(capsys, "pull-request", "work", "--status", "--json")
    assert (found["host_state"], found["checks"][0]) == ("open", {"name": "unit", "status": "failed"})


def test_a_merge_request_is_opened_by_glab(
    capsys: Captured, repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    world = World(repository, "gitlab.example.org")
    with Workspace.open(repository.root, agents=["alice", "bob"]) as workspace:
        assert workspace.keep()
        world.let_work(workspace)
    programs = use_programs(monkeypatch, tmp_path / "bin", "glab")
    programs.answer(
        "glab create",
        "Creating: see https://example.org\n\nhttps://gitlab.example.org/acme/app/-/merge_requests/3\n",
    )
    monkeypatch.chdir(world.folder)
    out = printed(capsys, "pull-request", "--yes", "--title=T")
    assert out.endswith("Pull request: https://gitlab.example.org/acme/app/-/merge_requests/3\n")
    *options, description, yes = programs.calls()[1].arguments
    assert options == [
        *("mr", "create", "--repo=https://gitlab.example.org/acme/app", "--target-branch=main"),
        *("--source-branch=watchroom/work", "--title=T"),
    ]
    assert description.startswith("--description=The changes of the working tree `work`")
    assert yes == "--yes"


def test_without_the_hosts_program_the_text_and_the_address_are_printed(
    capsys: Captured, closed: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_programs(monkeypatch, tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    out = printed(capsys, "pull-request", "work", "--yes", "--as", "dana")
    assert "\nwork: work of alice, bob, people and other programs\n" in out
    assert out.endswith(": https://github.com/acme/app/compare/main...watchroom/work?expand=1\n")
    assert all_states(closed) == ["decided", "made", "pushed"]
    status, out, said = run(capsys, "pull-request", "work", "--status")
    assert (status, out) == (1, "watchroom/work → main: pushed\n")
    assert "unknown" in said


def test_a_failed_push_leaves_the_branch(
    capsys: Captured, closed: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = use_programs(monkeypatch, tmp_path / "bin", "gh")
    hook = closed.remote / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\nprintf 'no\\033[31m pushes here' >&2\nexit 1\n")
    hook.chmod(0o755)
    status, _, said = run(capsys, "pull-request", "work", "--yes", "--as", "dana")
    assert status == 1
    assert "no" in said
    assert "\x1b" not in said
    assert said.endswith("push it yourself: git push origin watchroom/work\n")
    assert closed.repository.git("rev-parse", "watchroom/work")
    assert (all_states(closed), programs.calls()) == (["decided", "made", "push_failed"], [])
    hook.unlink()
    programs.answer("gh create", status=1, errors="HTTP 502\n")
    status, _, said = run(capsys, "pull-request", "work", "--yes", "--as", "dana")
    assert (status, "HTTP 502" in said, "compare/main...watchroom/work" in said) == (1, True, True)
    assert all_states(closed)[4:] == ["made", "pushed", "open_failed"]


def test_a_branch_of_others_at_the_remote_is_not_replaced(capsys: Captured, closed: World) -> None:
    other = git(closed.remote, "commit-tree", "-m", "of others", "main^{tree}")
    git(closed.remote, "branch", "watchroom/work", other)
    status, _, said = run(capsys, "pull-request", "work", "--yes", "--as", "dana")
    assert (status, "a branch with this name exists" in said) == (1, True)
    assert closed.read_remote("watchroom/work") == other


def test_an_unknown_remote_is_refused_before_a_branch_is_made(capsys: Captured, closed: World) -> None:
    status, _, said = run(capsys, "pull-request", "work", "--yes", "--remote=-u", "--as", "dana")
    assert (status, "There is no remote '-u'. Known remotes: origin." in said) == (1, True)
    assert closed.repository.git("for-each-ref", "refs/heads/watchroom") == ""


def test_files_that_changed_after_the_question_are_not_pushed(
    capsys: Captured, closed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_: str) -> str:
        write(closed.folder, "secret.txt", b"secret\n")
        return "y"

    monkeypatch.setattr("watchroom_cli.history.pull_request.has_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    status, _, said = run(capsys, "pull-request", "work", "--as", "dana")
    assert (status, "files were changed in the meantime" in said) == (1, True)
    assert closed.read_remote("watchroom/work") == ""


def test_a_tree_without_a_pull_request_has_no_status(capsys: Captured, closed: World) -> None:
    assert run(capsys, "pull-request", "work", "--status")[:2] == (1, "")
    assert "missing" in misuse(capsys, "pull-request", "missing")
