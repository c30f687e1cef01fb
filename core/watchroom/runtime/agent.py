"""What an agent is to the runtime: something that decides, with tools; and how a runtime may be set up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from watchroom.model import Json
from watchroom.rules.requests import Policy
from watchroom.runtime.events import Event
from watchroom.runtime.instructions import Instruction
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.models.protocol import ModelRuntime
from watchroom.runtime.state import AgentState, StepResult
from watchroom.texts import Language

Executor: TypeAlias = Callable[[Instruction, AgentState], Awaitable[StepResult]]
"""Carries out one kind of instruction."""

ToolFunction: TypeAlias = Callable[[Mapping[str, Json]], "Json | Awaitable[Json]"]
"""A tool: takes the arguments by name, gives a result that is JSON. One that is not async runs in a
thread."""


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Where a call comes from. ``key`` is unique to it and the same when it is tried again after a crash;
    ``may_have_run``: it was begun before, and nobody knows how far it got. ``approved`` is the tool's
    ``checksum`` of the call as a person approved of it, empty where nobody was asked."""

    key: str
    may_have_run: bool = False
    approved: str = ""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool with what a model and the runtime should know of it.

    ``definition`` is in the ``openai`` dialect. ``repeatable`` says that running a call twice does no harm.
    ``run`` gets the call's origin; a tool that ``recovers`` finds out by its key what became of a call that
    was begun before. ``writes_as`` names a tool that does the same by another way: what is said of that one
    by a policy holds for this one, too.

    ``checksum`` gives, for a call's arguments, a checksum of what the call would act on as things stand. An
    approval holds only as long as that is the same: else the call is not made, and people are asked again. It
    runs in a thread. A tool that ``recovers`` compares it with ``CallOrigin.approved`` itself, at the moment
    of its writing, and raises `ApprovalOutdated`.
    """

    name: str
    run: Callable[[Mapping[str, Json], CallOrigin], Json | Awaitable[Json]]
    definition: Mapping[str, Json] = field(default_factory=dict)
    repeatable: bool = False
    recovers: bool = False
    writes_as: str = ""
    checksum: Callable[[Mapping[str, Json]], str] | None = None


Tool: TypeAlias = AgentTool | ToolFunction


class Look(NamedTuple):
    """What a model has at one moment beside its messages: tools, and what it is shown, empty for nothing."""

    tools: tuple[AgentTool, ...]
    shown: str = ""


class LiveTools(Protocol):
    """Tools that come and go while an agent works, with a view of what they act on."""

    def look(self) -> Look:
        """Bring everything up to date, and show it. Called in a thread, before each question to the model:
        it may take a while."""
        ...

    def find(self, name: str) -> AgentTool | None:
        """The tool of that name, offered just now or not; None where it can be none of these. Quick."""
        ...

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        """How the ``content`` of a `ToolMessage` that ``tool`` gave goes to the model beside what `look`
        shows; ``is_newest``: the model has not answered since. The same for the same arguments, and as it
        is where the tool is none of these. Quick."""
        ...


class Agent(Protocol):
    """Decides what to do next. It may also have ``executors`` (by kind of instruction) and a
    ``model_runtime``, which go before those of the configuration, and ``policies``: of these and those of
    the configuration the stricter holds."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """By name."""
        ...

    def runner(self, state: AgentState) -> Instruction | Awaitable[Instruction]:
        """The next instruction, or a mapping of its fields. It must not change anything."""
        ...


@runtime_checkable
class WithExecutors(Protocol):
    @property
    def executors(self) -> Mapping[str, Executor]: ...


@runtime_checkable
class WithModel(Protocol):
    @property
    def model_runtime(self) -> ModelRuntime | None: ...


@runtime_checkable
class WithPolicies(Protocol):
    @property
    def policies(self) -> Policies: ...


class Ledger(Protocol):
    """Knows which tool calls have begun."""

    async def begins(self, call: ToolCall, key: str, tool: Tool) -> bool:
        """Note that the call begins now; whether it may have run before."""
        ...


DEFAULT_STEPS: Final = 1000
"""So many steps a session may take where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session is stopped: after so many steps (anew each time that a person lets it go on), tokens,
    seconds of work (waiting for people does not count), or turns in a row in which calls failed and none
    succeeded. None is no limit. Tokens that a provider does not report are estimated from the length of the
    texts."""

    steps: int | None = DEFAULT_STEPS
    tokens: int | None = None
    seconds: float | None = None
    errors: int | None = 5


@dataclass(frozen=True, slots=True)
class Policies:
    """Which tools may be called: always, never, or when a person approves. ``tools`` are the exceptions."""

    default: Policy = "always"
    tools: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, tool: str) -> Policy:
        """The policy for the tool of that name."""
        return self.tools.get(tool, self.default)


ANY_TOOL: Final = Policies()
"""Every tool may be called."""


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """How a runtime is set up; everything may be left out.

    ``on_event`` hears of each event: of a model's words as they come, of the others as their step ends. (An
    executor of your own tells of what it streams itself.) ``ask_timeout``: seconds that a person has to
    answer, where the agent sets none; None: as long as it takes. ``language`` is that of what models are
    told. ``ledger`` is for steps without a `Session`: a session brings its own. ``inline``: a session
    writes its rows on the event loop's own thread; for a loop that serves sessions alone, whose rows then
    cost no turn of another thread.
    """

    executors: Mapping[str, Executor] = field(default_factory=dict)
    model_runtime: ModelRuntime | None = None
    policies: Policies = ANY_TOOL
    limits: Limits = Limits()
    language: Language = "en"
    ask_timeout: float | None = None
    on_event: Callable[[Event], None] | None = None
    ledger: Ledger | None = None
    inline: bool = False
