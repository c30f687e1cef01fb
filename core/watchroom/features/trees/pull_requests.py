"""`PullRequests`: a branch with one commit per author of a working tree's changes, and a pull request for it.

The commits begin at the merge base of the tree and the target branch, and end with the content of the tree.
No file, index or checked-out branch is changed. A branch, here or at the remote, is only moved if a pull
request of this workspace has moved it to its current commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.errors import (
    GitBusy,
    InvalidBranch,
    InvalidRemote,
    InvalidTarget,
    NothingToCommit,
)
from watchroom.features.config.store import Store
from watchroom.features.trees.code_hosts import (
    CodeHost,
    HostAnswer,
    compare_address,
    create_request,
    is_installed,
    parse_remote,
    read_request,
    say_error,
)
from watchroom.features.trees.commit_series import PEOPLE, SeriesFile, SeriesStep, split_changes
from watchroom.features.trees.commits import (
    AgentCommits,
    BlockedFile,
    FileComparison,
    PlannedFile,
    author_of_version,
    is_agent,
    reported_as_done,
)
from watchroom.features.trees.git import FileState, GitTree
from watchroom.features.trees.git_merge import GitMerger
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.line_rules import LineCount
from watchroom.features.trees.provenance import Provenance
from watchroom.features.trees.pull_request_texts import (
    MAX_TITLE,
    BodyFacts,
    CommitOrigin,
    PlannedCommit,
    clean_line,
    format_body,
    format_message,
    format_title,
)
from watchroom.features.trees.rows import (
    INTO,
    PULL_REQUEST,
    REPO,
    TREE,
    candidates_of,
    repo_path,
    split_repo_path,
)
from watchroom.features.trees.service import Trees
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import RowFilter
from watchroom.kernel.rules.details import get_text
from watchroom.kernel.rules.file_versions import unescape_path
from watchroom.model import Json, Row
from watchroom.platform.child_process import run_child
from watchroom.texts import Catalogue
from watchroom.validation import MAX_PATH_BYTES, escape_unstorable, extract_first_line

Grouping: TypeAlias = Literal["agent", "session"]
"""The unit that gets a commit of its own."""
PullRequestState: TypeAlias = Literal["decided", "made", "pushed", "opened", "push_failed", "open_failed"]
"""The progress of a pull request.

