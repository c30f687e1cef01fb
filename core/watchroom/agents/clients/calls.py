"""The calls of a client's own tools: checks them, asks people about them, and closes the questions.

`denial_reason` checks the rules on paths. `build_question` creates the question to people, with the diff of
the call. `OpenCalls` closes the questions when their calls have ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.agents.clients.events import CallFinished
from watchroom.agents.clients.json_fields import text_of
from watchroom.agents.clients.session import ClientSession
from watchroom.algorithms.merge import unified_diff
from watchroom.errors import MayNotDecide, RequestClosed, RequestExpired, RequestWithdrawn, SignatureRequired
from watchroom.features.policy.grants import PLACE, find_file
from watchroom.features.policy.rules import patched_files
from watchroom.features.requests.rows import (
    DIFFERENCE,
    POLICY_RULE,
    CallDecision,
    PendingCall,
    Request,
    decide_all,
    parse_arguments,
)
from watchroom.features.requests.service import RequestOutcome
from watchroom.features.sessions.rows import PATCH, WRITING_TOOL
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL, path_at
from watchroom.kernel.zones import ZONES
from watchroom.model import Json, Zone
from watchroom.platform.disk import Parts
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

REJECTED: Final = "rejected"
"""The code of a call that a person rejected."""
MAX_DIFFERENCE: Final = 100_000
"""Maximum characters of a diff."""
PATH_ARGUMENTS: Final = ("file_path", "notebook_path", "path", "filename")
"""The names of the arguments that hold a file's path in tools that write files."""
_OWN_FOLDERS: Final = frozenset(
    {
        CONTROL,
        *(
            parts[0]
            for spec in ZONES.values()
            for parts in (spec.folder, spec.versions, spec.checkpoints)
            if parts
        ),
    }
)
_MAX_FILE_BYTES: Final = 1_000_000
"""Maximum size of a file that is compared, in bytes, and of its new text, in characters."""
_MAX_EDITED: Final = 10 * _MAX_FILE_BYTES
"""Maximum characters of a text between edits."""
_MAX_CALLS: Final = 1000
"""Maximum number of unfinished calls that are kept."""
_AT_CLIENT: Final = "human:at-"


def denial_reason(root: str, agent: str, event: Mapping[str, Json], language: Language) -> str:
    """Return the reason to deny ``agent`` the call of ``event``, which uses a client's own tool; empty if it
    is allowed.

    A client's own tools must not write files that are written through Watchroom. The reason names the tool to
    use instead, in ``language``. ``root``: the workspace's folder.
    """
    for written in _written_paths(event):
        cwd = event.get("cwd")
        # Clients replace invalid characters of file names in different ways; the folder stays the same.
        folder, given = map(
            validation.replace_non_path_characters,
            (cwd if isinstance(cwd, str) else os.getcwd(), written),
        )
        path = os.path.join(folder, os.path.expanduser(given))
        # Some clients remove ".." from a path before they follow its symlinks, and others afterwards.
        for meant in (path, os.path.normpath(path)):
            # Symlinks in the existing part of the path are followed.
            relative = os.path.relpath(os.path.realpath(meant), os.path.realpath(root))
            parts = tuple(relative.split(os.sep))
            if parts[0] not in (os.pardir, os.curdir) and (reason := _path_denial(parts, agent, language)):
                return reason
    return ""


def _written_paths(event: Mapping[str, Json]) -> Iterator[str]:
    """Yield the paths of the files that the call of ``event`` would write."""
    tool, given = event.get("tool_name"), event.get("tool_input")
    if not isinstance(tool, str) or not isinstance(given, Mapping) or tool.startswith("mcp__"):
        return
    for value in given.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and PATCH in text:
                yield from patched_files(text)
    if WRITING_TOOL.search(tool):
        for argument in PATH_ARGUMENTS:
            path = given.get(argument)
            if isinstance(path, str) and path:
                yield path


def _path_denial(parts: Parts, agent: str, language: Language) -> str:
    """Return the reason why the client's own tools must not write at ``parts``, empty if they may."""
    if parts[0] not in _OWN_FOLDERS and parts != ("global-whiteboard.md",):
        return ""
    texts = catalogue(language)
    found: tuple[Zone, str] | None = path_at(parts)
    zone, path = found if found is not None else ("workspace", "/".join(parts))
    owner, _, filename = path.partition("/")
    if zone == "private":
        return "" if owner == agent else texts("hook.private", owner=owner, filename=filename)
    if ZONES[zone].on_edit == "conflict":
        return texts(f"hook.{zone}", path=path)
    return texts("hook.ours", path="/".join(parts))


