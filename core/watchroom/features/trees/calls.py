"""`TreeCalls`: check and record the calls with which clients change files in a working tree.

A call is checked before it is made (`TreeCalls.begin`), and recorded afterwards (`TreeCalls.end`). In
between, the agent has a lease on the files that it writes. A command has a window instead: changes in the
window may be its work.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from threading import Lock
from typing import Final, NamedTuple

from watchroom.errors import FolderDenied, JournalError, WatchroomError
from watchroom.features.config.store import Store
from watchroom.features.policy.shell_reader import find_commands
from watchroom.features.trees.commits import AgentCommits
from watchroom.features.trees.git_guard import RefusedGit, find_refused, is_read_only
from watchroom.features.trees.recorder import TreeRecorder, Window
from watchroom.features.trees.region_notices import RegionNotices
from watchroom.features.trees.rows import (
    BASELINE,
    CHANGE,
    CHANGE_OTHER_TREE,
    CLIENT_CALL_ID,
    FORMATTER,
    GRADE,
    REPO,
    TREE,
    candidates_of,
    grade_of,
    split_repo_path,
)
from watchroom.features.trees.seen import Ranges, SeenVersion, SeenVersions, name_of
from watchroom.features.trees.service import Holder, TreeFile, Trees
from watchroom.features.trees.uses import FileWrite, MovedText, NewText, ToolEffects, ToolUse
from watchroom.features.trees.write_rules import (
    ChangeNotice,
    Decision,
    Deletion,
    FileView,
    Intent,
    PassageEdit,
    Update,
    WholeText,
    apply_intent,
    build_notice,
    build_refusal,
    decide,
    find_known_ranges,
    find_lost_lines,
    replace_passage,
    say_lost_lines,
    say_notices,
)
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.file_content import FileContent
from watchroom.kernel.rules.file_versions import is_text
from watchroom.model import OUTSIDE, SYSTEM, WRITE_FILE, Json, Note, Row
from watchroom.texts import Catalogue, catalogue

LEASE_SECONDS: Final = 3.0
"""Max seconds that a call waits for another agent to finish writing the same file."""
_MAX_OLDER: Final = 10
"""Max older versions to search for the text that an agent read or patched."""
_MAX_VERSIONS: Final = 100
"""Max versions whose authors a text names."""
_MAX_NAMED: Final = 5
"""Max agents or files that a text names."""
_MAX_CALLS: Final = 1000
_MAX_COMPARISONS: Final = 5
"""Max comparisons of a file without versions, because the file may change all the time."""
_UNREPORTED_SECONDS: Final = 2.0
"""Age of a write, in seconds, at which the next call of its session ends it if its client may not report its
end."""
_MAX_COMMANDS: Final = 20
_MAX_WORDS: Final = 50
"""Max commands of a command line, and max words of a command, to search for names of files."""
LOST_LINES: Final = "lines_lost"
_LEASED: Final = "lease_taken"
OTHER_TREE: Final = "other_tree"
CHANGED_IN_WINDOW: Final = "changed_in_window"
_log = logging.getLogger("watchroom")


class CallVerdict(NamedTuple):
    """The verdict on a call.

    - ``reason``: the reason for a refusal, for the model; empty if the call is permitted.
    - ``code``: the error code of the refusal.
    - ``texts``: the texts to write instead of the call's own, by file; empty for no change.
    """

    reason: str = ""
    code: str = ""
    texts: tuple[NewText, ...] = ()


PROCEED: Final = CallVerdict()


class _OpenWrite(NamedTuple):
    """A write that an agent's client is making.

    - ``before``, ``version``: the text and the number of the newest version at the check.
    - ``expected``: the file's text after the write; None if the write removes the file, or if unknown.
    - ``is_checked``: whether this process checked the write.
    - ``intent``: the change; None if its source is unknown.
    - ``made_from``: the newest text before the change: of this file, or of the file that is moved here.
    - ``moved``: the text to move to another file, None for no move. A move removes this file.
    - ``base``: the version from which the agent made the change.
    - ``seen``: the version that the agent had seen, if it changed another version or had seen only a part.
    - ``told``: the notice for the agent afterwards, because it had not seen the newest version.
    - ``began``: the time of the check, by `time.monotonic`.
    """

    file: TreeFile
    before: str | None
    expected: str | None
    is_checked: bool = True
    version: int = 0
    told: str = ""
    base: int = 0
    seen: FileView | None = None
    intent: Intent | MovedText | None = None
    made_from: str = ""
    moved: str | None = None
    began: float = 0.0

    @property
    def removes(self) -> bool:
        """Whether the file is gone after the write."""
        is_moved = isinstance(self.intent, Update) and bool(self.intent.patch.move_to)
        return is_moved or isinstance(self.intent, Deletion)


class _Command(NamedTuple):
    """A command. ``ended``: the time of its end, by `time.monotonic`; None while it runs."""

    window: Window
    text: str
    ended: float | None = None

    def names(self, path: str) -> bool:
        """Return whether the command contains the name of the file at ``path`` in the journal."""
        return os.path.basename(name_of(path)) in self.text


class _OpenCall(NamedTuple):
    """A checked call that has not ended: its writes, or the window of its command.

    - ``can_end_unreported``: whether no further report of the client may end it.
    - ``is_background``: whether the command continues although the client has its result.
    - ``began``: the time of the check, by `time.monotonic`.
    - ``last_seq``: the newest row when its command or reading began, None for other calls.
    - ``home``: see `TreeCalls.begin`.
    """

    writes: tuple[_OpenWrite, ...] = ()
    window: Window | None = None
    last_seq: int | None = None
    home: str = ""
    can_end_unreported: bool = False
    is_background: bool = False
    began: float = 0.0


class TreeCalls:
    """Checks and records the calls of agents in ``trees``. Can be used from any thread. `begin` waits at most
    `LEASE_SECONDS` for another agent."""

    def __init__(self, store: Store, trees: Trees, regions: RegionNotices) -> None:
        self._store = store
        self._trees = trees
        self._regions = regions
        self._seen = SeenVersions(store)
        self._commits = AgentCommits(store)
        self._lock = Lock()
        self._open: dict[Holder, _OpenCall] = {}
        self._commands: dict[Holder, _Command] = {}
        """The newest commands, at most `_MAX_CALLS`."""
        self._refused: dict[Holder, None] = {}
        """The newest calls with a recorded refusal, at most `_MAX_CALLS`."""
        self._news: dict[str, dict[str, int]] = {}
        """By agent and path: the version to report to the agent."""
        self._untold: dict[str, list[str]] = {}
        """By agent: notices about calls whose reports have no answer, or came before the changes."""
        self._active: dict[str, dict[str, str]] = {}
        """By tree and session: the agent that works there."""
        trees.subscribe(self._hear)

    @property
    def _texts(self) -> Catalogue:
        return catalogue(self._store.registry.current().language)

    def names_ignored(self, use: ToolUse) -> bool:
        """Return whether the call ``use`` reads or writes a file that git ignores. The journal has no
        content of such files."""
        read = self._trees.find(os.path.realpath(use.path)) if use.path else None
        files = [read, *(self._find(each) for each in use.writes)]
        return any(file is not None and self._is_ignored(file) for file in files)

    # -- before a call

    def begin(self, holder: Holder, use: ToolUse, cwd: str, home: str = "") -> CallVerdict:
        """Check a call before it is made, and return the verdict. `end` must follow a permitted call.

        - ``holder``: the call's agent, session and id.
        - ``use``: the operation of the call.
        - ``cwd``: the working directory of the call.
        - ``home``: the folder in which the session began. A session that began in a linked tree must not
          write files of other trees.
        """
        self._note_active(holder, cwd)
        latest = time.monotonic() - _UNREPORTED_SECONDS
        self._settle_unreported(
            lambda each, call: (
                each.session == holder.session and call.can_end_unreported and call.began <= latest
            )
        )
        if use.kind == "write":
            own = self._linked_tree(home)
            reason = self._refuse_other_tree(own, use) if own is not None else ""
            return CallVerdict(reason, OTHER_TREE) if reason else self._begin_writes(holder, use)
        if use.kind == "command":
            return self._begin_command(holder, use, cwd, home)
        if use.kind == "read":
            self._remember(holder, _OpenCall(last_seq=self._store.journal.last_seq()))
        return PROCEED

    def _linked_tree(self, folder: str) -> TreeRecorder | None:
        """Return the linked tree that contains ``folder``, None if the folder is elsewhere."""
        tree = self._trees.tree_at(folder) if folder else None
        return tree if tree is not None and tree.git.git != tree.git.common else None

    def _refuse_other_tree(self, own: TreeRecorder, use: ToolUse) -> str:
        """Return the refusal of ``use`` in a session of the tree ``own``; empty if it writes to no other
        tree."""
        for write in use.writes:
            file = self._find(write)
            if file is not None and file.tree.id != own.id:
                place = os.path.join(own.git.folder, file.name)
                return self._texts("tree.other_tree", path=write.path, tree=own.git.folder, place=place)
        return ""

    def _settle_unreported(self, should_end: Callable[[Holder, _OpenCall], bool]) -> None:
        """End the writes of the calls for which ``should_end`` returns True."""
        with self._lock:
            ended = [each for each, call in self._open.items() if call.writes and should_end(each, call)]
            old = [(each, self._open.pop(each)) for each in ended]
        while old:
            holder, call = old[0]
            try:
                self._settle(holder, call)
            except JournalError:
                with self._lock:
                    self._open.update(old)
                raise
            self._trees.release(lambda each: each == holder)  # noqa: B023  # called at once
            del old[0]

    def _settle(self, holder: Holder, call: _OpenCall) -> None:
        """End the writes of ``call`` that were made."""
        for write in call.writes:
            if self._is_made(write):
                self._end_write(holder, write, None)

    def _is_made(self, write: _OpenWrite) -> bool:
        """Return whether the file is as ``write`` makes it, and differs from the text at the check."""
        if write.file.tree.was_replaced():
            return False
        try:
            content = write.file.tree.content(write.file.name)
        except FolderDenied:
            # For example, the tree was removed.
            return False
        if write.removes and content is None:
            return write.before is not None
        found = _text_of(content)
        is_changed = write.expected is not None and found is not None and found != write.before
        return is_changed and _plain(found or "") == _plain(write.expected or "")

    def _note_active(self, holder: Holder, cwd: str) -> None:
        tree = self._trees.tree_at(cwd) if cwd else None
        if tree is None:
            return
        with self._lock:
            for sessions in self._active.values():
                sessions.pop(holder.session, None)
            self._active.setdefault(tree.id, {})[holder.session] = holder.agent

    def _begin_writes(self, holder: Holder, use: ToolUse) -> CallVerdict:
        found = [(each, self._find(each)) for each in use.writes]
        files = {file: each for each, file in found if file is not None}
        deadline = time.monotonic() + LEASE_SECONDS
        for file in sorted(files, key=lambda each: each.path):
            other = self._trees.lease(file, holder, max(0.0, deadline - time.monotonic()))
            if other is not None:
                self._trees.release(lambda each: each == holder)
                return self._refuse_leased(holder, file, files[file].intent, other)
        try:
            verdict = self._decide_writes(holder, files, use)
        except BaseException:
            self._trees.release(lambda each: each == holder)
            raise
        if verdict.reason:
            self._trees.release(lambda each: each == holder)
        return verdict

    def _find(self, write: FileWrite) -> TreeFile | None:
        """Return the file that ``write`` changes, None if it is in no tree. Clients follow links when they
        write."""
        is_deletion = isinstance(write.intent, Deletion)
        return self._trees.find(write.path if is_deletion else os.path.realpath(write.path))

    def _is_ignored(self, file: TreeFile) -> bool:
        return bool(file.tree.ignored_among([file.name]))

    def _decide_writes(
        self, holder: Holder, files: Mapping[TreeFile, FileWrite], use: ToolUse
    ) -> CallVerdict:
        self._record_made(holder, files)
        for tree in {each.tree.id: each.tree for each in files}.values():
            self._trees.refresh(tree, holder)
        opened: dict[str, _OpenWrite] = {}
        merged: list[NewText] = []
        for file, write in files.items():
            if self._is_ignored(file):
                if not self._has_seen_ignored(holder.agent, file, write):
                    return CallVerdict(self._texts("tree.ignored_changed", path=file.name), "never_seen")
                continue
            intent, source = write.intent, None
            if isinstance(intent, MovedText):
                source = opened.get(intent.source)
                if source is None or source.moved is None:
                    opened[write.path] = _OpenWrite(file, None, None, is_checked=False)
                    continue
                intent = WholeText(source.moved, is_patch=True)
            view, seen, decision = self._decide(holder, file, intent)
            if decision.kind == "merged" and (source is not None or not use.takes_texts):
                decision = decision._replace(kind="refused", code="stale_write")
            if decision.code is not None:
                return self._refuse(holder, file, view, seen, decision, intent)
            if isinstance(intent, Update) and decision.text is None and view.is_text:
                # Codex checks all files before it writes, so it refuses this patch itself.
                self._trees.release(lambda each: each == holder)
                return PROCEED
            if decision.kind == "merged":
                merged.append(NewText(write.path, view.text or "", decision.text or ""))
            told = self._describe_stale(file, seen, decision) if decision.is_stale and view.author else ""
            opened[write.path] = _open_write(file, write.intent, view, seen, decision, told, source)
        call = _OpenCall(tuple(opened.values()), can_end_unreported=use.can_end_unreported)
        self._remember(holder, call)
        return CallVerdict(texts=tuple(merged))

    def _record_made(self, holder: Holder, files: Collection[TreeFile]) -> None:
        """Record the writes of ``files`` by other calls that were made, but are not reported yet."""
        with self._lock:
            opened = [
                (each, write)
                for each, call in self._open.items()
                for write in call.writes
                if each != holder and write.file in files
            ]
        for each, write in opened:
            if self._is_made(write):
                self._keep_untold(each.agent, self._end_write(each, write, None))
                self._forget(each, write)

    def _forget(self, holder: Holder, write: _OpenWrite) -> None:
        """Remove ``write``, which is recorded, from the call of ``holder``."""
        with self._lock:
            call = self._open.get(holder)
            if call is not None:
                left = tuple(each for each in call.writes if each is not write)
                self._open[holder] = call._replace(writes=left)

    def _decide(
        self, holder: Holder, file: TreeFile, intent: Intent
    ) -> tuple[FileView, FileView | None, Decision]:
        """Return the newest version of ``file``, the version that the agent saw, and the decision on its
        write."""
        head, view = self._newest(holder, file)
        seen = self._seen_view(holder.agent, file.path, head, view)
        older = self._older_views(file.path, head) if isinstance(intent, Update) else ()
        return view, seen, decide(intent, view, seen, holder.agent, older)

    def _newest(self, holder: Holder, file: TreeFile) -> tuple[Row | None, FileView]:
        """Return the newest version of ``file``, and its text. A file without versions has git's
        content."""
        (head,) = file.tree.heads([file.name])
        content: FileContent | None = None
        for _ in range(_MAX_COMPARISONS if head is None else 0):
            # A change after the comparison has no version yet, and is not git's content.
            stamp = file.tree.stamp(file.name)
            # Only this file: a look at the whole tree could exceed the deadline of a hook.
            self._trees.record(file.tree, holder, is_whole=False)
            (head,) = file.tree.heads([file.name])
            content = file.tree.content(file.name) if head is None else None
            if head is not None or (content.stamp if content is not None else None) == stamp:
                break
        return head, self._view(head) if head is not None else _git_view(content)

    def _refuse_leased(
        self, holder: Holder, file: TreeFile, intent: Intent | MovedText, other: Holder
    ) -> CallVerdict:
        """Refuse a write to ``file``, which ``other`` is writing. Record the refused text."""
        reason = self._texts("tree.writing", agent=other.agent, path=file.name)
        if isinstance(intent, MovedText) or self._is_ignored(file):
            return CallVerdict(reason, _LEASED)
        self._trees.refresh(file.tree)
        view, _, decision = self._decide(holder, file, intent)
        if decision.code is None:
            decision = decision._replace(base=view.version)
        self._keep_refused(holder, file, view, decision, intent, _LEASED)
        kept = [] if decision.text is None else [self._texts("tree.kept")]
        return CallVerdict("\n".join([reason, *kept]), _LEASED)

    def _has_seen_ignored(self, agent: str, file: TreeFile, write: FileWrite) -> bool:
        """Return whether ``agent`` can write a file that git ignores. Versions of such a file are not kept.
        The agent must have read or written the current content, except to replace a passage."""
        content = file.tree.content(file.name)
        if content is None or isinstance(write.intent, PassageEdit | Update):
            return True
        return content.checksum != "" and self._seen.find_ignored(agent, file.path) == content.checksum

    def _view(self, row: Row) -> FileView:
        is_readable = is_text(row)
        text = self._store.content(row) if is_readable and not row.deleted else None
        is_baseline = row.tool == BASELINE or grade_of(row) == "git"
        return FileView(
            row.version or 0, text, row.actor, is_text=is_readable or row.deleted, is_baseline=is_baseline
        )

    def _seen_view(self, agent: str, path: str, head: Row | None, view: FileView) -> FileView | None:
        """Return the version of a file that ``agent`` saw, None if it never saw the file."""
        seen = self._seen.find(agent, path)
        if seen is None:
            return None
        if head is None or seen.version == head.version:
            return view._replace(lines=seen.lines)
        row = self._store.journal.version(REPO, path, seen.version)
        return None if row is None else self._view(row)._replace(lines=seen.lines)

    def _older_views(self, path: str, head: Row | None) -> list[FileView]:
        """Return at most `_MAX_OLDER` versions before ``head`` that a patch may be based on, newest first."""
        if head is None:
            return []
        after = max(0, (head.version or 0) - _MAX_OLDER - 1)
        rows = self._store.journal.history(REPO, path, after_version=after)
        return [self._view(row) for row in reversed(rows[:-1])]

    def _keep_refused(
        self, holder: Holder, file: TreeFile, view: FileView, decision: Decision, intent: Intent, code: str
    ) -> None:
        """Record a refused write as a conflict for people, with its text. A deletion has no text."""
        detail: dict[str, Json] = {
            GRADE: "tool",
            CLIENT_CALL_ID: holder.call,
            "current": view.version,
            "current_author": view.author,
        }
        message = ""
        # Not the merged text, because the agent did not write it.
        text = intent.text if isinstance(intent, WholeText) else decision.text
        if text is None:
            message = self._texts("tree.no_deletion" if isinstance(intent, Deletion) else "tree.no_passage")
        note = CallContext(holder.agent, WRITE_FILE).note(
            *(REPO, file.path, "conflict", code, message),
            content=text,
            base=decision.base,
            detail=detail,
        )
        self._store.commits.commit(note)
        with self._lock:
            self._refused[holder] = None
            if len(self._refused) > _MAX_CALLS:
                del self._refused[next(iter(self._refused))]

    def _refuse(
        self,
        holder: Holder,
        file: TreeFile,
        view: FileView,
        seen: FileView | None,
        decision: Decision,
        intent: Intent,
    ) -> CallVerdict:
        """Record a refused write, and return the refusal."""
        code = decision.code or "stale_write"
        self._keep_refused(holder, file, view, decision, intent, code)
        if code == "deleted":
            # The agent cannot read a deleted file, so the refusal counts as seeing the deletion.
            self._seen.keep(holder.agent, file.path, SeenVersion(view.version))
        if seen is None and decision.base:
            row = self._store.journal.version(REPO, file.path, decision.base)
            seen = None if row is None else self._view(row)
        authors = self._authors_since(file.path, seen)
        has_text = decision.text is not None
        reason = build_refusal(code, file.name, view, seen, authors, has_text=has_text).say(self._texts)
        return CallVerdict(reason, code)

    def _describe_stale(self, file: TreeFile, seen: FileView | None, decision: Decision) -> str:
        """Return the notice for an agent that writes to a version which it has not seen."""
        names = dict.fromkeys(self._authors_since(file.path, seen))
        key = "tree.merged" if decision.kind == "merged" else "tree.applied"
        return self._texts(key, path=file.name, authors=self._texts("tree.separator").join(names))

    def _authors_since(self, path: str, seen: FileView | None) -> list[str]:
        after = seen.version if seen is not None else 0
        rows = self._store.journal.history(REPO, path, after_version=after, limit=_MAX_VERSIONS)
        return [row.actor for row in rows if row.tool != BASELINE]

    def _begin_command(self, holder: Holder, use: ToolUse, cwd: str, home: str) -> CallVerdict:
        if use.command and is_read_only(use.command):
            if use.folder:
                self._trees.refresh_all()
                self._remember(holder, _OpenCall(last_seq=self._store.journal.last_seq()))
            return PROCEED
        if use.command:
            refused = self._guard(holder, use.command, cwd)
            if refused:
                return CallVerdict(refused, "git_refused")
        window = Window(holder.agent, holder.call)
        self._trees.open_window(window)
        with self._lock:
            self._commands[holder] = _Command(window, use.command)
            if len(self._commands) > _MAX_CALLS:
                del self._commands[next(iter(self._commands))]
        self._remember(holder, _OpenCall(window=window, last_seq=self._store.journal.last_seq(), home=home))
        return PROCEED

    def _close_window(self, holder: Holder, window: Window, home: str) -> list[Row]:
        try:
            return self._trees.close_window(window, lambda rows: self._hear_late(holder, home, rows))
        finally:
            with self._lock:
                if holder in self._commands:
                    self._commands[holder] = self._commands[holder]._replace(ended=time.monotonic())

    def _find_effects(self, holder: Holder, home: str, rows: Sequence[Row]) -> list[str]:
        """Record the lines that the command of ``holder`` removed unseen, and its changes of other trees.
        Return the notices for its agent. ``rows``: the changes while it ran."""
        return self._find_losses(holder, rows) + self._note_other_trees(holder, rows, home)

    def _hear_late(self, holder: Holder, home: str, rows: Sequence[Row]) -> None:
        """Do as `_find_effects` does, and keep the notices, because the command's report is answered."""
        try:
            told = self._find_effects(holder, home, rows)
        except JournalError as error:
            _log.warning("%s", error)
        else:
            self._keep_untold(holder.agent, told)

    def _keep_untold(self, agent: str, told: Sequence[str]) -> None:
        """Keep the notices ``told`` for ``agent`` until its next call or prompt."""
        if told:
            with self._lock:
                self._untold.setdefault(agent, []).extend(told)

    def _find_running(self, agent: str, file: TreeFile, began: float) -> dict[Holder, _Command]:
        """Return the commands that ran at ``began`` or later, and open calls of agents other than ``agent``
        that have written ``file``."""
        with self._lock:
            found = {
                holder: each
                for holder, each in self._commands.items()
                if each.ended is None or each.ended >= began
            }
            opened = [
                (holder, write)
                for holder, call in self._open.items()
                for write in call.writes
                if holder.agent != agent and write.file == file
            ]
        made = [holder for holder, write in opened if self._is_made(write)]
        return found | {each: _Command(Window(each.agent, each.call), file.name) for each in made}

    def _guard(self, holder: Holder, command: str, cwd: str) -> str:
        """Return the refusal of a git command in ``command``, run in the folder ``cwd``; empty if
        permitted."""
        if "git" not in command:
            return ""
        # Assume staged work of others first, because reading the index takes time. `_confirm` reads it.
        for candidate in find_refused(command, ("?",)):
            folder = os.path.join(cwd, candidate.folder or "")
            tree = self._trees.tree_at(folder if os.path.isdir(folder) else cwd)
            others = self._find_others(holder, tree) if tree is not None else []
            if tree is None or not others:
                continue
            refused = self._confirm(candidate, holder.agent, tree, command, cwd)
            if refused is not None:
                return refused.say(self._texts, holder.agent, others[:_MAX_NAMED])
        return ""

    def _confirm(
        self, candidate: RefusedGit, agent: str, tree: TreeRecorder, command: str, cwd: str
    ) -> RefusedGit | None:
        """Return the refusal of ``candidate``, a part of ``command``, by the files and the index of ``tree``.
        None if it is permitted."""
        changes = {path: {*each.authors} for path, each in self._commits.list_changes(tree.git).items()}

        def is_own(path: str) -> bool:
            name = tree.name_of(os.path.normpath(os.path.join(cwd, path)))
            return changes.get(name or "", set()) <= {agent}

        staged_by_others = [path for path in tree.git.list_staged() if changes.get(path, set()) - {agent}]
        found = find_refused(command, staged_by_others, is_own)
        same = (each for each in found if each[:2] == candidate[:2])
        return next(same, None)

    def _find_others(self, holder: Holder, tree: TreeRecorder) -> list[str]:
        """Return the agents of other sessions in ``tree``, sorted."""
        with self._lock:
            sessions = self._active.get(tree.id, {})
            return sorted({agent for session, agent in sessions.items() if session != holder.session})

    def _remember(self, holder: Holder, call: _OpenCall) -> None:
        with self._lock:
            self._open[holder] = call._replace(began=time.monotonic())
            if len(self._open) > _MAX_CALLS:
                del self._open[next(iter(self._open))]

    # -- after a call

    def end(self, holder: Holder, use: ToolUse, result: ToolEffects) -> str:
        """Record the ``result`` of the call ``use`` of ``holder``. Return the notices for its agent, empty
        without any.

        If the journal refuses that, the call stays open: the next call of its session, or the end of its
        turn, records it.
        """
        with self._lock:
            opened = self._open.get(holder) or _OpenCall()
            is_known = holder in self._open
            if not result.is_running:
                self._open.pop(holder, None)
            elif is_known:
                self._open[holder] = opened._replace(is_background=True)
        if not is_known:
            # Another process checked the call, or no process did.
            opened = _OpenCall(tuple(self._unchecked(use)))
        try:
            told = self._end(holder, use, result, opened, is_known=is_known)
        except JournalError:
            if is_known:
                with self._lock:
                    self._open[holder] = opened._replace(can_end_unreported=True)
            raise
        except BaseException:
            self._trees.release(lambda each: each == holder)
            raise
        self._trees.release(lambda each: each == holder)
        return "\n".join([*told, *self._take_news(holder.agent)])

    def _end(
        self, holder: Holder, use: ToolUse, result: ToolEffects, opened: _OpenCall, *, is_known: bool
    ) -> list[str]:
        """Record the ``result`` of the call ``use``, checked as ``opened``. Return the notices about it.
        ``is_known``: whether this process checked it."""
        told: list[str] = []
        if use.kind == "read" and not result.is_failed:
            self._end_reading(holder.agent, use.path, result, opened.last_seq)
        changed: list[Row] = []
        if opened.window is not None and not result.is_running:
            changed = self._close_window(holder, opened.window, opened.home)
            told += self._find_effects(holder, opened.home, changed)
        # The command may also have changed a file that it names.
        is_compared = opened.window is None or not self._trees.is_uncompared(opened.window)
        if use.command and use.folder and not result.is_failed and is_compared:
            self._note_named(holder.agent, use, {row.path for row in changed}, opened.last_seq)
        made = {self._find(each): each.intent for each in use.writes}
        for write in opened.writes if not result.is_failed else ():
            told += self._end_write(holder, _as_made(write, made.get(write.file)), result.original)
        if result.is_failed and is_known:
            told += [each.reason for each in self._note_failed(holder, use, opened.writes)]
        elif use.writes:
            self._note_ignored(holder.agent, [self._find(each) for each in use.writes])
        return told

    def _note_other_trees(self, holder: Holder, changed: Sequence[Row], home: str) -> list[str]:
        """Record that a command changed files outside the session's own tree. Return the notices for the
        agent."""
        own = self._linked_tree(home)
        rows = [row for row in changed if _is_by(holder, row) and row.zone == REPO]
        rows = [row for row in rows if own is not None and split_repo_path(row.path)[0] != own.id]
        if own is None or not rows:
            return []
        paths = list(dict.fromkeys(row.path for row in rows))
        detail: dict[str, Json] = {"paths": [*paths[:_MAX_NAMED]], "count": len(paths)}
        note = CallContext(holder.agent, CHANGE_OTHER_TREE).note(TREE, own.id, detail=detail)
        self._store.commits.commit(note)
        names = ", ".join(self._place_of(path) for path in paths[:_MAX_NAMED])
        return [self._texts("tree.changed_other", paths=names, count=len(paths), tree=own.git.folder)]

    def _place_of(self, path: str) -> str:
        """Return the location on disk of the file at ``path`` in the journal."""
        tree_id, name = split_repo_path(path)
        tree = self._trees.tree(tree_id)
        return name if tree is None else os.path.join(tree.git.folder, name)

    def _unchecked(self, use: ToolUse) -> Iterator[_OpenWrite]:
        for each in use.writes:
            file = self._find(each)
            if file is not None and not self._is_ignored(file):
                yield _OpenWrite(file, None, None, is_checked=False, intent=each.intent)

    def end_background(self, agent: str, prompt: str) -> str:
        """End the background commands of ``agent`` whose call ids are in ``prompt``, which reports their end.
        Return the notices for the agent."""
        with self._lock:
            ended = [each for each in self._open if each.agent == agent and each.call in prompt]
        told = [self.end(each, ToolUse("command"), ToolEffects()) for each in ended]
        return "\n".join(each for each in told if each)

    def end_turn(self, session: str, *, is_over: bool, running: Collection[str] = ()) -> None:
        """End the open calls of ``session``, which waits for a prompt. Its client does not report skipped or
        interrupted calls.

        - ``is_over``: the session has ended, so its background commands end too.
        - ``running``: the ids of the calls that have not ended, because the prompt arrived before its turn.
        """

        def is_ended(holder: Holder) -> bool:
            return holder.session == session and holder.call not in running

        failures: list[WatchroomError] = []
        try:
            self._settle_unreported(lambda holder, _: is_ended(holder))
        except WatchroomError as error:
            failures.append(error)
        with self._lock:
            own = [(holder, call) for holder, call in self._open.items() if is_ended(holder)]
            # A write whose row was refused stays open until the end of the next turn.
            ended = [each for each in own if is_over or not (each[1].is_background or each[1].writes)]
            for holder, _ in ended:
                del self._open[holder]
            if is_over:
                for sessions in self._active.values():
                    sessions.pop(session, None)
        for holder, call in ended:
            if call.window is not None:
                try:
                    self._hear_late(holder, call.home, self._close_window(holder, call.window, call.home))
                except WatchroomError as error:
                    # The trees are compared later.
                    failures.append(error)
        self._trees.release(lambda each: is_ended(each) and each not in self._open)
        if failures:
            raise failures[0]

    def suspend(self, holder: Holder) -> None:
        """End the leases of the call of ``holder``, which waits for a person. `begin` must follow before the
        call is made. The window of a command stays open."""
        with self._lock:
            if holder in self._open and self._open[holder].window is None:
                del self._open[holder]
        self._trees.release(lambda each: each == holder)

    def _end_reading(self, agent: str, path: str, result: ToolEffects, last_seq: int | None) -> None:
        """Record the version that ``agent`` read: the newest version with the text in ``result``. If it read
        a text between two versions, it saw the lines that the newest version shares with this text.

        ``last_seq``: the newest row when the call began, None if unknown.
        """
        file = self._trees.find(os.path.realpath(path))
        if file is None or self._is_ignored(file):
            self._note_ignored(agent, [file])
            return
        self._trees.refresh(file.tree)
        (head,) = file.tree.heads([file.name])
        version = (head.version or 0) if head is not None else 0
        lines: Ranges | None = None if result.lines is None else (result.lines,)
        if head is not None and result.text is not None:
            after = max(0, version - _MAX_OLDER)
            versions = [*self._store.journal.versions(REPO, file.path, after=after)]
            wanted = _lines_of(result.text)
            start, end = result.lines or (0, None)
            same = [
                row.version or 0
                for row, text in versions
                if text is not None and _lines_of(text)[start:end] == wanted
            ]
            newest = versions[-1][1]
            if same:
                version = max(same)
            elif last_seq is not None and head.seq > last_seq and newest is not None:
                text = _plain(newest)
                lines = find_known_ranges(text, FileView(text=_plain(result.text)), text)
        self._seen.note(agent, file.path, version, lines)

    def _note_failed(self, holder: Holder, use: ToolUse, writes: Sequence[_OpenWrite]) -> list[CallVerdict]:
        """Record writes that the client refused itself because others had changed the files. Return the
        refusals for the agent. The agent's next version settles these conflicts."""
        refused: list[CallVerdict] = []
        for write in writes:
            if write.intent is None or isinstance(write.intent, MovedText):
                continue
            self._trees.refresh(write.file.tree, holder)
            (head,) = write.file.tree.heads([write.file.name])
            is_others = head is not None and head.actor != holder.agent and head.tool != BASELINE
            if head is None or not is_others or (head.version or 0) <= write.base:
                continue
            view, seen, decision = self._decide(holder, write.file, write.intent)
            wanted = write.expected if write.moved is None else write.moved
            wanted = decision.text if wanted is None else wanted
            if wanted is None and not write.removes:
                # The change fits no known version, so it did not fail because of others.
                continue
            decision = Decision("refused", "stale_write", wanted, write.base, is_stale=True)
            refused.append(self._refuse(holder, write.file, view, seen, decision, write.intent))
        return refused

    def end_refused(self, holder: Holder, use: ToolUse) -> CallVerdict:
        """Record the writes of a call that the client refused itself, if others had changed the files. Return
        the refusal for the agent, or `PROCEED` if others had not changed them."""
        with self._lock:
            opened = self._open.pop(holder, None)
        refused: list[CallVerdict] = []
        if opened is not None:
            refused = self._note_failed(holder, use, opened.writes)
            self._trees.release(lambda each: each == holder)
        elif not self._was_refused(holder):
            writes = [(each, self._find(each)) for each in use.writes]
            for each, file in writes:
                if file is None or isinstance(each.intent, MovedText) or self._is_ignored(file):
                    continue
                self._trees.refresh(file.tree)
                (head,) = file.tree.heads([file.name])
                if head is None or head.actor == holder.agent:
                    continue
                view = self._view(head)
                seen = self._seen_view(holder.agent, file.path, head, view)
                decision = decide(each.intent, view, seen, holder.agent)
                if decision.is_stale and not view.is_baseline:
                    decision = decision._replace(code=decision.code or "stale_write")
                    refused.append(self._refuse(holder, file, view, seen, decision, each.intent))
        if not refused:
            return PROCEED
        return CallVerdict("\n".join(each.reason for each in refused), refused[0].code)

    def _was_refused(self, holder: Holder) -> bool:
        with self._lock:
            return holder in self._refused

    def _note_named(self, agent: str, use: ToolUse, changed: Collection[str], last_seq: int | None) -> None:
        """Record that ``agent`` has seen the files that its command names. Clients without a read tool read
        files with commands.

        - ``changed``: the paths that the command changed. They are left out.
        - ``last_seq``: the newest row when the command began, None if unknown. Later versions are not
          recorded as seen, because the command may have read the file before them.
        """
        for command in find_commands(use.command)[:_MAX_COMMANDS]:
            folder = os.path.join(use.folder, command.folder or "")
            for word in command.words[1:_MAX_WORDS]:
                path = os.path.realpath(os.path.join(folder, word))
                file = self._trees.find(path) if os.path.isfile(path) else None
                if file is not None and file.path not in changed and not self._is_ignored(file):
                    head = self._store.journal.head(REPO, file.path, as_of=last_seq)
                    version = (head.version or 0) if head is not None else 0
                    known = self._seen.find(agent, file.path)
                    if known is None or known.version <= version:
                        self._seen.note(agent, file.path, version)

    def _note_ignored(self, agent: str, files: Sequence[TreeFile | None]) -> None:
        """Record the checksums of the git-ignored files in ``files`` as seen by ``agent``."""
        for file in files:
            content = file.tree.content(file.name) if file is not None and self._is_ignored(file) else None
            if file is not None and content is not None and content.checksum:
                self._seen.note_ignored(agent, file.path, content.checksum, content.stamp.size)

    def _end_write(self, holder: Holder, write: _OpenWrite, original: str | None) -> list[str]:
        """Record the version that a write made, and other changes to the file since the check. Return the
        notices for the agent."""
        write = self._rebase(holder.agent, write)
        file, before, expected = write.file, write.before, write.expected
        other = self._find_other_version(holder, write)
        newest = self._view(other) if other is not None else FileView(text=before)
        between = _find_between(write, original)
        if between is not None:
            if isinstance(write.intent, PassageEdit):
                expected = replace_passage(between, write.intent)
            if _plain(between) == _plain(newest.text or ""):
                between = None
        began = write.began or time.monotonic()
        call = CallContext(holder.agent, WRITE_FILE)
        detail: dict[str, Json] = {GRADE: "tool", CLIENT_CALL_ID: holder.call}
        rows = file.tree.record_write(
            *(file.name, call, detail, expected, between),
            lambda: [each.window for each in self._find_running(holder.agent, file, began).values()],
            removes=write.removes,
            is_followed=between is None and self._is_followed(holder, write),
        )
        own = [row for row in rows if _is_by(holder, row)]
        told = [write.told] if write.told else []
        if not write.is_checked:
            told += self._find_losses(holder, own[-1:])
        elif own and other is not None:
            told += self._find_lost(holder, other, newest, self._view(own[0]), FileView(text=before))
        if own and write.is_checked:
            self._note_own(holder.agent, write, own, between or (newest.text if other is not None else None))
        self._trees.publish(rows)
        running = self._find_running(holder.agent, file, began)
        others = {each: command for each, command in running.items() if each.agent != holder.agent}
        if between is not None and rows and self._has_lost(write, between, rows[-1]):
            self._commit_conflict(file.path, between, self._view(rows[-1]), CHANGED_IN_WINDOW)
        by_others = [row for row in rows if row.actor != holder.agent]
        last = rows[-1] if rows else other
        is_overwritten = (
            expected is not None
            and last is not None
            and last.actor != holder.agent
            and self._find_overwritten(write, expected, last, [*others.values()])
        )
        if is_overwritten and rows:
            by_others.pop()
        for each, command in others.items():
            # A formatter may have made the last version, unless the command names the file.
            is_named = command.names(file.path)
            accused = [row for row in by_others if is_named or row.actor != OUTSIDE or row is not rows[-1]]
            self._keep_untold(each.agent, self._find_losses(each, accused))
        return told

    def _rebase(self, agent: str, write: _OpenWrite) -> _OpenWrite:
        """Return ``write`` as an edit of the newest version, if another call of ``agent`` has made that
        version since the check, and the edit of it gives the text on disk."""
        (head,) = write.file.tree.heads([write.file.name])
        is_own = head is not None and head.actor == agent and (head.version or 0) > write.version
        newest = self._view(head).text if head is not None and is_own else None
        expected = _apply_edit(write, newest)
        if head is None or expected is None or not _is_on_disk(write.file, expected):
            return write
        view = self._view(head)
        seen = self._seen_view(agent, write.file.path, head, view)
        has_seen_all = seen is not None and seen.version == view.version and seen.lines is None
        return write._replace(
            before=newest,
            made_from=newest or "",
            version=head.version or 0,
            expected=expected,
            seen=None if has_seen_all else seen,
        )

    def _is_followed(self, holder: Holder, write: _OpenWrite) -> bool:
        """Return whether other open calls of the agent have edited the text of ``write``, which gives the
        text on disk."""
        with self._lock:
            others = [
                each
                for other, call in self._open.items()
                for each in call.writes
                if other != holder and other.agent == holder.agent and each.file == write.file
            ]
        text = write.expected
        for each in others:
            edited = _apply_edit(each, text)
            if edited is not None and _is_on_disk(write.file, edited):
                return True
            text = text if edited is None else edited
        return False

    def _find_other_version(self, holder: Holder, write: _OpenWrite) -> Row | None:
        """Return the newest version of the file of ``write`` if someone else made it after the check, else
        None. Others can write once the lease of the call is too old."""
        (head,) = write.file.tree.heads([write.file.name])
        if not write.is_checked or head is None or head.actor == holder.agent or head.tool == BASELINE:
            return None
        return head if (head.version or 0) > write.version else None

    def _note_own(self, agent: str, write: _OpenWrite, own: Sequence[Row], between: str | None) -> None:
        """Record that ``agent`` has seen the last of its versions ``own``, made by ``write``. Lines that
        others wrote (``between``) or that a formatter made do not count as seen."""
        row, path = own[-1], write.file.path
        known = write.seen
        if known is None and between is not None:
            known = FileView(text=write.before)
        text, before = self._view(row).text, between or write.made_from
        if row.tool == FORMATTER:
            known, before = self._view(own[-2]), text or ""
        lines = None if known is None or text is None else find_known_ranges(text, known, before)
        self._seen.keep(agent, path, SeenVersion(row.version or 0, lines))

    def _has_lost(self, write: _OpenWrite, between: str, after: Row) -> bool:
        """Return whether ``write`` removed lines of ``between``, a text that its agent had not seen. Only a
        passage edit can keep them, because it was applied to ``between``."""
        if not isinstance(write.intent, PassageEdit):
            return True
        known = FileView(text=write.before) if write.seen is None else write.seen
        return bool(find_lost_lines(between, self._view(after).text, known))

    def _find_overwritten(
        self, write: _OpenWrite, expected: str, found: Row, others: Sequence[_Command]
    ) -> bool:
        """Record a conflict if the version ``found``, right after ``write``, lost its lines to another agent.
        Return whether it did.

        Without a known author, a command must have restored removed lines, or name the file. A formatter
        restores no removed lines."""
        before, after = write.before or "", self._view(found)
        if not find_lost_lines(expected, after.text, FileView(text=before)):
            return False
        gone = {line for each in find_lost_lines(before, expected, None) for line in each.lines}
        is_back = any(line in gone for line in (after.text or "").splitlines(keepends=True))
        is_lost = found.actor != OUTSIDE or is_back or any(each.names(found.path) for each in others)
        if is_lost:
            self._commit_conflict(found.path, expected, after, LOST_LINES)
        return is_lost

    def _find_losses(self, holder: Holder, rows: Sequence[Row]) -> list[str]:
        """Record the lines of others that the versions ``rows`` of a call removed unseen. Return the notices
        for its agent.

        The agent's own lines count as seen afterwards, except lines that a command (such as ``make``) changed
        in a file that it does not name.
        """
        told: list[str] = []
        for row in rows:
            version = row.version or 0
            is_own = _is_by(holder, row)
            if row.zone != REPO or not (is_own or self._is_accused(holder, row)):
                continue
            is_named = self._names(holder, row.path)
            known = self._store.journal.version(REPO, row.path, version - 1)
            lines: Ranges | None = None
            if known is not None:
                before, after = self._view(known), self._view(row)
                seen = self._seen_view(holder.agent, row.path, known, before)
                is_others = is_named or known.actor != holder.agent
                if is_others and not before.is_baseline:
                    told += self._find_lost(holder, known, before, after, seen)
                if after.text is not None:
                    made = (before.text or "") if is_named else after.text
                    lines = find_known_ranges(after.text, seen or FileView(), made)
            if is_own:
                self._seen.keep(holder.agent, row.path, SeenVersion(version, lines))
        return told

    def _find_lost(
        self, holder: Holder, known: Row, before: FileView, after: FileView, seen: FileView | None
    ) -> list[str]:
        """Record a conflict if the version after ``known`` lost lines that the agent of ``holder`` had not
        seen. Return the notices for the agent."""
        lost = find_lost_lines(before.text, after.text, seen)
        if not lost:
            return []
        self._commit_conflict(known.path, before.text or "", after, LOST_LINES)
        author = known.actor if known.actor != holder.agent else ""
        return [say_lost_lines(name_of(known.path), author, lost, self._texts)]

    def _names(self, holder: Holder, path: str) -> bool:
        """Return whether the command of ``holder`` names the file at ``path`` in the journal. True if the
        command is unknown."""
        with self._lock:
            command = self._commands.get(holder)
        return command is None or command.names(path)

    def _is_accused(self, holder: Holder, row: Row) -> bool:
        """Return whether the call of ``holder`` may have made ``row``, which has several candidates. It may
        have if its command names the file, or if no candidate's command does."""
        agents = candidates_of(row)
        if holder.agent not in agents:
            return False
        with self._lock:
            named = {each.window.agent for each in self._commands.values() if each.names(row.path)}
        return self._names(holder, row.path) or not named & set(agents)

    def _commit_conflict(self, path: str, text: str, after: FileView, code: str) -> None:
        """Record that the version ``after`` overwrote ``text``, so that a person compares both."""
        detail: dict[str, Json] = {"current": after.version, "current_author": after.author}
        base = max(0, after.version - 2)
        self._store.commits.commit(
            Note(SYSTEM, CHANGE, REPO, path, "conflict", code, content=text, base=base, detail=detail)
        )

    # -- news

    def _hear(self, rows: Sequence[Row]) -> None:
        """Queue the new versions in ``rows`` as news for agents that saw earlier versions."""
        for row in rows:
            if row.zone != REPO or row.version is None or row.tool == BASELINE:
                continue
            for agent, _ in self._seen.who_saw_before(row):
                with self._lock:
                    self._news.setdefault(agent, {})[row.path] = row.version

    def _take_news(self, agent: str) -> list[str]:
        """Return the notices about files that ``agent`` read and others changed, and about its lines that
        others changed in other trees. Report each change once."""
        with self._lock:
            late = self._untold.pop(agent, [])
            paths = [*self._news.pop(agent, {})]
        notices = [found for path in paths if (found := self._find_notice(agent, path)) is not None]
        told = [say_notices(notices, self._texts)] if notices else []
        return [*late, *told, *(each.say(self._texts) for each in self._regions.take(agent))]

    def _find_notice(self, agent: str, path: str) -> ChangeNotice | None:
        head = self._store.journal.head(REPO, path)
        seen = self._seen.find(agent, path)
        if head is None or seen is None or head.actor == agent or seen.version >= (head.version or 0):
            return None
        view = self._view(head)
        known = self._seen_view(agent, path, head, view)
        if known is None:
            return None
        return build_notice(name_of(path), view, known, self._authors_since(path, known))


