"""Briefings: what another agent, or a person, has to know to go on with the work of an agent.

`read_briefing` reads the rows, and `format_briefing` writes the text, which has a maximum length. What
agents, people and files said is quoted as data: each of its lines begins with ``>``, and characters that are
not printable are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.errors import GitError, JournalDamaged, UnknownAgent
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.handoffs.rows import BRIEFING_FILE, HANDOFF_NEED, HANDOFF_ZONE
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.service import PeopleReader
from watchroom.features.requests.rows import Answer, parse_answer, parse_arguments
from watchroom.features.requests.service import find_request_end
from watchroom.features.reverts.planning import read_record
from watchroom.features.sessions.reads import StepContent, parse_step
from watchroom.features.sessions.rows import client_call
from watchroom.features.sessions.view import RequestView
from watchroom.features.trees.comments import COMMENT, read_comment
from watchroom.features.trees.landing import read_landing
from watchroom.features.trees.reads import TreeReader
from watchroom.features.trees.rows import (
    COMMIT_AGENT,
    LAND,
    REPO,
    TREE,
    read_commit,
    repo_path,
    split_repo_path,
)
from watchroom.history.comparison import COMPARED, read_differences
from watchroom.kernel.journal import ChangedPath, Journal, RowFilter
from watchroom.kernel.journal.topics import SETTLED, deliveries_to, messages_to, steps_of
from watchroom.kernel.rules.details import get_list, get_text
from watchroom.model import CANCEL, CLIENT_DENIED, MESSAGE, PAUSE, RESUME, Json, Row, Zone, parse_object
from watchroom.texts import Catalogue

MAX_CHARACTERS: Final = 20_000
"""Maximum characters of a briefing."""
MAX_NOTE: Final = 2000
"""Maximum characters of a person's note in a briefing."""
_MAX_ROWS: Final = 20_000
"""Maximum number of the agent's rows that are read, and of the rows about trees, newest first."""
_MAX_STEPS: Final = 3000
_MAX_PATHS: Final = 200
_MAX_ITEMS: Final = 200
"""Maximum number of items in a section."""
_MAX_SAID: Final = 3
_MAX_NAME: Final = 300
_MAX_QUOTE: Final = 600
_MAX_LONG_QUOTE: Final = 1500
_MORE: Final = 120
"""Characters that are reserved in each section for its heading and for the number of items left out."""
_PAGE: Final = 1000

SectionName: TypeAlias = Literal[
    "asked", "open", "decided", "refused", "changed", "committed", "said", "messages", "commands"
]
SECTIONS: Final[tuple[SectionName, ...]] = get_args(SectionName)
"""The sections, the most important first."""
_PLANS: Final[Mapping[str, tuple[str, str]]] = {
    "TodoWrite": ("todos", "content"),
    "todowrite": ("todos", "content"),
    "update_plan": ("plan", "step"),
}
"""By tool of a client with which a model updates its plan: the fields with the entries, and with the text of
an entry."""
_REQUEST: Final[Zone] = "request"
_SESSION: Final[Zone] = "session"


class Item(NamedTuple):
    """An item of a section.

    - ``key``, ``values``: the text ``briefing.KEY``, and its values.
    - ``row``: the row that the item is about, None for a state.
    - ``quote``: what somebody said.
    """

    key: str
    values: Mapping[str, str | int] = {}
    row: Row | None = None
    quote: str = ""


class Briefing(NamedTuple):
    """What is known about the work of ``agent`` as of row ``seq``.

    - ``client``, ``folder``: the client of its newest session, and where it began; empty if unknown.
    - ``last``: its newest operation.
    - ``sections``: the items, the newest first.
    """

    agent: str
    seq: int
    client: str
    folder: str
    last: Row | None
    sections: Mapping[SectionName, Sequence[Item]]


# -- read