- ``decided``: the commits are made, and the branch is being moved to them.
- ``made``: the branch is at the commits.
- ``pushed``: the branch is at the remote. No program has opened the pull request.
- ``opened``: the pull request is open, or was open already and has the pushed commits.
- ``push_failed``, ``open_failed``: the branch stays, and nothing else has happened.
"""
_STATES: Final[tuple[PullRequestState, ...]] = get_args(PullRequestState)
_PREFIX: Final = "watchroom/"
_MAX_LISTED: Final = 1000
_PUSH_SECONDS: Final = 300.0
_MAX_OUTPUT: Final = 1024 * 1024
_NOT_IN_BRANCH: Final = re.compile(r"[^A-Za-z0-9_./-]+")
_OF_OTHERS: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
"""Variables that would make git work in another repository."""


class PullRequestRecord(NamedTuple):
    """The progress of a pull request, as recorded in its note.

    - ``tree``: the id of the tree.
    - ``branch``, ``commit``: the branch, and its new commit.
    - ``into``, ``base``: the target branch, and the commit at which ``branch`` begins.
    - ``content``: the id of the branch's git tree.
    - ``per``: the unit that gets a commit of its own.
    - ``remote``: the name of the remote; empty if the branch was not to be pushed.
    - ``url``: the address of the pull request, empty if not known.
    - ``reason``: why it failed, as one line.
    """

    tree: str
    state: PullRequestState
    branch: str
    commit: str
    into: str
    base: str
    content: str
    per: Grouping = "agent"
    remote: str = ""
    url: str = ""
    reason: str = ""

    @property
    def detail(self) -> dict[str, Json]:
        """The record as the detail of a row."""
        fields: dict[str, Json] = {**self._asdict()}
        del fields["tree"], fields["into"]
        return {**fields, "branch": escape_unstorable(self.branch), INTO: escape_unstorable(self.into)}


def read_pull_request(row: Row) -> PullRequestRecord:
    """Return the record of ``row``, a note with the tool `PULL_REQUEST`."""
    detail = row.detail
    state = get_text(detail, "state")
    return PullRequestRecord(
        row.path,
        next((each for each in _STATES if each == state), "decided"),
        get_text(detail, "branch"),
        get_text(detail, "commit"),
        get_text(detail, INTO),
        get_text(detail, "base"),
        get_text(detail, "content"),
        per="session" if get_text(detail, "per") == "session" else "agent",
        remote=get_text(detail, "remote"),
        url=get_text(detail, "url"),
        reason=get_text(detail, "reason"),
    )


class PullRequestOptions(NamedTuple):
    """The choices of a person.

    - ``into``: the target branch, default the default branch of the remote, else the branch of the main tree.
    - ``per``: the unit that gets a commit of its own.
    - ``branch``: default ``watchroom/`` and the name of the tree.
    - ``title``: default a title with the authors.
    """

    into: str = ""
    per: Grouping = "agent"
    branch: str = ""
    title: str = ""
    remote: str = "origin"


class PullRequestPlan(NamedTuple):
    """A planned pull request.

    - ``tree``: the id of the tree.
    - ``before``: the current commit of the branch; empty if it does not exist.
    - ``content``: the id of the last commit's git tree.
    - ``host``: the project of the remote, None if its host is not known.
    - ``has_remote``: whether there is such a remote.
    - ``left_out``: the paths of files whose bytes are neither in the journal nor on disk.
    """

    tree: str
    options: PullRequestOptions
    base: str
    before: str
    content: str
    commits: tuple[PlannedCommit, ...]
    title: str
    body: str
    host: CodeHost | None
    has_remote: bool
    left_out: tuple[str, ...] = ()

    @property
    def compare(self) -> str:
        """The address of the page that opens the pull request, empty if the host is not known."""
        return compare_address(self.host, self.options.into, self.options.branch) if self.host else ""


class PullRequests:
    """Makes branches for pull requests, pushes them, and opens the pull requests.

    - ``store``: the journal.
    - ``trees``: the working trees.
    - ``counts``: returns whether a person's decision counts.

    Methods raise `GitError`, `JournalError`.
    """

    def __init__(self, store: Store, trees: Trees, counts: Callable[[Row], bool]) -> None:
        self._store = store
        self._trees = trees
        self._counts = counts
        self._commits = AgentCommits(store)
        self._provenance = Provenance(store, counts)

    # -- plan

    def plan(self, git: GitTree, options: PullRequestOptions, texts: Catalogue) -> PullRequestPlan:
        """Plan a pull request of the tree ``git``. No branch is made.

        ``texts``: the language of its texts.

        Raise `InvalidTarget`, `InvalidBranch`, `NothingToCommit`, and `GitBusy` during a rebase or a merge,
        or if files change meanwhile.
        """
        state = git.read_state()
        if state.operation:
            raise GitBusy(rule="git_operation")
        options = self._complete(git, options)
        base = self._find_base(git, options, state.head)
        before = self._check_branch(git, options.branch)
        newest = self._list_newest(git)
        uncommitted = [*self._commits.compare(git, state.head)]
        whole = {each.path: each.plan(None) for each in uncommitted}
        states = {path: each.state for path, each in whole.items() if isinstance(each, PlannedFile)}
        states |= _read_unrecorded(git, whole.keys() | self._list_existing(git))
        content = git.write_tree(states, parent=state.head)
        since_base = uncommitted if base == state.head else [*self._commits.compare(git, base)]
        sessions = self._find_sessions(since_base)
        if options.per == "session":
            since_base = [*self._commits.compare(git, base, _name_by(sessions))]
        commits = [
            PlannedCommit(step, self._find_origin(step, sessions), tree)
            for step, tree in self._split(git, base, content, since_base)
        ]
        if not commits:
            raise NothingToCommit(blocked="-")
        if (git.read_state().head, self._list_newest(git)) != (state.head, newest):
            raise GitBusy(rule="content_changed")
        left_out = tuple(path for path, each in whole.items() if isinstance(each, BlockedFile))
        facts = self._find_facts(git, options.into, base, commits, left_out)
        url = _read_url(git, options.remote)
        return PullRequestPlan(
            git.tree_id(),
            options,
            base,
            before,
            content,
            tuple(commits),
            clean_line(options.title, MAX_TITLE) or format_title(facts, texts),
            format_body(facts, texts),
            parse_remote(url),
            bool(url),
            left_out,
        )

    def _complete(self, git: GitTree, options: PullRequestOptions) -> PullRequestOptions:
        """Return ``options`` with the defaults."""
        into = options.into or _read_default(git, options.remote) or self._find_main_branch()
        if not into:
            raise InvalidTarget(branch="-", rule="no_target")
        return options._replace(into=into, branch=options.branch or propose_branch(git))

    def _find_main_branch(self) -> str:
        main = next((each for each in self._trees.all() if each.git.git == self._trees.common), None)
        return main.git.read_state().branch if main is not None else ""

    def _find_base(self, git: GitTree, options: PullRequestOptions, head: str) -> str:
        """Return the merge base of ``head`` and the target branch: the remote's branch as last fetched, else
        the local branch."""
        merger = GitMerger(git)
        refs = (f"refs/remotes/{options.remote}/{options.into}", f"refs/heads/{options.into}")
        target = next((found for each in refs if (found := _read_ref(git, each))), "")
        if not target:
            raise InvalidTarget(branch=options.into, rule="branch_unknown")
        base = merger.find_base(target, head) if head else ""
        if not base:
            raise InvalidTarget(branch=options.into, rule="unrelated")
        return base

    def _check_branch(self, git: GitTree, branch: str) -> str:
        """Return the current commit of ``branch``, empty if it does not exist. Raise `InvalidBranch` if
        somebody else made it."""
        ref = f"refs/heads/{branch}"
        # Programs of hosts take a number for the number of a pull request.
        is_number = branch.lstrip("#!").isdecimal()
        if is_number or branch.startswith("-") or _git(git, "check-ref-format", ref) is None:
            raise InvalidBranch(branch=branch, rule="branch_name")
        before = _read_ref(git, ref)
        is_used = any(each.git.read_state().branch == branch for each in self._trees.all())
        if is_used or (before and before not in self._list_own(branch)):
            raise InvalidBranch(branch=branch, rule="checked_out" if is_used else "branch_taken")
        return before

    def _list_own(self, branch: str) -> set[str]:
        """Return the commits to which pull requests have moved ``branch``."""
        return {each.commit for each in self.list_records() if each.branch == escape_unstorable(branch)}

    def _list_newest(self, git: GitTree) -> list[int]:
        """Return the row numbers of the newest versions of the tree's files."""
        return [row.seq for row in self._store.journal.heads(REPO, repo_path(git.tree_id(), ""))]

    def _list_existing(self, git: GitTree) -> set[str]:
        """Return the files of the tree that have versions, and exist."""
        rows = self._store.journal.heads(REPO, repo_path(git.tree_id(), ""))
        return {os.fsdecode(unescape_path(split_repo_path(row.path)[1])) for row in rows if not row.deleted}

    def _find_sessions(self, compared: Iterable[FileComparison]) -> Mapping[int, str]:
        """Return the sessions of the versions since the compared commit, by row number."""
        planned = ((each, each.plan(None)) for each in compared)
        rows = (
            each.rows[version]
            for each, file in planned
            if isinstance(file, PlannedFile)
            for version in file.versions
        )
        return self._provenance.find_sessions(row for row in rows if is_agent(author_of_version(row)))

    def _split(
        self, git: GitTree, base: str, content: str, compared: Sequence[FileComparison]
    ) -> list[tuple[SeriesStep, str]]:
        """Return the commits from ``base`` to ``content``, each with its git tree."""
        recorded = {each.path for each in compared if isinstance(each.plan(None), PlannedFile)}
        # Committed by people, or elsewhere, before Watchroom recorded a change of them.
        rest = git.list_committed(base, content) - recorded
        start = GitMerger(git).replace_files(f"{base}^{{tree}}", content, rest) if rest else base
        states: dict[str, FileState | None] = {}
        made: list[tuple[SeriesStep, str]] = []
        for step in split_changes(compared, starts_with_people=bool(rest)):
            states |= {file.path: file.state for file in step.files}
            made.append((step, git.write_tree(states, parent=start)))
        if rest:
            first, tree = made[0]
            files = (*first.files, *_count_unrecorded(git, base, content, rest))
            made[0] = (first._replace(files=files), tree)
        last = _git(git, "rev-parse", "--verify", f"{base}^{{tree}}")
        differing: list[tuple[SeriesStep, str]] = []
        for step, found in made:
            if found != last:
                differing.append((step, found))
                last = found
        if differing:
            # Git may have stored other line ends meanwhile than it would store now.
            differing[-1] = (differing[-1][0], content)
        elif content != last:
            differing = [(SeriesStep((PEOPLE,), ()), content)]
        return differing

    def _find_origin(self, step: SeriesStep, sessions: Mapping[int, str]) -> CommitOrigin:
        rows = [row for file in step.files for row in file.rows]
        agents = dict.fromkeys(row.actor for row in rows if is_agent(row.actor))
        named = {sessions[row.seq] for row in rows if row.seq in sessions}
        tasks = (self._provenance.find_task(each) for each in agents)
        approvals = [each for agent in agents for each in self._provenance.find_approvals(agent, rows)]
        candidates = dict.fromkeys(name for row in rows for name in candidates_of(row))
        return CommitOrigin(
            tuple(sorted(named)),
            tuple(dict.fromkeys(each for each in tasks if each)),
            tuple(approvals),
            tuple(candidates),
        )

    def _find_facts(
        self,
        git: GitTree,
        into: str,
        base: str,
        commits: Sequence[PlannedCommit],
        left_out: Sequence[str],
    ) -> BodyFacts:
        files = [file for each in commits for file in each.step.files]
        after = min((row.seq for file in files for row in file.rows), default=0)
        tree = git.tree_id()
        names = {escape_unstorable(file.path, MAX_PATH_BYTES) for file in files}
        checks = self._provenance.find_checks(tree, after) if after else ()
        settled = self._provenance.find_settled(tree, names, after) if after else ()
        return BodyFacts(_name_of(git), into, base, commits, checks, settled, left_out)

    # -- open

    def open(
        self,
        call: CallContext,
        git: GitTree,
        plan: PullRequestPlan,
        texts: Catalogue,
        *,
        is_pushed: bool = True,
        is_draft: bool = False,
    ) -> PullRequestRecord:
        """Make the branch of ``plan``. Push it and open the pull request if ``is_pushed``. Record each step.

        - ``texts``: the language of the commits.
        - ``is_draft``: open it as a draft.

        Raise `InvalidRemote`, `InvalidBranch` if the branch was made or moved by others.
        """
        options = plan.options
        if is_pushed and not plan.has_remote:
            known = _git(git, "remote") or ""
            raise InvalidRemote(remote=options.remote, known=", ".join(known.split()) or "-")
        commit = self._make_commits(git, plan, texts)
        record = PullRequestRecord(
            *(plan.tree, "decided", options.branch, commit, options.into, plan.base, plan.content),
            per=options.per,
            remote=options.remote if is_pushed else "",
            url=self._find_url(options),
        )
        # Recorded before the move: a killed process must not leave a branch that counts as made by others.
        self.record(call, record)
        self._move_branch(git, plan, commit)
        record = record._replace(state="made")
        self._record_done(call, record)
        if is_pushed:
            record = self._push(git, plan, record)
            self._record_done(call, record)
        if record.state == "pushed" and plan.host is not None and is_installed(plan.host):
            record = _open_at_host(git, plan, plan.host, record, is_draft=is_draft)
            self._record_done(call, record)
        return record

    def _find_url(self, options: PullRequestOptions) -> str:
        """Return the address of the pull request that was opened for the branch before, empty if none."""
        same = (escape_unstorable(options.branch), options.remote)
        found = (each.url for each in self.list_records() if (each.branch, each.remote) == same and each.url)
        return next(found, "")

    def _make_commits(self, git: GitTree, plan: PullRequestPlan, texts: Catalogue) -> str:
        """Make the commits, and return the last one. If the branch already has this content and base, return
        its commit."""
        newest = next((each for each in self.list_records() if each.commit == plan.before), None)
        wanted = (plan.base, plan.content, plan.options.per)
        if newest is not None and (newest.base, newest.content, newest.per) == wanted:
            return plan.before
        commit = plan.base
        for each in plan.commits:
            message = format_message(each, texts)
            commit = git.write_commit(each.content, message, each.author, parent=commit)
        return commit

    def _move_branch(self, git: GitTree, plan: PullRequestPlan, commit: str) -> None:
        branch = plan.options.branch
        if self._check_branch(git, branch) != plan.before:
            raise InvalidBranch(branch=branch, rule="branch_taken")
        command = ("update-ref", "-m", "watchroom pull-request", f"refs/heads/{branch}", commit)
        if _git(git, *command, plan.before or "0" * len(commit)) is None:
            raise InvalidBranch(branch=branch, rule="branch_taken")

    def _push(self, git: GitTree, plan: PullRequestPlan, record: PullRequestRecord) -> PullRequestRecord:
        """Push the branch if the remote's branch is a commit of ours, or does not exist."""
        ref, remote = f"refs/heads/{record.branch}", record.remote
        # Not the remote's name, which stands for the address to fetch from.
        listed = _run_as_person(git, "ls-remote", "--", _read_url(git, remote, "--push"), ref)
        if not listed.is_done:
            return record._replace(state="push_failed", reason=listed.text)
        lines = (line.partition("\t") for line in listed.text.splitlines())
        there = next((commit for commit, _, name in lines if name == ref), "")
        if there and there not in self._list_own(record.branch):
            reason = InvalidBranch(branch=f"{remote}/{record.branch}", rule="branch_taken")
            return record._replace(state="push_failed", reason=str(reason))
        lease = f"--force-with-lease={ref}:{there}"
        done = _run_as_person(git, "push", "--quiet", lease, "--", remote, f"{record.commit}:{ref}")
        state: PullRequestState = "pushed" if done.is_done else "push_failed"
        return record._replace(state=state, reason="" if done.is_done else done.text)

    # -- rows

    def record(self, call: CallContext, record: PullRequestRecord) -> None:
        """Record the progress of a pull request."""
        subject = extract_first_line(f"{record.branch}: {record.state} {record.url}", 200)
        note = call.with_tool(PULL_REQUEST).note(TREE, record.tree, message=subject, detail=record.detail)
        self._store.commits.commit(note)

    def _record_done(self, call: CallContext, record: PullRequestRecord) -> None:
        """Record what was done for a pull request. Raise `WorkUnrecorded` if that is refused."""
        with reported_as_done(f"{record.branch} {record.commit[:12]}: {record.state} {record.url}".rstrip()):
            self.record(call, record)

    def list_records(self, tree: str = "") -> list[PullRequestRecord]:
        """Return the notes about pull requests of ``tree``, newest first. Default: of all trees."""
        journal = self._store.journal
        only = RowFilter(zone=TREE, tool=PULL_REQUEST, outcome="ok")
        rows = journal.rows_before(journal.last_seq() + 1, limit=_MAX_LISTED, only=only)
        # Only people make pull requests.
        mine = (row for row in rows if row.kind == "human" and self._counts(row))
        return [read_pull_request(row) for row in mine if tree in ("", row.path)]

    def read_status(self, git: GitTree, record: PullRequestRecord) -> tuple[CodeHost | None, HostAnswer]:
        """Return the host of the pull request of ``record``, and the state of the pull request there.

        The host is None if it is not known, or its program is not installed. Runs a program that uses the
        network, so do not call it on an event loop.
        """
        host = parse_remote(_read_url(git, record.remote or "origin"))
        if host is None or not is_installed(host):
            return None, HostAnswer()
        return host, read_request(host, git.folder, record.url or record.branch)