def _open_write(
    file: TreeFile,
    intent: Intent | MovedText,
    view: FileView,
    seen: FileView | None,
    decision: Decision,
    told: str,
    source: _OpenWrite | None,
) -> _OpenWrite:
    """Return the checked write of ``file``. ``source``: the write of the file that is moved here, or None."""
    is_partial = decision.kind == "merged" or isinstance(intent, PassageEdit | Update)
    is_known = seen is not None and seen.lines is None and not decision.is_stale
    is_free = not view.exists or view.is_baseline
    known = (seen or FileView()) if is_partial and not is_known and not is_free else None
    if decision.kind == "merged" and isinstance(intent, WholeText):
        known = FileView(text=intent.text)
    is_moved = isinstance(intent, Update) and intent.patch.move_to
    return _OpenWrite(
        file,
        view.text,
        None if is_moved else decision.text,
        version=view.version,
        told=told,
        base=decision.base,
        seen=known if source is None else source.seen,
        intent=intent,
        made_from=(view.text or "") if source is None else source.made_from,
        moved=decision.text if is_moved else None,
        began=time.monotonic(),
    )


def _is_by(holder: Holder, row: Row) -> bool:
    """Return whether the call of ``holder`` made ``row``."""
    return (row.actor, row.detail.get(CLIENT_CALL_ID)) == (holder.agent, holder.call)