def read_briefing(journal: Journal, agent: str) -> Briefing:
    """Return what is known about the work of ``agent``. Raise `UnknownAgent`, `JournalError`."""
    seq = journal.last_seq()
    model = read_model(journal, seq)
    view = model.agent(agent)
    if view is None:
        raise UnknownAgent(agent=agent, known=", ".join(each.agent.id for each in model.agents) or "-")
    own = _read_rows(journal, RowFilter(actor=agent, steps=False))
    of_trees = _read_rows(journal, RowFilter(zone=TREE))
    steps = _Steps(journal, agent)
    begun = view.session.begun.detail if view.session is not None else {}
    sections: dict[SectionName, Sequence[Item]] = {
        "asked": _with_first_on_top(steps.prompts),
        "open": [*steps.plan, *_list_open(journal, model, view)],
        "decided": _list_decisions(journal, agent, own, of_trees),
        "refused": _list_refused(own),
        "changed": _list_changed(journal, own),
        "committed": _list_committed(own, of_trees),
        "said": steps.said,
        "messages": _list_messages(journal, agent, own),
        "commands": _list_commands(own),
    }
    return Briefing(
        *(agent, seq, get_text(begun, "client"), get_text(begun, "cwd"), view.last),
        {name: items[:_MAX_ITEMS] for name, items in sections.items()},
    )


def _read_rows(journal: Journal, only: RowFilter) -> list[Row]:
    """Return the newest rows that pass ``only``, the newest first."""
    found: list[Row] = []
    before = journal.last_seq() + 1
    while len(found) < _MAX_ROWS and (page := journal.rows_before(before, limit=_PAGE, only=only)):
        found += page
        before = page[-1].seq
    return found


class _Steps:
    """What the newest steps of the agent's sessions have: prompts, answers and the plan. Steps of subagents
    are left out."""

    def __init__(self, journal: Journal, agent: str) -> None:
        self.prompts: list[Item] = []
        self.said: list[Item] = []
        self.plan: list[Item] = []
        for row in journal.topic(steps_of(agent), limit=_MAX_STEPS):
            if not is_subagent_step(row):
                self._add(row, journal.content(row.seq) or "")

    def _add(self, row: Row, content: str) -> None:
        step = parse_step(content)
        if step.is_prompt and len(self.prompts) < _MAX_ITEMS:
            prompted = (each for each in step.given if each.get("role") == "user")
            text = "\n".join(filter(None, map(_text_of, prompted)))
            self.prompts.append(Item("prompt", {}, row, text))
        text = "\n".join(filter(None, map(_text_of, step.said)))
        if text and len(self.said) < _MAX_SAID:
            self.said.append(Item("answer", {}, row, text))
        if not self.plan:
            self.plan = [
                Item("plan", {"status": status}, row, text)
                for text, status in _find_plan(step, content)
                if status != "completed"
            ]


def _with_first_on_top(prompts: Sequence[Item]) -> list[Item]:
    """Return ``prompts``, newest first, with the first prompt before all others: it is often the task."""
    if len(prompts) < 2:
        return [*prompts]
    *newer, first = prompts
    return [first._replace(key="first_prompt"), *newer]


def _text_of(message: Mapping[str, Json]) -> str:
    parts = (each for each in get_list(message, "parts") if isinstance(each, dict))
    return "\n".join(get_text(each, "content") for each in parts if get_text(each, "content"))


def _find_plan(step: StepContent, content: str) -> list[tuple[str, str]]:
    """Return the entries of the plan that ``step`` sets, each with its status; empty if it sets none."""
    entries: list[tuple[Json, str]] = []
    for call in step.calls:
        if call.tool in _PLANS:
            listed, name = _PLANS[call.tool]
            entries += [(each, name) for each in get_list(parse_arguments(call.arguments), listed)]
    if '"plan_changed"' in content:
        events = get_list(parse_object(content) or {}, "events")
        changed = [each for each in events if isinstance(each, dict) and each.get("type") == "plan_changed"]
        entries += [(each, "text") for event in changed for each in get_list(event, "entries")]
    found = [(each, name) for each, name in entries if isinstance(each, dict)]
    return [(get_text(each, name), get_text(each, "status")) for each, name in found if get_text(each, name)]


def _list_open(journal: Journal, model: Model, view: AgentView) -> list[Item]:
    """Return what waits for the agent, or for people because of it."""
    agent = view.agent.id
    found = [
        Item("open_request", {"subject": _subject_of(each)}, each.row)
        for each in model.requests
        if each.agent == agent
    ]
    found += [
        Item("open_conflict", {"path": _name(each.row)}, each.row)
        for each in model.conflicts
        if each.row.actor == agent
    ]
    found += [
        Item("unread_message", {"sender": each.sender}, each.row, journal.content(each.row.seq) or "")
        for each in model.messages
        if each.receiver == agent and each.delivered is None
    ]
    found += [
        Item("open_handoff", {"sender": each.sender, "file": each.filename}, each.row, each.row.message)
        for each in model.deliveries
        if each.receiver == agent and each.acknowledged is None
    ]
    found += [
        Item("open_need", {"need": each.kind, "path": _name(each.row)}, each.row, each.row.message)
        for each in model.needs
        if each.agent == agent and each.kind not in ("request", "conflict", "message", HANDOFF_NEED)
    ]
    found += [
        Item("open_task", {"task": each.id}, each.row, each.row.message)
        for each in model.tasks
        if each.ended is None and any(member.id == agent for member in each.members)
    ]
    return [*found, *_list_uncommitted(journal, agent)]


