"""The tools with which people commit, try and comment on the work of single agents."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from watchroom.errors import GitBusy, TreeGone
from watchroom.features.trees.comments import (
    COMMENT,
    MAX_CHARACTERS,
    MAX_COMMENTS,
    MAX_QUOTED_CHARACTERS,
    SENT,
    TreeComment,
)
from watchroom.features.trees.rows import COMMIT_AGENT, LAND, PULL_REQUEST, TREE, TRY_AGENT, read_commit
from watchroom.features.trees.trials import LINKED
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import FrozenModel, Message, Name, ParamsModel, ResultModel, Version
from watchroom.kernel.tools.tool import Toolset
from watchroom.texts import catalogue

if TYPE_CHECKING:
    from watchroom.features.trees.commits import CommitPlan
    from watchroom.features.trees.landing import LandingRecord
    from watchroom.features.trees.recorder import TreeRecorder

TOOLS: Final = Toolset(TREE, audience="people")
tool = TOOLS.tool

_MAX_AGENTS: Final = 100
_MAX_LISTED: Final = 1000


class LeftOutFile(FrozenModel):
    """A file that is not committed. ``others``: the authors whose uncommitted work the change depends on."""

    path: str
    reason: str
    others: list[str]


class CommitAgentParams(ParamsModel):
    """The work to commit.

    - ``tree``: the id of the working tree.
    - ``agents``: the agents whose work is committed.
    - ``branch``: a new branch; default the checked-out branch.
    """

    tree: Name
    agents: Annotated[list[Name], Field(min_length=1, max_length=_MAX_AGENTS)]
    message: Message
    branch: Name | None = None


class CommitAgentResult(ResultModel):
    """The commit, with at most 1,000 paths per list."""

    commit: str
    branch: str
    files: list[str]
    left_out: list[LeftOutFile]


@tool(COMMIT_AGENT, path=("tree",))
def commit_agent(context: ToolContext, params: CommitAgentParams) -> CommitAgentResult:
    """Commit the work of some agents without the work of others, for the person of ``context``. Raise
    `TreeGone`, `NothingToCommit`, `GitBusy`, `InvalidBranch`, `GitError`."""
    commits, found = context.zones.agent_commits, _find(context, params.tree)
    plan = commits.plan(found.git, params.agents)
    row = commits.commit(context.call, found.git, params.agents, params.message, branch=params.branch)
    # So that everybody sees the new HEAD at once.
    context.zones.trees.refresh(found)
    record = read_commit(row)
    return CommitAgentResult(
        commit=record.commit,
        branch=record.branch,
        files=[*record.took][:_MAX_LISTED],
        left_out=_left_out(plan),
    )


class TryAgentParams(ParamsModel):
    """The work and the command. ``command``: the program and its arguments. ``tree``, ``agents``: as in
    `CommitAgentParams`."""

    tree: Name
    agents: Annotated[list[Name], Field(min_length=1, max_length=_MAX_AGENTS)]
    command: Annotated[list[str], Field(min_length=1, max_length=1000)]


class TryAgentResult(ResultModel):
    """The result of the command.

    - ``status``: its exit code; None after the timeout.
    - ``output``: the end of its output.
    - ``folder``: the copy of the tree in which it ran.
    """

    status: int | None
    output: str
    folder: str
    seconds: float


@tool(TRY_AGENT, path=("tree",))
def try_agent(context: ToolContext, params: TryAgentParams) -> TryAgentResult:
    """Run a command in a copy of the tree that has the work of some agents only. Raise `TreeGone`,
    `GitError`."""
    found = _find(context, params.tree)
    done = context.zones.agent_commits.try_agent(
        found.git, params.agents, params.command, call=context.call, linked=LINKED
    )
    return TryAgentResult(
        status=done.status, output=done.output, folder=done.folder, seconds=round(done.seconds, 3)
    )


class LandTreeParams(ParamsModel):
    """The tree that lands.

    - ``into``: the branch, default the branch of the main tree.
    - ``check``: a program with its arguments, which must succeed in the merge.
    """

    tree: Name
    into: Name | None = None
    check: Annotated[list[str], Field(max_length=1000)] | None = None


class LandTreeResult(ResultModel):
    """The outcome of the landing, see `watchroom.features.trees.landing.LandingRecord`."""

    state: str
    into: str
    commit: str
    paths: list[str]
    status: int | None
    output: str
    settled: list[str]


@tool(LAND, path=("tree",))
def land_tree(context: ToolContext, params: LandTreeParams) -> LandTreeResult:
    """Land a tree for the person of ``context``. If it does not land, send its agents a message. Raise
    `TreeGone`, `UncommittedWork`, `TargetChanged`,
    `InvalidTarget`, `GitBusy`, `GitError`."""
    found = _find(context, params.tree)
    record = context.zones.landings.land(
        context.call, found, params.into, check=params.check or (), linked=LINKED
    )
    _report_landing(context, found, record)
    return LandTreeResult(
        state=record.state,
        into=record.into,
        commit=record.after,
        paths=[*record.paths][:_MAX_LISTED],
        status=record.status,
        output=record.output,
        settled=[*record.settled][:_MAX_LISTED],
    )


class OpenPullRequestParams(ParamsModel):
    """The tree and the choices of a person, see `watchroom.features.trees.pull_requests.PullRequestOptions`.

    - ``content``: the id of the git tree that the person has seen; default any.
    - ``per_session``: one commit per session instead of per agent.
    - ``subject``: the title.
    - ``push``: whether to push the branch and open the pull request, default yes.
    - ``draft``: whether it is a draft, default no.
    """

    tree: Name
    content: Name | None = None
    into: Name | None = None
    per_session: bool | None = None
    branch: Name | None = None
    subject: Name | None = None
    remote: Name | None = None
    push: bool | None = None
    draft: bool | None = None


class OpenPullRequestResult(ResultModel):
    """The progress of the pull request, see `watchroom.features.trees.pull_requests.PullRequestRecord`.

    ``compare``: the address of the page that opens it, empty if the host is not known.
    """

    state: str
    branch: str
    commit: str
    into: str
    remote: str
    url: str
    compare: str
    reason: str


@tool(PULL_REQUEST, path=("tree",))
def open_pull_request(context: ToolContext, params: OpenPullRequestParams) -> OpenPullRequestResult:
    """Make the branch of a pull request for the person of ``context``, push it, and open the pull request.
    Raise `TreeGone`, `NothingToCommit`, `InvalidTarget`, `InvalidBranch`, `InvalidRemote`, `GitBusy`,
    `GitError`."""
    from watchroom.features.trees.pull_requests import PullRequestOptions

    found, requests = _find(context, params.tree), context.zones.pull_requests
    options = PullRequestOptions(
        params.into or "",
        "session" if params.per_session else "agent",
        params.branch or "",
        params.subject or "",
        params.remote or "origin",
    )
    plan = requests.plan(found.git, options, context.texts)
    if params.content is not None and plan.content != params.content:
        raise GitBusy(rule="content_changed")
    record = requests.open(
        context.call,
        found.git,
        plan,
        context.texts,
        is_pushed=params.push is not False,
        is_draft=bool(params.draft),
    )
    return OpenPullRequestResult(
        state=record.state,
        branch=record.branch,
        commit=record.commit,
        into=record.into,
        remote=record.remote,
        url=record.url,
        compare=plan.compare,
        reason=record.reason,
    )


def _report_landing(context: ToolContext, tree: TreeRecorder, record: LandingRecord) -> None:
    """Send a message to the agents of ``tree`` if it did not land, or landed after a failed attempt. The
    receivers are the agents in a session, else all agents that had a session. The same text is sent once."""
    # Slow to load.
    from watchroom.features.trees.landing_messages import say_landing

    zones, state = context.zones, tree.git.read_state()
    texts = catalogue(zones.registry.current().language)
    is_news = record.state != "landed" or zones.landings.has_failed_before(record)
    said = say_landing(record, state.branch or state.head[:12], texts) if is_news else ""
    places = zones.session_zone.find_places() if said else []
    homes = {folder: zones.trees.tree_at(folder) for folder in {each.folder for each in places}}
    inside = [each for each in places if (home := homes[each.folder]) is not None and home.id == tree.id]
    for agent, _, _ in [each for each in inside if each.is_open] or inside:
        digest = sha256(f"{agent} {state.head} {said}".encode("utf-8", "replace")).hexdigest()
        zones.messages.notify(agent, said, key=f"{LAND} {tree.id} {digest}")


class CommentLinesParams(ParamsModel):
    """A comment on lines that an agent changed.

    - ``comment``: its id. An existing id replaces that comment.
    - ``tree``: the id of the working tree.
    - ``path``: the file's path in the tree.
    - ``agent``: the agent that made the change.
    - ``line``: the number of the first line.
    - ``quote``: the lines as they are.
    - ``text``: the text of the comment; empty removes the comment.
    - ``is_old``: the lines are in HEAD, and the change removed them.
    """

    comment: Name
    tree: Name
    path: Name
    agent: Name
    line: Version
    quote: Annotated[str, Field(max_length=MAX_QUOTED_CHARACTERS)]
    text: Annotated[str, Field(max_length=MAX_CHARACTERS)]
    is_old: bool | None = None


class CommentResult(ResultModel):
    """The note that was recorded."""

    row: int


@tool(COMMENT, path=("tree",))
def comment_lines(context: ToolContext, params: CommentLinesParams) -> CommentResult:
    """Comment on lines, edit the comment, or remove it. Nothing is sent. Raise `TreeGone`."""
    if context.zones.trees.tree(params.tree) is None:
        raise TreeGone(tree=params.tree)
    comment = TreeComment(
        params.comment,
        params.tree,
        params.path,
        params.agent,
        params.line,
        bool(params.is_old),
        params.quote,
        params.text.strip(),
    )
    return CommentResult(row=context.zones.tree_comments.write(context.call, comment).seq)


class MarkCommentsSentParams(ParamsModel):
    """The ids of the comments, and the tree in which the note is recorded."""

    tree: Name
    agent: Name
    comments: Annotated[list[Name], Field(min_length=1, max_length=MAX_COMMENTS)]


@tool(SENT, path=("tree",))
def mark_comments_sent(context: ToolContext, params: MarkCommentsSentParams) -> CommentResult:
    """Record that an agent has been sent these comments."""
    row = context.zones.tree_comments.mark_sent(context.call, params.tree, params.agent, params.comments)
    return CommentResult(row=row.seq)


def _find(context: ToolContext, tree: str) -> TreeRecorder:
    """Return the tree with this id, after recording its changes. Raise `TreeGone`."""
    trees = context.zones.trees
    found = trees.tree(tree)
    if found is None:
        raise TreeGone(tree=tree)
    trees.refresh(found)
    return found


def _left_out(plan: CommitPlan) -> list[LeftOutFile]:
    return [
        LeftOutFile(path=each.path, reason=each.reason, others=[*each.others])
        for each in plan.blocked[:_MAX_LISTED]
    ]
