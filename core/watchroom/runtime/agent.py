"""What the runtime needs of an agent, its tools and its configuration."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from watchroom.model import Json
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.requests import Policy, Request
from watchroom.runtime.instructions import Instruction
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.models.protocol import ModelRuntime
from watchroom.runtime.state import AgentState, Event, StepResult
from watchroom.texts import Language

_log = logging.getLogger("watchroom")

Executor: TypeAlias = Callable[[Instruction, AgentState], Awaitable[StepResult]]
"""Carries out one kind of instruction."""

ToolFunction: TypeAlias = Callable[[Mapping[str, Json]], "Json | Awaitable[Json]"]
"""A tool: takes the arguments by name, gives a result that is JSON. One that is not async runs in a
thread."""


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """The identity of a tool call. ``key`` is unique to it and stays the same when the call is tried again
    after a crash; ``may_have_run``: it was started before, and its outcome is unknown. ``approved`` is the
    tool's ``checksum`` of the call as a person approved it, empty where nobody was asked."""

    key: str
    may_have_run: bool = False
    approved: str = ""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool as models and the runtime know it.

    ``name`` and ``definition`` (in the ``openai`` dialect) are what a model is offered. ``run`` gets the
    arguments and the call's `CallOrigin`; it returns JSON, or an awaitable of it. ``repeatable``: running a
    call twice does no harm. A tool that ``recovers`` finds out by the origin's key what became of a call that
    was started before. ``writes_as`` names a tool with the same effect: its policy holds for this one, too.

    ``checksum`` returns, for a call's arguments, a checksum of what the call would act on now. An approval
    holds only while that stays the same: otherwise the call is not run, and people are asked again. It runs
    in a thread. A tool that ``recovers`` compares it with ``CallOrigin.approved`` itself when it writes, and
    raises `ApprovalOutdated`.

    ``policy`` returns, for a call's arguments, what the workspace's policy says of the call; the tool itself
    refuses what that denies. It runs in a thread. A tool without one is asked about by its name."""

    name: str
    run: Callable[[Mapping[str, Json], CallOrigin], Json | Awaitable[Json]]
    definition: Mapping[str, Json] = field(default_factory=dict)
    repeatable: bool = False
    recovers: bool = False
    writes_as: str = ""
    checksum: Callable[[Mapping[str, Json]], str] | None = None
    policy: Callable[[Mapping[str, Json]], PolicyDecision] | None = None


Tool: TypeAlias = AgentTool | ToolFunction


class LiveToolsSnapshot(NamedTuple):
    """What a model is given beside its messages at one moment: ``tools``, and the text ``shown``, empty for
    nothing."""

    tools: tuple[AgentTool, ...]
    shown: str = ""


class LiveTools(Protocol):
    """Tools that come and go while an agent works, with a view of what they act on."""

    def snapshot(self) -> LiveToolsSnapshot:
        """Bring everything up to date; returns the tools and the view. Called in a thread before each
        question to the model; may take a while."""
        ...

    def find(self, name: str) -> AgentTool | None:
        """The tool ``name``, offered now or not; None where it can be none of these. Must be quick."""
        ...

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        """The short form of ``content``, that of a `ToolMessage` with the result of ``tool``, for the model
        beside the view of `snapshot`; ``is_newest``: the model has not answered since. Returns the same for
        the same arguments, and ``content`` where the tool is none of these. Must be quick."""
        ...


class AgentProgram(Protocol):
    """Decides what to do next. It may also have ``executors`` (by kind of instruction) and a
    ``model_runtime``, which take precedence over those of the configuration, and ``policies``: of these and
    those of the configuration the stricter one holds."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The agent's tools by name."""
        ...

    def runner(self, state: AgentState) -> Instruction | Awaitable[Instruction]:
        """The next instruction for ``state``, or a mapping of its fields. It must not change anything."""
        ...


class CallLedger(Protocol):
    """Records which tool calls have started."""

    async def record_start(self, call: ToolCall, key: str, tool: Tool) -> bool:
        """Record that ``call`` of ``tool`` starts under ``key``; returns whether it may have run before."""
        ...


class BudgetGate(Protocol):
    """Knows which budgets are used up."""

    async def hold_call(self, state: AgentState) -> Request | None:
        """What people have to decide before the next call in ``state`` may be made; None where it may."""
        ...


DEFAULT_STEPS: Final = 1000
"""The limit of steps by default."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a session is stopped: after so many ``steps`` (counted anew each time that a person lets it go
    on), ``tokens``, ``seconds`` of work (waiting for people does not count), or turns in a row in which calls
    failed and none succeeded (``errors``). None is no limit. Tokens that a provider does not report are
    estimated from the length of the texts.

        config = RuntimeConfig(limits=Limits(steps=200, tokens=500_000, seconds=1800))
    """

    steps: int | None = DEFAULT_STEPS
    tokens: int | None = None
    seconds: float | None = None
    errors: int | None = 5


@dataclass(frozen=True, slots=True)
class Policies:
    """Which tools may be called: ``always``, ``never``, or when a person approves (``ask``). ``tools`` are
    exceptions from ``default``, by tool name.

        Policies(tools={"collab_write": "ask", "run_command": "never"})
    """

    default: Policy = "always"
    tools: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, tool: str) -> Policy:
        """The policy for the tool named ``tool``."""
        return self.tools.get(tool, self.default)


ANY_TOOL: Final = Policies()
"""Every tool may be called."""


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """How a runtime is set up; everything is optional.

    ``executors`` replace the built-in ones by kind of instruction. ``model_runtime``, ``policies`` and
    ``limits`` hold for every agent that is run with it. ``language`` is that of texts for models.
    ``ask_timeout``: seconds that a person has to answer where the agent sets none; None: no limit.
    ``on_event`` is called with each event: with a model's words as they arrive, with the others when their
    step ends (an executor of your own reports what it streams itself). ``ledger`` and ``gate``, which holds
    calls over a budget, are for steps without a `Session`: a session brings its own. ``inline``: a session
    writes its rows on the event loop's own thread, for a loop that runs sessions and nothing else.
    ``decide_policy`` returns what the workspace's policy says of a call of a tool, by its name and arguments,
    where the tool does not say it itself: a session has that of its workspace. ``clock`` gives nanoseconds
    since the epoch: a session has that of its journal."""

    executors: Mapping[str, Executor] = field(default_factory=dict)
    model_runtime: ModelRuntime | None = None
    policies: Policies = ANY_TOOL
    limits: Limits = Limits()
    language: Language = "en"
    ask_timeout: float | None = None
    on_event: Callable[[Event], None] | None = None
    ledger: CallLedger | None = None
    gate: BudgetGate | None = None
    inline: bool = False
    decide_policy: Callable[[str, Mapping[str, Json]], PolicyDecision] | None = None
    clock: Callable[[], int] = time.time_ns

    def notify(self, event: Event) -> None:
        """Call ``on_event`` with ``event``, if it is set. What it raises is logged and ignored."""
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:  # noqa: BLE001  # it is logged, and the step goes on
            _log.exception("on_event failed")
