"""The record of a client: all data about one client program. Pure.

Each client has one record in the tuple `watchroom.agents.clients.registry.ADAPTERS`. Commands, configuration
files and the answers of hooks are derived from it. A new client needs a module with its record, a line in the
tuple, and the texts ``cli.attach.next_NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from watchroom.agents.clients.events import ClientEvent, TranscriptEvent
from watchroom.agents.clients.hook_answers import AFTER, BEFORE, PERMISSION, PROMPT, START, HookAnswer
from watchroom.features.trees.uses import NewText, ToolEffects, ToolUse
from watchroom.model import Json

Event: TypeAlias = Mapping[str, Json]
"""The report of a hook, or a line of a transcript, as the client writes it."""

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
"""The events that the hooks of all clients report, each with its timeout in seconds."""


PLUGIN: Final = "watchroom@watchroom"
"""The id of Watchroom's plugin: its name, and its marketplace."""
PLUGIN_SWITCH: Final = "WATCHROOM_PLUGIN"
"""The environment variable that turns the plugin off, with the value `PLUGIN_OFF`."""
PLUGIN_OFF: Final = "off"
SESSION_WORD: Final = "SESSION"
"""A word among a client's arguments that stands for the id of a session."""
_INFORMING: Final = ("--help", "-h", "--version", "-v", "-V")


class Table(NamedTuple):
    """A table in a configuration file. Empty if the client has no such table.

    It has the file's path from the project's folder, and the path of names to the table. The file is TOML if
    its name ends with ``.toml``, else JSON.
    """

    file: str
    names: tuple[str, ...]


class PersonalFile(NamedTuple):
    """A file of a person's hooks, which the client reads in every folder.

    - ``variable``: the environment variable with its folder
    - ``folder``: its folder if the variable is not set
    - ``name``: its name
    """

    variable: str
    folder: str
    name: str


class PluginSupport(NamedTuple):
    """What Watchroom's plugin needs to know about a client.

    - ``manifest``: the path of its manifest in the plugin's folder
    - ``folder``: the environment variable of hooks with the plugin's folder
    - ``project``: the environment variable of hooks with the folder in which the client was started. Empty:
      the hook's working directory
    - ``exports``: the environment variable of the first hook with a file of a shell, whose variables the
      agent's commands get. Empty if there is none
    """

    manifest: str
    folder: str
    project: str = ""
    exports: str = ""


class HookSupport(NamedTuple):
    """Configuration, parsing and answers of a client's hooks.

    Configuration:
    - ``servers``: the table of MCP servers
    - ``environment``: the table of environment variables for the agent's commands
    - ``hooks``: the table of hooks
    - ``old_files``: files into which earlier versions wrote entries
    - ``personal``: the file of hooks for all working trees of a repository. None: the file of ``hooks`` in
      the main tree
    - ``events``: the events with hooks, each with the client's timeout in seconds
    - ``needs_status``: the events whose hooks answer with their exit status
    - ``entry_fields``: returns additional fields of a hook's entry. It takes the event, and whether unchecked
      calls are refused (strict)
    - ``event_names``: the client's own names of events, where they differ
    - ``write_line``: takes a shell line, and returns it as the client's file must have it
    - ``passes``: the environment variables that a server's entry must ask for, so that the server gets them.
      Empty if servers get all
    - ``plugin``: for Watchroom's plugin. None if the client has no plugins

    Events:
    - ``read_event``: returns an event in the shared format. All other functions take events in this format
    - ``translate_hook``, ``translate_line``: translate an event or a line of the transcript into client
      events
    - ``find_transcript``: returns the path of the transcript of an event's session, empty if there is none
    - ``describe_use``, ``describe_result``: return the intended and the actual effects of an event's call on
      files

    - ``has_session_file``: the client writes a file with the messages of a session, or with its usage
    - ``reports_limits``: an event or a line of the transcript reports that a limit ended a turn
    - ``continues_after_limit``: returns whether the client itself wrote an event's prompt, after a limit

    Answers:
    - ``write_answer``: takes an event and its answer in the shared format, and returns the client's answer
    - ``resume_turn``: returns the answer that gives the model a text at the end of its turn
    - ``waits_when_idle``: the hook of a turn's end can stay open until something arrives for the agent
    - ``takes_arguments``: an answer can replace the arguments of a call
    - ``replace_texts``: returns the arguments of an event's call with replaced file texts
    - ``merges_texts``: a text that does not fit the newest version is merged, instead of refused
    - ``allows_changes``: a call with replaced arguments must be explicitly allowed. Only for clients that
      still ask their person in this case, and keep their sandbox

    Evidence:
    - ``tried``: the version of the client with which this was tried
    - ``untried``: what was not tried with it (`watchroom.agents.clients.supervision.Aspect`)
    """

    servers: Table
    environment: Table
    hooks: Table
    events: Mapping[str, int]
    translate_hook: Callable[[Event], tuple[ClientEvent, ...]]
    translate_line: Callable[[Event], tuple[TranscriptEvent, ...]]
    find_transcript: Callable[[Event], str]
    resume_turn: Callable[[str], HookAnswer]
    describe_use: Callable[[Event], ToolUse]
    describe_result: Callable[[Event], ToolEffects]
    waits_when_idle: bool = False
    takes_arguments: bool = False
    replace_texts: Callable[[Event, Sequence[NewText]], Mapping[str, Json]] = lambda event, texts: {}
    allows_changes: bool = False
    needs_status: tuple[str, ...] = ()
    entry_fields: Callable[[str, bool], Mapping[str, Json]] = lambda event, is_strict: {}
    old_files: tuple[str, ...] = ()
    personal: PersonalFile | None = None
    event_names: Mapping[str, str] = {}
    has_session_file: bool = True
    reports_limits: bool = False
    continues_after_limit: Callable[[Event], bool] = lambda event: False
    merges_texts: bool = True
    tried: str = ""
    untried: tuple[str, ...] = ()
    write_line: Callable[[str], str] = lambda line: line
    passes: tuple[str, ...] = ()
    plugin: PluginSupport | None = None
    read_event: Callable[[Event], Event] = lambda event: event
    write_answer: Callable[[Event, HookAnswer], HookAnswer] = lambda event, answer: answer

    @property
    def files(self) -> tuple[str, ...]:
        """The files that can contain entries of Watchroom, JSON before TOML."""
        tables = (self.servers, self.environment, self.hooks)
        names = dict.fromkeys((*(each.file for each in tables if each.file), *self.old_files))
        return tuple(sorted(names, key=lambda name: name.endswith(".toml")))

    def timeout(self, event: str) -> int:
        """Return the client's timeout for a hook that reports ``event``, in seconds."""
        return self.events.get(event, TIMEOUT_SECONDS)