def call_difference(arguments: Mapping[str, Json], folder: str) -> str:
    """Return the changes that a call with ``arguments`` would make in a file, as a unified diff. Reads the
    file.

    - ``file_path`` in the arguments is the file's path; a relative path begins at ``folder``
    - ``content`` is the new text; ``old_string`` and ``new_string``, alone or in a list of ``edits``, are
      replacements

    Return an empty text if the call changes no text, or the file cannot be compared.
    """
    path = text_of(arguments, "file_path")
    if not path:
        return ""
    before = _read_text(validation.replace_non_path_characters(os.path.join(folder, path)))
    if before is None:
        return ""
    given = arguments.get("content")
    after = given if isinstance(given, str) else _apply_edits(before, arguments)
    if after is None or len(after) > _MAX_FILE_BYTES:
        return ""
    return unified_diff(before, after, path, path)[:MAX_DIFFERENCE]


def _apply_edits(text: str, arguments: Mapping[str, Json]) -> str | None:
    """Return the text after the edits, None if it exceeds the limit."""
    edits = arguments.get("edits")
    listed = edits if isinstance(edits, Sequence) and not isinstance(edits, str) else [arguments]
    for edit in listed:
        if isinstance(edit, Mapping) and (old := text_of(edit, "old_string")):
            new = text_of(edit, "new_string")
            count = text.count(old) if edit.get("replace_all") is True else 1
            if len(text) + count * len(new) > _MAX_EDITED:
                return None
            text = text.replace(old, new, count)
    return text


def _read_text(path: str) -> str | None:
    """Return the text of the file, empty if there is no file. None if it is not a regular file or too
    large."""
    if os.path.exists(path) and not os.path.isfile(path):
        # Reading a pipe would block.
        return None
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    return None if len(content) > _MAX_FILE_BYTES else content.decode(errors="replace")


def build_question(client: str, call: PendingCall, folder: str, cwd: str, rule: str, expires: int) -> Request:
    """Return the request to approve ``call``, with its diff and its place. Reads the file that the call
    changes.

    - ``client``: the name of the client, which works in ``folder``
    - ``cwd``: the folder in which the call is made, empty if unknown
    - ``rule``: the policy rule that requires the approval, empty if the client asks
    - ``expires``: the expiry time in nanoseconds since the epoch
    """
    difference = call_difference(parse_arguments(call.arguments), folder)
    metadata = {"client": client, POLICY_RULE: rule, DIFFERENCE: difference}
    known = {name: value for name, value in metadata.items() if value}
    place = _find_place(call, cwd)
    return Request("approve", calls=(call,), metadata={**known, PLACE: place}, expires=expires)


def _find_place(call: PendingCall, cwd: str) -> dict[str, str]:
    """Return the folder and the file of ``call`` without symbolic links, each empty if unknown."""
    path = find_file(call.name, parse_arguments(call.arguments))
    is_known = os.path.isabs(path) and "\0" not in path
    return {
        "folder": os.path.realpath(cwd) if os.path.isabs(cwd) else "",
        "target": os.path.realpath(path) if is_known else "",
    }


def format_decision(call: PendingCall, decided: CallDecision) -> str:
    """Return the reason and the changed arguments in ``decided``, the decision on ``call``, as a text for the
    next prompt. Empty if the decision has neither."""
    lines = [decided.reason] if decided.reason else []
    if decided.approved and decided.arguments is not None:
        lines.append(f"{call.name} {json.dumps(json.loads(decided.arguments), ensure_ascii=False)}")
    return "\n".join(lines)


class OpenCall(NamedTuple):
    """An unfinished call.

    - ``id``: the client's id, or our own id for a question that fits no single call
    - ``tool``, ``arguments``: the call, its arguments as JSON
    - ``request``: the path of the question about it, empty for none
    - ``is_before``: whether the question was asked before the client made its own decision
    - ``candidates``: the ids of all calls that the question may be about, if there are several
    """

    id: str
    tool: str
    arguments: str
    request: str = ""
    is_before: bool = False
    candidates: frozenset[str] = frozenset()


