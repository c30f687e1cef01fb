"""The record of a client: everything that Watchroom has to know about one client program. Pure.

Each client has one record, in the tuple `watchroom.agents.clients.registry.ADAPTERS`. Commands, configuration
files and the answers of hooks are derived from it. A new client needs a module with its record, its line in
the tuple, and the texts ``cli.attach.next_NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from watchroom.agents.clients.events import ClientEvent
from watchroom.agents.clients.hook_answers import AFTER, BEFORE, PERMISSION, PROMPT, START, HookAnswer
from watchroom.features.trees.uses import NewText, ToolResult, ToolUse
from watchroom.model import Json

Event: TypeAlias = Mapping[str, Json]
"""What a hook reports, or a line of a transcript, as the client writes it."""

TIMEOUT_SECONDS: Final = 60
"""A client's timeout for a hook that does not wait for people."""
HOLD_SECONDS: Final = 3600
"""A client's timeout for a hook that can hold a call."""
COMMON_EVENTS: Final[Mapping[str, int]] = {
    START: TIMEOUT_SECONDS,
    PROMPT: TIMEOUT_SECONDS,
    BEFORE: HOLD_SECONDS,
    PERMISSION: HOLD_SECONDS,
    AFTER: TIMEOUT_SECONDS,
}
"""The events that the hooks of all clients report, with the timeouts in seconds."""


_INFORMING: Final = ("--help", "-h", "--version", "-v", "-V")


class Table(NamedTuple):
    """A table in a configuration file: the file's path from the project's folder, and the names that lead to
    the table. The file is TOML if its name says so, else JSON. Empty: the client has no such table."""

    file: str
    names: tuple[str, ...]


class PersonalFile(NamedTuple):
    """A file of hooks that the client reads in every folder, for one person.

    - ``variable``: the environment variable that names its folder
    - ``folder``: its folder without the variable
    - ``name``: its name
    """

    variable: str
    folder: str
    name: str


class HookSupport(NamedTuple):
    """How the hooks of a client are configured, parsed and answered.

    Configuration:
    - ``servers``: the table of MCP servers
    - ``environment``: the table of environment variables for the agent's commands
    - ``hooks``: the table of hooks
    - ``old_files``: files in which earlier versions wrote entries
    - ``personal``: the file of hooks for all working trees of a repository, None: that of ``hooks``, in the
      main tree
    - ``events``: the events that are hooked, with the client's timeout for each in seconds
    - ``needs_status``: the events whose hooks answer by their exit status
    - ``entry_fields``: returns additional fields of a hook's entry, for its event and whether calls that
      nobody could check are refused (strict)

    Events:
    - ``translate_hook``, ``translate_line``: return what an event or a line of the transcript reports
    - ``find_transcript``: returns the path of the transcript of an event's session, empty for none
    - ``describe_use``, ``describe_result``: return what the call of an event does, and has done, to files

    Answers:
    - ``resume_turn``: returns the answer that gives the model a text as its turn ends
    - ``waits_when_idle``: the hook of a turn's end can stay open until something comes for the agent
    - ``takes_arguments``: an answer can replace the arguments of a call
    - ``replace_texts``: returns the arguments of an event's call with other texts of its files
    - ``allows_changes``: a call with other arguments has to be allowed. Only for clients that still ask their
      person then, and keep their sandbox
    """

    servers: Table
    environment: Table
    hooks: Table
    events: Mapping[str, int]
    translate_hook: Callable[[Event], tuple[ClientEvent, ...]]
    translate_line: Callable[[Event], tuple[ClientEvent, ...]]
    find_transcript: Callable[[Event], str]
    resume_turn: Callable[[str], HookAnswer]
    describe_use: Callable[[Event], ToolUse]
    describe_result: Callable[[Event], ToolResult]
    waits_when_idle: bool = False
    takes_arguments: bool = False
    replace_texts: Callable[[Event, Sequence[NewText]], Mapping[str, Json]] = lambda event, texts: {}
    allows_changes: bool = False
    needs_status: tuple[str, ...] = ()
    entry_fields: Callable[[str, bool], Mapping[str, Json]] = lambda event, is_strict: {}
    old_files: tuple[str, ...] = ()
    personal: PersonalFile | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that can have entries of Watchroom, JSON before TOML."""
        tables = (self.servers, self.environment, self.hooks)
        names = dict.fromkeys((*(each.file for each in tables if each.file), *self.old_files))
        return tuple(sorted(names, key=lambda name: name.endswith(".toml")))

    def timeout(self, event: str) -> int:
        """Return the client's timeout for a hook that reports ``event``, in seconds."""
        return self.events.get(event, TIMEOUT_SECONDS)


class LaunchParts(NamedTuple):
    """What a client that `watchroom CLIENT` starts has to be given.

    - ``servers``: the entry of our MCP server, by its name
    - ``environment``: variables of the agent's commands
    - ``hooks``: for each event, its groups of hooks
    - ``keep``: keeps the text in a private file whose name ends so, and returns the file's path
    """

    servers: Mapping[str, Json]
    environment: Mapping[str, str]
    hooks: Mapping[str, Json]
    keep: Callable[[str, str], str]


class LaunchWords(NamedTuple):
    """How a client is started: its arguments, and further environment variables."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = {}


class LaunchSupport(NamedTuple):
    """How a client is started with hooks that are in none of its files.

    - ``program``: the name of its program
    - ``title``: how people call it
    - ``install``: the command that installs it
    - ``describe``: returns the words for its parts, the person's arguments and environment. Raises ValueError
      with the argument or variable that would switch the hooks off
    - ``plain``: its commands that start no session here, separated by blanks. They are not supervised
    """

    program: str
    title: str
    install: str
    describe: Callable[[LaunchParts, Sequence[str], Mapping[str, str]], LaunchWords]
    plain: str = ""

    def starts_session(self, arguments: Sequence[str]) -> bool:
        """Return whether the client starts a session with ``arguments``."""
        if len(arguments) == 1 and arguments[0] in _INFORMING:
            return False
        return not arguments or arguments[0] not in self.plain.split()


class AcpSupport(NamedTuple):
    """How a client is run through the Agent Client Protocol.

    - ``command``: starts the client
    - ``mode``: the mode in which it asks before it acts, empty if it always asks as it is configured
    - ``no_tools``: what to send with a new session so that the client has no tools of its own, None if it
      always has them
    - ``tool_name``: the names that lead to a tool's name in the report of a call, empty if there is none
    """

    command: tuple[str, ...]
    mode: str = ""
    no_tools: Mapping[str, Json] | None = None
    tool_name: tuple[str, ...] = ()


class ClientAdapter(NamedTuple):
    """A client: its ``name`` on the command line and in rows, how it is run through the Agent Client
    Protocol (``acp``), its ``hooks``, and how it is started in a terminal (``launch``). None: the client does
    not have it."""

    name: str
    acp: AcpSupport | None = None
    hooks: HookSupport | None = None
    launch: LaunchSupport | None = None