def _name_by(sessions: Mapping[int, str]) -> Callable[[Row], str]:
    """Return a function that returns the session of a version, or its author if that is not known."""
    return lambda row: sessions.get(row.seq) or author_of_version(row)


def _read_unrecorded(git: GitTree, recorded: Collection[str]) -> Iterator[tuple[str, FileState | None]]:
    """Yield the uncommitted files that are not ``recorded``: links, and files that were staged before
    Watchroom recorded a change of them. None for a deleted file."""
    paths = {*git.list_changed(), *git.list_staged()}.difference(recorded)
    entries = git.list_index() if paths else {}
    for path in paths:
        entry, link, place = entries.get(path), git.read_link(path), os.path.join(git.folder, path)
        if entry is not None and (entry.is_absent or entry.is_submodule):
            continue
        if link is not None:
            yield path, FileState(link, is_link=True)
        elif git.is_behind_link(path) or not os.path.isfile(place):
            yield path, None
        else:
            with open(place, "rb") as file:
                yield path, FileState(file.read(), bool(os.fstat(file.fileno()).st_mode & 0o100))


def _count_unrecorded(git: GitTree, old: str, new: str, paths: Collection[str]) -> Iterator[SeriesFile]:
    """Yield the files at ``paths``, which have no versions, with the lines that differ between two
    commits."""
    printed = _git(git, "diff-tree", "-r", "--no-renames", "--numstat", "-z", old, new) or ""
    for record in printed.split("\0"):
        added, _, rest = record.partition("\t")
        removed, _, path = rest.partition("\t")
        if path in paths:
            # Git prints "-" for binary files.
            lines = [int(each) if each.isdecimal() else 0 for each in (added, removed)]
            yield SeriesFile(path, None, {PEOPLE: LineCount(*lines)}, ())