class OpenCalls:
    """The open calls of a client. For use on one event loop.

    - ``workspace``, ``agent``: the workspace, and the agent that the client works as.
    """

    def __init__(self, workspace: Workspace, agent: str) -> None:
        self._workspace = workspace
        self._agent = agent
        self._calls: dict[tuple[str, str], OpenCall] = {}
        """The open calls, by the path of the session and the id of the call."""

    def add(self, session: ClientSession, call: OpenCall) -> None:
        """Store ``call`` of ``session``, and replace earlier data about it."""
        # An existing entry keeps its place, because questions are matched to calls in order.
        self._calls[session.path, call.id] = call
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def forget(self, session: ClientSession, call: OpenCall) -> None:
        """Remove ``call`` of ``session``, because it will not be made."""
        self._calls.pop((session.path, call.id), None)

    def find(self, session: ClientSession, tool: str, arguments: str) -> list[OpenCall]:
        """Return the calls of ``session`` that its client's question about ``tool`` with ``arguments`` may be
        about.

        These are calls without a question, in order. Calls of other sessions, or of the session's subagents,
        never match.
        """
        return [
            call
            for (path, _), call in self._calls.items()
            if path == session.path and not call.request and (call.tool, call.arguments) == (tool, arguments)
        ]

    def find_ended(self, session: ClientSession, tool: str, arguments: str) -> OpenCall | None:
        """Return the call of ``session`` whose end a client reports without an id, None if none is open.

        It is the oldest open call of ``tool`` with ``arguments``. If none has these arguments, an answer has
        replaced them: then it is the oldest open call of ``tool``.
        """
        own = [call for (path, _), call in self._calls.items() if path == session.path and call.tool == tool]
        return next((call for call in own if call.arguments == arguments), own[0] if own else None)

    def has_tool(self, prefix: str) -> bool:
        """Return whether a call is open of a tool whose name begins with ``prefix``."""
        return any(call.tool.startswith(prefix) for call in self._calls.values())

    def is_answer_at_client(self, ended: RequestOutcome) -> bool:
        """Return whether a request ended because its call ended at the client."""
        return ended.row.actor == f"{_AT_CLIENT}{self._agent}"

    async def settle(self, session: ClientSession, ended: CallFinished) -> CallFinished:
        """Close the questions that end with ``ended``, the end of a call of ``session``. Return ``ended``,
        marked as refused if a person rejected the call at the client.

        If nobody else has answered the question about this call, it was answered at the client. A question
        that may be about several calls is withdrawn once all of them have ended.
        """
        call = self._calls.pop((session.path, ended.id), None)
        if call is not None and call.request:
            if call.is_before:
                # The client does not make a call while its hook waits, so nobody has approved this call.
                await self._withdraw(call)
            elif await run_in_thread(self._workspace.requests.ended, call.request) is None:
                await run_in_thread(self._answer_at_client, session, call.request, not ended.is_error)
                if ended.is_error:
                    ended = ended._replace(refusal=REJECTED)
        for key, each in [*self._calls.items()]:
            if key[0] == session.path and ended.id in each.candidates:
                left = each.candidates - {ended.id}
                self._calls[key] = each._replace(candidates=left)
                if not left:
                    del self._calls[key]
                    await self._withdraw(each)
        return ended

    def _answer_at_client(self, session: ClientSession, path: str, approved: bool) -> None:
        asked = self._workspace.journal.version("request", path, 1)
        if asked is None:
            return
        requests = self._workspace.requests
        answer = decide_all(requests.read(asked), approved)
        try:
            requests.answer(CallContext(f"{_AT_CLIENT}{self._agent}"), asked.seq, answer)
        except (RequestClosed, RequestExpired, RequestWithdrawn) as error:
            # An earlier answer counts.
            self._workspace.session_zone.note(self._agent, "answered_before", session.path, str(error), {})
        except (SignatureRequired, MayNotDecide) as error:
            # The client continued with its own person's answer, which does not count here.
            requests.withdraw(path)
            self._workspace.session_zone.note(self._agent, "answered_unsigned", session.path, str(error), {})

    async def withdraw_all(self, session: ClientSession, running: Collection[str] = ()) -> None:
        """Remove the calls of ``session``, whose turn has ended, and withdraw the questions about them.
        ``running``: the ids of the calls that have not ended."""
        for key, call in [*self._calls.items()]:
            if key[0] == session.path and key[1] not in running:
                del self._calls[key]
                if call.request:
                    await self._withdraw(call)

    async def _withdraw(self, call: OpenCall) -> None:
        if await run_in_thread(self._workspace.requests.ended, call.request) is None:
            await run_in_thread(self._workspace.requests.withdraw, call.request)