def _list_uncommitted(journal: Journal, agent: str) -> list[Item]:
    reader = TreeReader(journal)
    try:
        changes = [(tree, file) for tree in reader.list_trees() for file in reader.list_changes(tree.id)]
    except (GitError, OSError) as error:
        return [Item("no_uncommitted", {"reason": str(error)})]
    found = []
    for tree, file in changes:
        mine = [each for each in file.authors if agent in (each.author.actor, *each.author.candidates)]
        if mine:
            values = {"path": file.name, "tree": tree.branch or tree.head[:12]}
            added, removed = sum(each.added for each in mine), sum(each.removed for each in mine)
            found.append(Item("uncommitted", {**values, "added": added, "removed": removed}, file.head))
    return sorted(found, key=_newest_first)


def _list_decisions(journal: Journal, agent: str, own: Sequence[Row], of_trees: Sequence[Row]) -> list[Item]:
    people = PeopleReader(journal)
    found: list[Item] = []
    for head in journal.heads(_REQUEST, f"{agent}/"):
        asked, ended = journal.version(_REQUEST, head.path, 1), find_request_end(journal, people, head.path)
        if asked is not None and ended is not None and ended.kind == "human":
            view = RequestView(asked, ended)
            values = {"by": ended.actor, "outcome": view.outcome, "subject": _subject_of(view)}
            found.append(Item("answered", values, ended, _read_answer(journal, ended)))
    refused = {(row.zone, row.path) for row in own if row.outcome == "conflict"}
    for row in journal.topic(SETTLED, limit=_MAX_ROWS):
        if (row.zone, row.path) in refused and people.counts(row):
            values = {"by": row.actor, "path": _name(row), "tool": row.tool}
            found.append(Item("settled", values, row, row.message))
    found += [
        Item("steered", {"by": row.actor, "tool": row.tool}, row, row.message)
        for row in _controls(journal, agent)
        if row.tool in (PAUSE, RESUME, CANCEL) and row.kind == "human"
    ]
    for row in of_trees:
        comment = read_comment(row) if row.tool == COMMENT and row.kind == "human" else None
        if comment is not None and comment.agent == agent and comment.text:
            values = {"by": row.actor, "path": comment.path, "line": str(comment.line)}
            found.append(Item("comment", values, row, comment.text))
    found += [
        Item("reverted", {"by": row.actor}, row, row.message)
        for row in _read_rows(journal, RowFilter(zone="revert", outcome="ok"))
        if row.version == 1 and people.counts(row) and agent in _reverted_agents(journal, row)
    ]
    return sorted(found, key=_newest_first)


def _read_answer(journal: Journal, ended: Row) -> str:
    """Return what the person said in the answer ``ended``."""
    try:
        answer = parse_answer(journal.content(ended.seq) or "")
    except JournalDamaged:
        answer = Answer()
    reasons = [each.reason for each in answer.decisions]
    return "\n".join(filter(None, [answer.text, *answer.values, *dict.fromkeys(reasons)]))


def _reverted_agents(journal: Journal, row: Row) -> Sequence[str]:
    try:
        return read_record(journal, row.path).agents
    except JournalDamaged:
        return ()


def _list_refused(own: Sequence[Row]) -> list[Item]:
    """Return the refused writes and calls of the agent."""
    found = []
    for row in own:
        call = client_call(row)
        if call is not None and row.tool == CLIENT_DENIED:
            values = {"tool": call.tool, "path": call.about, "error": call.error}
            found.append(Item("refused", values, row, call.reason))
        elif row.outcome != "ok":
            values = {"tool": row.tool, "path": _name(row), "error": row.error or row.outcome}
            found.append(Item("refused", values, row, row.message))
    return found


