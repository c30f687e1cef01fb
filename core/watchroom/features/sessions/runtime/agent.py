"""The instructions with which an agent decides its next step, one per step."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NamedTuple, Protocol, TypeAlias

from pydantic import Field, TypeAdapter

from watchroom.features.policy.rules import PolicyDecision
from watchroom.features.requests.rows import Option, Policy, Request
from watchroom.features.sessions.runtime.messages import EMPTY_OBJECT, Frozen, FrozenObject, ToolCall
from watchroom.features.sessions.runtime.models.protocol import ModelPayload, ModelRuntime
from watchroom.features.sessions.runtime.state import AgentState, Event, StepResult
from watchroom.model import Json
from watchroom.texts import Language


class CallLlm(Frozen):
    """Ask the model. ``payload``: default all messages and the definitions of the agent's tools."""

    type: Literal["call_llm"] = "call_llm"
    payload: ModelPayload | None = None


class CallTool(Frozen):
    """Run one tool call. ``approved``: a person approved it. The runtime ignores the flag if an agent sets
    it."""

    type: Literal["call_tool"] = "call_tool"
    tool_call: ToolCall
    approved: bool = False


class Finish(Frozen):
    """End the session."""

    type: Literal["finish"] = "finish"
    reason: str = ""


class RequestHumanApprove(Frozen):
    """Ask people to approve or reject these calls. ``timeout``: seconds, default the configuration's
    ``ask_timeout``."""

    type: Literal["request_human_approve"] = "request_human_approve"
    pending_tools_calling: Annotated[tuple[ToolCall, ...], Field(min_length=1)]
    timeout: float | None = None


class RequestHumanPrompt(Frozen):
    """Ask people for a text. If ``metadata`` has a ``tool_call_id``, the answer is the result of that call.
    ``timeout`` as for `RequestHumanApprove`."""

    type: Literal["request_human_prompt"] = "request_human_prompt"
    prompt: str
    metadata: FrozenObject = EMPTY_OBJECT
    timeout: float | None = None


class RequestHumanSelect(Frozen):
    """Ask people to choose an option, or several with ``multi``. ``metadata`` and ``timeout`` as for
    `RequestHumanPrompt`."""

    type: Literal["request_human_select"] = "request_human_select"
    prompt: str = ""
    options: Annotated[tuple[Option, ...], Field(min_length=1)]
    multi: bool = False
    metadata: FrozenObject = EMPTY_OBJECT
    timeout: float | None = None


Instruction: TypeAlias = (
    CallLlm | CallTool | Finish | RequestHumanApprove | RequestHumanPrompt | RequestHumanSelect
)

instructions: Final[TypeAdapter[Instruction]] = TypeAdapter(
    Annotated[Instruction, Field(discriminator="type")]
)
"""Validates an instruction that an agent returns as a mapping."""


_log = logging.getLogger("watchroom")

Executor: TypeAlias = Callable[[Instruction, AgentState], Awaitable[StepResult]]
"""Carries out one kind of instruction."""

