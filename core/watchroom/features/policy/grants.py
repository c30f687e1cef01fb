"""Grants: a person allows calls like one that was shown, for a session, or for a folder until a time. Pure.

`read_call` decides whether a call is understood well enough to be granted; otherwise a person can only
approve it once. `covers` compares a later call with the shown one. In doubt a grant does not match.

Uses in the journal are judged again with this code. A change that matches less makes earlier uses not count.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.features.policy.rules import policy_subject
from watchroom.features.requests.rows import Request, parse_arguments
from watchroom.model import Json, parse_object
from watchroom.texts import Catalogue
from watchroom.validation import find_path_flaw

ZONE: Final = "grant"
Scope: TypeAlias = Literal["session", "place"]
"""Where a grant applies: in the session of its request, or wherever the agent works in the same folder or on
the same file."""
PLACE: Final = "place"
"""The field of a request's metadata with the ``folder`` and the ``target`` of its call, both without symbolic
links."""
MAX_USES: Final = 100
"""Maximum number of uses. The check of a use reads all earlier uses."""
MAX_SECONDS: Final = 31 * 24 * 3600
DEFAULT_USES: Final = 20
DEFAULT_SECONDS: Final = 3600
"""The default duration of a grant that is not for a session."""
_MAX_SHOWN: Final = 1000
"""Maximum characters of a command or path that can be granted, because people must see all of it."""
_NO_SESSIONS: Final = ("mcp", "commands")
"""The second part of the paths of requests that belong to no session."""
_UNCHECKED_ARGUMENT: Final = "expected_version"


class _CommandTool(NamedTuple):
    """The arguments of a tool beside ``command``. Others make a call not understood.

    - ``free``: arguments that can differ from the shown call.
    - ``fixed``: arguments that must be equal.
    """

    free: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()


class _FileTool(NamedTuple):
    """The arguments of a tool for a file: the ``path``, and the ``free`` ones that can differ.

    - ``is_ours``: the path is in a zone.
    - ``is_of_task``: the same path is another file in another task.
    """

    path: str
    free: frozenset[str]
    is_ours: bool = False
    is_of_task: bool = False


_COMMAND_TOOLS: Final[Mapping[str, _CommandTool]] = {
    "Bash": _CommandTool(frozenset({"description"}), frozenset({"timeout", "run_in_background"})),
    "bash": _CommandTool(frozenset({"description"}), frozenset({"timeout"})),
    "run_shell_command": _CommandTool(frozenset({"description"})),
    "run_command": _CommandTool(fixed=frozenset({"timeoutMs", "timeout_ms"})),
}
_FILE_TOOLS: Final[Mapping[str, _FileTool]] = {
    "Write": _FileTool("file_path", frozenset({"content"})),
    "Edit": _FileTool("file_path", frozenset({"old_string", "new_string", "replace_all"})),
    "Read": _FileTool("file_path", frozenset({"offset", "limit"})),
    "collab_write": _FileTool("filepath", frozenset({"content", "message", _UNCHECKED_ARGUMENT}), True),
    "save_to_my_workspace": _FileTool("filename", frozenset({"content", "message"}), True),
    "write_file": _FileTool("path", frozenset({"content"}), True, is_of_task=True),
}


class GrantedCall(NamedTuple):
    """The parts of a call that a grant compares.

    - ``tool``: the name of the tool.
    - ``words``: the words of a command, empty for a file.
    - ``path``: the path of a file as the call names it; empty for a command.
    - ``target``: the same path without symbolic links; empty in a zone, which has none.
    - ``folder``: the folder of a command without symbolic links; empty if unknown.
    - ``fixed``: the other arguments that must be equal, as JSON.
    """

    tool: str
    words: tuple[str, ...] = ()
    path: str = ""
    target: str = ""
    folder: str = ""
    fixed: str = "{}"


class Grant(NamedTuple):
    """A person's permission for calls of ``agent`` like ``call``.

    - ``session``: the path of the only session in which it applies; empty for every session of the agent.
    - ``is_prefix``: a command can have further words.
    - ``expires``: nanoseconds since the epoch; None only for a session.
    - ``uses``: the number of calls after which people are asked again.
    - ``request``: the row of the request that showed the call.
    """

    agent: str
    call: GrantedCall
    session: str
    is_prefix: bool
    expires: int | None
    uses: int
    request: int


class GrantChoice(NamedTuple):
    """A person's choices for a grant.

    - ``uses``: the number of calls.
    - ``seconds``: how long it lasts; None only for a session.
    - ``words``: the number of first words of the command that are granted with any further words; None for
      exactly the command.
    """

    scope: Scope
    uses: int = DEFAULT_USES
    seconds: int | None = None
    words: int | None = None


def build_grant(path: str, number: int, request: Request, choice: GrantChoice, now: int) -> Grant | None:
    """Return the grant for the call of a request, None if the request does not offer it.

    - ``path``, ``number``: the path and the row of the ``request``.
    - ``now``: the journal's time.
    """
    call = read_call(request)
    if call is None or (choice.words or 0) > len(call.words):
        return None
    if choice.words is not None:
        call = call._replace(words=call.words[: choice.words])
    session = find_session(path) if choice.scope == "session" else ""
    expires = None if choice.seconds is None else now + choice.seconds * 10**9
    agent, is_prefix = path.partition("/")[0], choice.words is not None
    grant = Grant(agent, call, session, is_prefix, expires, choice.uses, number)
    has_session = bool(session) or choice.scope != "session"
    return grant if has_session and is_offered(grant, path, request) else None


def read_call(request: Request) -> GrantedCall | None:
    """Return the parts of the only call of ``request`` that a grant compares. None if the call is not
    understood, so that people can only approve it once."""
    if request.kind != "approve" or len(request.calls) != 1 or request.prompt or request.calls[0].asked_again:
        # A prompt has conditions that a grant does not compare, such as a command without a sandbox.
        return None
    name, arguments = request.calls[0].name, parse_arguments(request.calls[0].arguments)
    place = request.metadata.get(PLACE)
    folder, target = _read_place(place)
    if name in _COMMAND_TOOLS:
        return _read_command(name, arguments, folder)
    return _read_file(name, arguments, target) if name in _FILE_TOOLS else None


def find_file(tool: str, arguments: Mapping[str, Json]) -> str:
    """Return the path in the ``arguments`` of a ``tool`` of a client for files; empty for other tools."""
    known = _FILE_TOOLS.get(tool)
    path = arguments.get(known.path) if known is not None and not known.is_ours else None
    return path if isinstance(path, str) else ""


def _read_place(place: object) -> tuple[str, str]:
    """Return the folder and the target in ``place``, each empty if it is missing or cannot be shown."""
    if not isinstance(place, Mapping):
        return "", ""
    found = (place.get("folder"), place.get("target"))
    folder, target = (each if isinstance(each, str) and _is_shown(each) else "" for each in found)
    return folder, target


def _read_command(name: str, arguments: Mapping[str, Json], folder: str) -> GrantedCall | None:
    from watchroom.features.policy.plain_command import read_simple_command

    tool, command = _COMMAND_TOOLS[name], arguments.get("command")
    if not isinstance(command, str) or not arguments.keys() <= {"command", *tool.free, *tool.fixed}:
        return None
    # A patch or a further command among the arguments is not understood.
    if policy_subject(arguments)[:2] != ((), (command,)):
        return None
    words = read_simple_command(command).words
    if not words or not all(each.isprintable() for each in words) or len(shlex.join(words)) > _MAX_SHOWN:
        return None
    fixed = {each: arguments[each] for each in sorted(tool.fixed & arguments.keys())}
    return GrantedCall(name, words, folder=folder, fixed=json.dumps(fixed))


def _read_file(name: str, arguments: Mapping[str, Json], target: str) -> GrantedCall | None:
    tool = _FILE_TOOLS[name]
    path = arguments.get(tool.path)
    if not isinstance(path, str) or not _is_shown(path) or not arguments.keys() <= {tool.path, *tool.free}:
        return None
    # A content can name further files.
    if policy_subject(arguments).paths != (path,):
        return None
    expected = arguments.get(_UNCHECKED_ARGUMENT)
    if expected is not None and not (type(expected) is int and expected >= 0):
        # -1 overwrites whatever others have written.
        return None
    if tool.is_ours:
        return GrantedCall(name, path=path) if find_path_flaw(path) is None else None
    is_absolute = path.startswith("/") and target.startswith("/")
    return GrantedCall(name, path=path, target=target) if is_absolute else None


def _is_shown(text: str) -> bool:
    return bool(text) and text.isprintable() and len(text) <= _MAX_SHOWN


def list_scopes(path: str, call: GrantedCall) -> tuple[Scope, ...]:
    """Return the scopes that a person can choose for ``call`` of the request at ``path``."""
    scopes: list[Scope] = []
    if find_session(path):
        scopes.append("session")
    if call.folder or (call.path and not _FILE_TOOLS[call.tool].is_of_task):
        scopes.append("place")
    return tuple(scopes)


def can_have_more_words(words: Sequence[str]) -> bool:
    """Return whether a command runs only its own program, so that further words can be granted. ``sudo``,
    ``xargs`` or ``sh -c`` would run other programs."""
    from watchroom.features.policy.shell_reader import split_command

    found = split_command(shlex.join(words))
    return len(found.simple) == 1 and found.doubt is None


def find_session(path: str) -> str:
    """Return the path of the session of the request at ``path``; empty if it belongs to none."""
    session = path.rpartition("/")[0]
    agent, _, name = session.partition("/")
    return session if agent and name and name not in _NO_SESSIONS else ""


def covers(grant: Grant, path: str, request: Request) -> bool:
    """Return whether ``grant`` covers the call of the ``request`` at ``path``."""
    call = read_call(request)
    return call is not None and matches(grant, path, call)


def matches(grant: Grant, path: str, call: GrantedCall) -> bool:
    """Return whether ``grant`` covers ``call``, the result of `read_call` for the request at ``path``."""
    if path.partition("/")[0] != grant.agent:
        return False
    if grant.session and find_session(path) != grant.session:
        return False
    if call._replace(words=()) != grant.call._replace(words=()):
        return False
    if not grant.is_prefix:
        return call.words == grant.call.words
    is_longer = call.words[: len(grant.call.words)] == grant.call.words
    return is_longer and can_have_more_words(call.words)


def is_offered(grant: Grant, path: str, request: Request) -> bool:
    """Return whether ``grant`` is one that a person can give for the ``request`` at ``path``: never wider
    than the shown call and the chosen scope."""
    call, words = read_call(request), grant.call.words
    if call is None or path.partition("/")[0] != grant.agent:
        return False
    scope: Scope = "session" if grant.session else "place"
    has_scope = scope in list_scopes(path, call) and grant.session in ("", find_session(path))
    is_prefix = grant.is_prefix and bool(words) and call.words[: len(words)] == words
    is_same = call == grant.call or (is_prefix and call._replace(words=words) == grant.call)
    has_end = grant.expires is not None or bool(grant.session)
    is_plain = not grant.is_prefix or (is_prefix and can_have_more_words(call.words))
    return has_scope and is_same and has_end and is_plain and 0 < grant.uses <= MAX_USES


def dump_grant(grant: Grant) -> str:
    """Return ``grant`` as JSON, the content of its row."""
    call: dict[str, Json] = {**grant.call._asdict(), "words": list(grant.call.words)}
    return json.dumps({**grant._asdict(), "call": call}, ensure_ascii=False)


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "agent": (str,),
    "call": (Mapping,),
    "session": (str,),
    "is_prefix": (bool,),
    "expires": (int, type(None)),
    "uses": (int,),
    "request": (int,),
}


def parse_grant(text: str) -> Grant | None:
    """Return the grant in ``text``: the reverse of `dump_grant`. None if it is invalid."""
    fields = parse_object(text)
    if fields is None or fields.keys() != _TYPES.keys():
        return None
    if not all(isinstance(fields[name], kinds) for name, kinds in _TYPES.items()):
        return None
    if any(isinstance(fields[name], bool) for name in ("expires", "uses", "request")):
        return None
    given = fields["call"]
    if not isinstance(given, Mapping) or given.keys() != set(GrantedCall._fields):
        return None
    words = given["words"]
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        return None
    texts = {name: str(value) for name, value in given.items() if name != "words"}
    if texts != {name: value for name, value in given.items() if name != "words"}:
        return None
    call = GrantedCall(words=tuple(str(each) for each in words), **texts)
    return Grant(**{**fields, "call": call})  # type: ignore[arg-type]


def describe_grant(grant: Grant, texts: Catalogue) -> str:
    """Return one sentence with exactly what ``grant`` covers, without its end and its uses."""
    call = grant.call
    kind = "file" if call.path else "prefix" if grant.is_prefix else "exact"
    where = "session" if grant.session else "place"
    if grant.session and call.folder:
        where = "session_folder"
    path = call.path
    if call.target and call.target != path:
        path = texts("grant.link", path=path, target=call.target)
    values = {"agent": grant.agent, "tool": call.tool, "folder": call.folder, "session": grant.session}
    extra = "" if call.fixed == "{}" else texts("grant.fixed", arguments=call.fixed)
    return texts(f"grant.{kind}.{where}", words=shlex.join(call.words), path=path, **values) + extra