def _list_changed(journal: Journal, own: Sequence[Row]) -> list[Item]:
    """Return the files that the agent changed: from before its first version to its newest."""
    by_path: dict[tuple[Zone, str], list[Row]] = {}
    edits: dict[str, list[Row]] = {}
    for row in own:
        if row.version is not None and row.zone in COMPARED and row.outcome == "ok":
            by_path.setdefault((row.zone, row.path), []).append(row)
        call = client_call(row)
        if call is not None and call.is_edit:
            for path in call.paths:
                edits.setdefault(path, []).append(row)
    changed = [
        ChangedPath(
            *(zone, path, rows[-1].version or 0, rows[0].version or 0, rows[0].seq),
            ((rows[0].actor, len(rows)),),
        )
        for (zone, path), rows in by_path.items()
    ]
    found = []
    for each in read_differences(journal, changed[:_MAX_PATHS]):
        row = by_path[each.path.zone, each.path.path][0]
        values: dict[str, str | int] = {"path": _name(row), "change": each.kind, "count": each.path.versions}
        if each.added is None or each.removed is None:
            found.append(Item("changed_binary", values, row))
        else:
            found.append(Item("changed", {**values, "added": each.added, "removed": each.removed}, row))
    more = [by_path[each.zone, each.path][0] for each in changed[_MAX_PATHS:]]
    found += [Item("changed_unread", {"path": _name(row)}, row) for row in more]
    known = {_name(rows[0]) for rows in by_path.values()}
    found += [
        Item("edited", {"path": path, "count": len(rows)}, rows[0])
        for path, rows in edits.items()
        if path not in known
    ]
    return sorted(found, key=_newest_first)


def _list_committed(own: Sequence[Row], of_trees: Sequence[Row]) -> list[Item]:
    """Return the commits of people with versions of the agent, and the landings of its trees."""
    versions = {(row.path, row.version) for row in own if row.zone == REPO and row.version is not None}
    trees = {split_repo_path(path)[0] for path, _ in versions}
    found = []
    for row in of_trees:
        if row.outcome != "ok" or row.version is not None:
            continue
        if row.tool == COMMIT_AGENT:
            record = read_commit(row)
            taken = [
                path
                for path, numbers in record.took.items()
                if any((repo_path(record.tree, path), each) in versions for each in numbers)
            ]
            if taken:
                values = {"by": row.actor, "commit": record.commit[:12], "branch": record.branch}
                found.append(Item("commit", {**values, "count": len(taken)}, row, row.message))
        elif row.tool == LAND and row.path in trees:
            landing = read_landing(row)
            values = {"by": row.actor, "state": landing.state, "branch": landing.into}
            found.append(Item("landing", {**values, "count": len(landing.paths)}, row))
    return found


def _list_messages(journal: Journal, agent: str, own: Sequence[Row]) -> list[Item]:
    found = [
        Item("received", {"sender": row.actor}, row, journal.content(row.seq) or row.message)
        for row in _controls(journal, agent)
        if row.tool == MESSAGE
    ]
    for row in journal.topic(deliveries_to(agent), limit=_MAX_ITEMS):
        values = {"sender": row.path.partition("_to_")[0], "file": row.path.partition("/")[2]}
        found.append(Item("received_file", values, row, row.message))
    for row in own:
        if row.tool == MESSAGE and row.outcome == "ok":
            found.append(Item("sent", {"receiver": row.path}, row, journal.content(row.seq) or row.message))
        elif row.zone == HANDOFF_ZONE and row.version is not None:
            place, _, file = row.path.partition("/")
            values = {"receiver": place.partition("_to_")[2], "file": file}
            found.append(Item("sent_file", values, row, row.message))
    return sorted(found, key=_newest_first)


def _controls(journal: Journal, agent: str) -> Iterator[Row]:
    """Yield the messages and instructions to the agent and to its sessions."""
    paths = [agent, *(head.path for head in journal.heads(_SESSION, f"{agent}/"))]
    for zone, path in (("agent", agent), *((_SESSION, path) for path in paths)):
        yield from journal.topic(messages_to(zone, path), limit=_MAX_ROWS)


def _list_commands(own: Sequence[Row]) -> list[Item]:
    calls = ((row, client_call(row)) for row in own)
    return [
        Item("command", {"command": call.about, "outcome": call.outcome}, row)
        for row, call in calls
        if call is not None and call.kind == "command" and row.tool != CLIENT_DENIED
    ]