def propose_branch(git: GitTree) -> str:
    """Return the default branch of a pull request of the tree ``git``."""
    name = _NOT_IN_BRANCH.sub("-", _name_of(git)).strip("-./") or "tree"
    # The tree's own branch may have this name.
    return f"{_PREFIX}{name.removeprefix(_PREFIX)}" + ("-pr" if name.startswith(_PREFIX) else "")


def _name_of(git: GitTree) -> str:
    return git.read_state().branch or os.path.basename(git.folder)


def _open_at_host(
    git: GitTree, plan: PullRequestPlan, host: CodeHost, record: PullRequestRecord, *, is_draft: bool
) -> PullRequestRecord:
    """Open the pull request, unless it is open already."""
    known = read_request(host, git.folder, record.url or record.branch).request
    if known is not None and known.status == "open":
        return record._replace(state="opened", url=known.url)
    made = create_request(
        host,
        git.folder,
        branch=record.branch,
        into=record.into,
        title=plan.title,
        body=plan.body,
        is_draft=is_draft,
    )
    if made.request is None:
        return record._replace(state="open_failed", url="", reason=made.reason)
    return record._replace(state="opened", url=made.request.url)


class _Done(NamedTuple):
    """The end of a program. ``text``: its output, or why it failed."""

    is_done: bool
    text: str