class LaunchParts(NamedTuple):
    """The parts that `watchroom CLIENT` passes to a client.

    - ``servers``: the entry of Watchroom's MCP server, by its name
    - ``environment``: environment variables for the agent's commands
    - ``hooks``: for each event, its groups of hooks
    - ``keep``: takes a text and a file name suffix, stores the text in a private file, and returns its path
    """

    servers: Mapping[str, Json]
    environment: Mapping[str, str]
    hooks: Mapping[str, Json]
    keep: Callable[[str, str], str]


class LaunchWords(NamedTuple):
    """The command line of a client: its arguments, and additional environment variables."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = {}


class LaunchSupport(NamedTuple):
    """Starts a client with hooks that are not in any of its files.

    - ``program``: the name of its program
    - ``title``: its name for people
    - ``install``: the command that installs it
    - ``describe``: takes the parts, and the person's arguments and environment, and returns the command line.
      Raises ValueError with an argument or variable that would turn the hooks off
    - ``plain``: its commands that start no session, separated by blanks. They are not supervised
    - ``batch``: its arguments with which it works on one prompt without a terminal, and ends
    - ``prompt_option``: the option that takes this prompt. Empty: the prompt is a separate word
    - ``needs_attached``: its hooks come only from its own files, so it must be attached first
    - ``opening``: its arguments before the first prompt of a session in a terminal
    - ``fork``: its arguments that continue a copy of a session in the working directory, with `SESSION_WORD`
      for the session's id. Empty if it cannot
    - ``trusts_texts``: it runs a hook only while its person trusts exactly this text, so the text names no
      agent
    """

    program: str
    title: str
    install: str
    describe: Callable[[LaunchParts, Sequence[str], Mapping[str, str]], LaunchWords]
    plain: str = ""
    batch: tuple[str, ...] = ()
    prompt_option: str = ""
    needs_attached: bool = False
    opening: tuple[str, ...] = ("--",)
    fork: tuple[str, ...] = ()
    trusts_texts: bool = False

    def fork_of(self, session: str) -> tuple[str, ...]:
        """Return the arguments that continue a copy of ``session`` in the working directory."""
        return tuple(session if each == SESSION_WORD else each for each in self.fork)

    def begin_with(self, prompt: str) -> tuple[str, ...]:
        """Return the arguments with which the client begins a session in a terminal with ``prompt``."""
        return (*self.opening, prompt)

    def work_on(self, prompt: str, own: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the arguments with which the client works on ``prompt`` and ends. ``own``: the person's."""
        # Even if the prompt looks like an option.
        last = (f"{self.prompt_option}={prompt}",) if self.prompt_option else ("--", prompt)
        return (*self.batch, *own, *last)

    def starts_session(self, arguments: Sequence[str]) -> bool:
        """Return whether the client starts a session with ``arguments``."""
        if len(arguments) == 1 and arguments[0] in _INFORMING:
            return False
        return not arguments or arguments[0] not in self.plain.split()


class AcpSupport(NamedTuple):
    """Runs a client through the Agent Client Protocol.

    - ``command``: the command that starts the client
    - ``mode``: the mode in which it asks before it acts. Empty if its configuration always makes it ask
    - ``no_tools``: the settings for a new session in which the client has no tools of its own. None if it
      always has them
    - ``tool_name``: the path of field names to a tool's name in the report of a call, empty if there is none
    - ``install``: the command that installs it
    - ``registry``: its ids in the ACP registry
    - ``tried``, ``untried``: as for `HookSupport`
    """

    command: tuple[str, ...]
    mode: str = ""
    no_tools: Mapping[str, Json] | None = None
    tool_name: tuple[str, ...] = ()
    install: str = ""
    registry: tuple[str, ...] = ()
    tried: str = ""
    untried: tuple[str, ...] = ()


class ClientAdapter(NamedTuple):
    """A client, with the parts that it supports; None if it does not support a part.

    - ``name``: its name on the command line and in rows
    - ``acp``: the Agent Client Protocol
    - ``hooks``: its hooks
    - ``launch``: its start in a terminal
    - ``provider``: the provider in whose format it calls its model, by OpenTelemetry's name. Empty if it is
      any. The model can be hosted elsewhere.
    """

    name: str
    acp: AcpSupport | None = None
    hooks: HookSupport | None = None
    launch: LaunchSupport | None = None
    provider: str = ""