def _subject_of(view: RequestView) -> str:
    return ", ".join(view.subjects) or view.row.message


def _name(row: Row) -> str:
    """Return the path of ``row`` for display. A file in a working tree has its path there."""
    return split_repo_path(row.path)[1] if row.zone == REPO else row.path


def _newest_first(item: Item) -> int:
    return -(item.row.seq if item.row is not None else 0)


# -- format


def format_briefing(briefing: Briefing, texts: Catalogue, note: str = "") -> str:
    """Return the briefing as Markdown with at most `MAX_CHARACTERS` characters. ``note``: a person's note for
    the receiver. Pure."""
    head = [texts("briefing.title", agent=briefing.agent), "", texts("briefing.about", seq=briefing.seq)]
    if briefing.client or briefing.folder:
        values = {"client": _plain(briefing.client) or "?", "folder": _plain(briefing.folder) or "?"}
        head.append(texts("briefing.place", **values))
    if briefing.last is not None:
        head.append(texts("briefing.last", time=_time(briefing.last)))
    if note.strip():
        head += ["", texts("briefing.note"), _quote(note, MAX_NOTE)]
    shown = [(name, [_format(each, texts) for each in items]) for name, items in briefing.sections.items()]
    filled = [(name, items) for name, items in shown if items]
    text = "\n".join(head)
    total = MAX_CHARACTERS - len(text) - _MORE * len(filled)
    shares = _share([sum(len(each) + 1 for each in items) for _, items in filled], total)
    for (name, items), share in zip(filled, shares, strict=True):
        kept = _fit(items, share)
        text += f"\n\n## {texts(f'briefing.section.{name}')}\n" + "".join(f"\n{each}" for each in kept)
        if len(kept) < len(items):
            text += "\n" + texts("briefing.more", count=len(items) - len(kept))
    return text + "\n"


def write_prompt(text: str, agent: str, texts: Catalogue) -> str:
    """Return the prompt for a receiver of the work of ``agent``. ``text``: the briefing."""
    return f"{texts('briefing.prompt', agent=agent)}\n\n{text}"


def write_wake_message(agent: str, texts: Catalogue) -> str:
    """Return the message that tells a receiver to read the briefing on the work of ``agent``."""
    return texts("briefing.wake", agent=agent, file=BRIEFING_FILE)


def _share(sizes: Sequence[int], total: int) -> list[int]:
    """Return how much of ``total`` each size gets. What small ones leave is for the larger ones."""
    shares, left = [0] * len(sizes), total
    for done, at in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[at] = min(sizes[at], left // (len(sizes) - done))
        left -= shares[at]
    return shares


def _fit(items: Sequence[str], characters: int) -> list[str]:
    kept: list[str] = []
    for each in items:
        characters -= len(each) + 1
        if characters < 0:
            break
        kept.append(each)
    return kept


def _format(item: Item, texts: Catalogue) -> str:
    values = {name: _plain(each) if isinstance(each, str) else each for name, each in item.values.items()}
    if "outcome" in values and f"briefing.outcome.{values['outcome']}" in texts:
        values["outcome"] = texts(f"briefing.outcome.{values['outcome']}")
    said = texts(f"briefing.item.{item.key}", **values)
    if item.row is not None:
        said = texts("briefing.dated", row=item.row.seq, time=_time(item.row), text=said)
    most = _MAX_LONG_QUOTE if item.key in ("first_prompt", "prompt", "answer") else _MAX_QUOTE
    return f"- {said}" + (f"\n{_quote(item.quote, most)}" if item.quote.strip() else "")


def _quote(text: str, most: int) -> str:
    """Return ``text`` as a quote of at most ``most`` characters of it, of which each line begins with
    ``>``."""
    cut = text.strip() if len(text.strip()) <= most else f"{text.strip()[:most]} …"
    lines = [_escape(line)[: 2 * most] for line in cut.splitlines() if line.strip()]
    return "\n".join(f"  > {line}" for line in lines)[: 3 * most]


def _plain(text: str) -> str:
    """Return ``text`` as one line, at most `_MAX_NAME` characters."""
    cut = text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}…"
    return _escape(cut)[: 2 * _MAX_NAME]


def _escape(line: str) -> str:
    """Return ``line`` with characters that are not printable as escapes."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def _time(row: Row) -> str:
    return f"{row.timestamp[:10]} {row.timestamp[11:16]} UTC"