def _run_as_person(git: GitTree, *arguments: str) -> _Done:
    """Run git as if the person had typed it, with the settings and hooks of the repository, but without
    questions."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_OTHERS}
    environment = {**inherited, "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "--no-pager", *arguments]
    try:
        done = run_child(
            command,
            timeout=_PUSH_SECONDS,
            max_output=_MAX_OUTPUT,
            folder=git.folder,
            environment=environment,
        )
    except TimeoutError:
        return _Done(False, f"git {arguments[0]}: {_PUSH_SECONDS:.0f} s")
    except OSError as error:
        return _Done(False, f"git {arguments[0]}: {error.strerror or '?'}")
    if done.status:
        return _Done(False, say_error(done))
    return _Done(True, done.output.decode("utf-8", "replace"))


def _git(git: GitTree, *arguments: str) -> str | None:
    """Return what git prints, None if it fails."""
    variables = {"GIT_DIR": git.git, "GIT_WORK_TREE": git.folder}
    done = run_git(arguments, folder=git.folder, variables=variables, accepted=None)
    return os.fsdecode(done.output).strip() if done.status == 0 else None


def _read_ref(git: GitTree, ref: str) -> str:
    """Return the commit that ``ref`` names, empty if it does not exist."""
    return _git(git, "show-ref", "--verify", "--hash", "--", ref) or ""


def _read_url(git: GitTree, remote: str, *options: str) -> str:
    """Return the address of ``remote``, empty if there is no such remote."""
    return _git(git, "remote", "get-url", *options, "--", remote) or ""


def _read_default(git: GitTree, remote: str) -> str:
    """Return the default branch of ``remote`` as git knows it here, empty if it does not."""
    prefix = f"refs/remotes/{remote}/"
    found = _git(git, "symbolic-ref", "--quiet", f"{prefix}HEAD") or ""
    return found.removeprefix(prefix) if found.startswith(prefix) else ""