def _apply_edit(write: _OpenWrite, text: str | None) -> str | None:
    """Return ``text`` with the edit of ``write``, None if it is no edit or does not apply."""
    is_edit = isinstance(write.intent, PassageEdit | Update) and write.expected is not None
    if text is None or not is_edit or isinstance(write.intent, MovedText | None):
        return None
    return apply_intent(write.intent, text)


def _is_on_disk(file: TreeFile, text: str) -> bool:
    found = None if file.tree.was_replaced() else _text_of(file.tree.content(file.name))
    return found is not None and _plain(found) == _plain(text)


def _text_of(content: FileContent | None) -> str | None:
    return content.text if content is not None and content.data is None else None


def _find_between(write: _OpenWrite, original: str | None) -> str | None:
    """Return the text that someone else wrote between the check of ``write`` and the write, None if nobody
    did. ``original``: the text that the client replaced, None if unknown."""
    if original is None or not write.is_checked or _plain(original) == _plain(write.before or ""):
        return None
    return _with_line_ends(original, write.before or "")


def _as_made(write: _OpenWrite, made: Intent | MovedText | None) -> _OpenWrite:
    """Return ``write`` with ``made``, the change that the client reports. Other hooks may have changed the
    call after the check."""
    is_same = made is None or made == write.intent or not write.is_checked
    if is_same or isinstance(made, MovedText) or made is None:
        return write
    return write._replace(expected=apply_intent(made, write.before), intent=made)


def _git_view(content: FileContent | None) -> FileView:
    """Return the view of a file without versions: its content in git, if the file exists."""
    if content is None:
        return FileView()
    text = content.text if content.checksum and content.data is None else None
    return FileView(0, text, is_text=text is not None, is_baseline=True)


def _plain(text: str) -> str:
    """Return ``text`` as clients report it: without a byte order mark, with line feeds as line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _lines_of(text: str) -> list[str]:
    """Return the lines of ``text``, without line ends."""
    return _plain(text).removesuffix("\n").split("\n")


def _with_line_ends(text: str, like: str) -> str:
    """Return ``text``, which has line feeds, with the line ends and the byte order mark of ``like``."""
    mark = "\ufeff" if like.startswith("\ufeff") else ""
    return mark + (text.replace("\n", "\r\n") if "\r\n" in like else text)