ToolFunction: TypeAlias = Callable[[Mapping[str, Json]], "Json | Awaitable[Json]"]
"""A tool that takes a mapping of arguments and returns JSON. If it is not async, it runs in a thread."""


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """The identity of a tool call.

    - ``key``: unique, and the same when the call is repeated after a crash.
    - ``may_have_run``: whether the call was started before and its outcome is unknown.
    - ``approved``: the tool's ``checksum`` of the call as a person approved it, empty if nobody was asked.
    """

    key: str
    may_have_run: bool = False
    approved: str = ""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool for models and the runtime.

    - ``name``, ``definition``: the tool as it is offered to a model, in the ``openai`` dialect.
    - ``run``: receives the arguments and the `CallOrigin`, and returns JSON or an awaitable of JSON.
    - ``repeatable``: whether a call can safely run twice.
    - ``recovers``: whether the tool can find the outcome of an earlier start of the call by the origin's key.
      Such a tool also compares ``CallOrigin.approved`` when it writes, and raises `ApprovalOutdated`.
    - ``writes_as``: the name of a tool with the same effect, whose policy also applies to this one.
    - ``checksum``: returns a checksum of the current data that a call would act on. If it changes after an
      approval, the call is not run and people are asked again. It runs in a thread.
    - ``policy``: returns the decision of the workspace's policy on a call. The tool refuses a call that the
      policy denies. It runs in a thread. Default: the policy decides by the tool's name.
    """

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
    """The additions to the messages for a model: ``tools``, and a view as text (``shown``), empty for
    none."""

    tools: tuple[AgentTool, ...]
    shown: str = ""


class LiveTools(Protocol):
    """Tools that appear and disappear while an agent works, with a view of the data they act on."""

    def snapshot(self) -> LiveToolsSnapshot:
        """Refresh and return the tools and the view. Called in a thread before each request to the model."""
        ...

    def find(self, name: str) -> AgentTool | None:
        """Return the tool ``name``, even if it is not offered now; None if there is none. Must be fast."""
        ...

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        """Return ``content``, a result of ``tool``, in short form, because the model also gets the view.

        ``is_newest``: the model has not answered since the result. Return ``content`` if the tool is not a
        live tool. The result depends only on the arguments. Must be fast.
        """
        ...


class AgentProgram(Protocol):
    """Decides what an agent does next.

    It may also have ``executors`` (by kind of instruction) and a ``model_runtime``, which override the
    configuration. It may have ``policies``. Of these and the configuration's policies, the stricter policy
    applies.
    """

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The agent's tools by name."""
        ...

    def runner(self, state: AgentState) -> Instruction | Awaitable[Instruction]:
        """Return the next instruction for ``state``, or a mapping of its fields. Must have no effect."""
        ...


class CallLedger(Protocol):
    """Records which tool calls have started."""

    async def record_start(self, call: ToolCall, key: str, tool: Tool) -> bool:
        """Record that ``call`` of ``tool`` starts under ``key``. Return whether it may have run before."""
        ...


class BudgetGate(Protocol):
    """Holds calls of an agent whose budget is used up."""

    async def hold_call(self, state: AgentState) -> Request | None:
        """Return the request that people must answer before the next call in ``state``; None for none."""
        ...


DEFAULT_STEPS: Final = 1000
"""The default limit of steps."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits at which a session is stopped. None means no limit.

    - ``steps``: default 1,000. The count restarts when a person resumes the session.
    - ``tokens``: estimated from the length of the texts if the provider does not report them.
    - ``seconds``: working time, without waits for people.
    - ``errors``: consecutive turns in which calls failed and none succeeded, default 5.

    Example::

        config = RuntimeConfig(limits=Limits(steps=200, tokens=500_000, seconds=1800))
    """

    steps: int | None = DEFAULT_STEPS
    tokens: int | None = None
    seconds: float | None = None
    errors: int | None = 5


@dataclass(frozen=True, slots=True)
class Policies:
    """Whether tools may be called: ``always``, ``never``, or only if a person approves (``ask``).

    ``tools``: exceptions from ``default`` by tool name.

    Example::

        Policies(tools={"collab_write": "ask", "run_command": "never"})
    """

    default: Policy = "always"
    tools: Mapping[str, Policy] = field(default_factory=dict)

    def of(self, tool: str) -> Policy:
        """Return the policy for the tool named ``tool``."""
        return self.tools.get(tool, self.default)


ANY_TOOL: Final = Policies()
"""Every tool may be called."""


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """The configuration of a runtime. Everything is optional.

    - ``executors``: replace the built-in executors by kind of instruction.
    - ``model_runtime``, ``policies``, ``limits``: for every agent that runs with this configuration.
    - ``language``: the language of texts for models.
    - ``ask_timeout``: seconds that people have to answer if the agent sets no timeout; None for no limit.
    - ``on_event``: called with each event: streamed text as it arrives, other events when their step ends.
      Custom executors report their own streamed text.
    - ``inline``: write rows on the event loop's thread, for a loop that runs only sessions.
    - ``ledger``, ``gate``, ``decide_policy``, ``clock``: for steps without a `Session`, which sets its own.
      ``decide_policy`` returns the policy's decision on a call, by tool and arguments, if the tool has no
      ``policy``. ``clock`` returns nanoseconds since the epoch.
    """

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
        """Call ``on_event`` with ``event`` if it is set. Its exceptions are logged."""
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:  # noqa: BLE001  # it is logged, and the step goes on
            _log.exception("on_event failed")
