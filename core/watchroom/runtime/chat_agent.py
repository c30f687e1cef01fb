"""The agent for most purposes: a model that calls tools until it has nothing left to do."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from typing import Final, TypeGuard

from pydantic import JsonValue

from watchroom import validation
from watchroom.model import Json
from watchroom.rules.requests import Option, parse_arguments
from watchroom.runtime.agent import ANY_TOOL, AgentTool, CallOrigin, LiveTools, Policies, Tool
from watchroom.runtime.errors import InvalidTool
from watchroom.runtime.instructions import (
    CallLlm,
    CallTool,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
)
from watchroom.runtime.message_condenser import MessageCondenser
from watchroom.runtime.messages import SystemMessage, ToolCall, UserMessage
from watchroom.runtime.models.protocol import ModelPayload, ModelRuntime
from watchroom.runtime.state import AgentState
from watchroom.runtime.threads import run_in_thread
from watchroom.runtime.tools import checked_tools
from watchroom.texts import Language, catalogue

ASK_PERSON: Final = "ask_person"
"""The tool by which a model asks a person: for a text, or for a choice of ``options``."""


_MISSPELT: Final = 0.9
"""Two names that are at least so similar (0 to 1) are meant to be one."""


class ChatAgent:
    """Asks its model, runs the calls that the model wants, and so on, until it answers without a call.

    ``tools`` are what the model is offered: `watchroom.runtime.tool` makes them from functions.
    ``model_runtime`` is the model; None leaves it to the `RuntimeConfig`. ``system`` is sent before the
    session's messages and is not one of them; ``model`` and ``options`` are passed on as in `ModelPayload`.
    ``policies`` say which calls need a person: those wait together, after those that may run. With ``asks``
    the model also has the tool `ASK_PERSON`. What ``live`` shows is sent after the messages; its tools take
    precedence over others of their name, and their earlier results are sent in short form. ``language`` is
    that of texts for the model.

    Raises `InvalidTool` for a tool that a model cannot be offered, and for a policy under the misspelt name
    of a tool.

        policies = Policies(tools={"send_invoice": "ask"})
        agent = ChatAgent([send_invoice], model_runtime=model, policies=policies)
        async with workspace.sessions.begin("alice", agent, messages=messages) as session:
            state = await session.run()
    """

    def __init__(
        self,
        tools: Iterable[AgentTool] | Mapping[str, AgentTool] = (),
        *,
        model_runtime: ModelRuntime | None = None,
        system: str = "",
        model: str = "",
        options: Mapping[str, JsonValue] | None = None,
        policies: Policies = ANY_TOOL,
        asks: bool = False,
        live: LiveTools | None = None,
        language: Language = "en",
    ) -> None:
        own = {ASK_PERSON: _build_ask_person(language)} if asks else {}
        fixed: Mapping[str, AgentTool] = {**checked_tools(tools), **own}
        _check_policies(policies, fixed, live)
        self.tools: Mapping[str, Tool] = fixed if live is None else _WithLive(fixed, live)
        self._live = live
        self._condenser = None if live is None else MessageCondenser(live)
        self.model_runtime = model_runtime
        self.policies = policies
        self._system = (SystemMessage(content=system),) if system else ()
        self._model = model
        self._options = options or {}
        self._definitions = tuple(
            tool.definition
            for name, tool in fixed.items()
            if self._is_offered(tool, name) and not (live is not None and live.find(name))
        )

    def runner(self, state: AgentState) -> Instruction | Awaitable[Instruction]:
        """The next instruction for ``state``: its open calls, or an answer of the model, or the end."""
        calls = state.open_calls
        if calls:
            return self._next_call(calls)
        if state.said_last == "assistant":
            return Finish(reason="answered")
        return self._ask_model(state) if self._live is None else self._ask_model_with_view(state, self._live)

    async def _ask_model_with_view(self, state: AgentState, live: LiveTools) -> Instruction:
        snapshot = await run_in_thread(live.snapshot)
        tools = tuple(tool.definition for tool in snapshot.tools if self._is_offered(tool, tool.name))
        return self._ask_model(state, tools, snapshot.shown)

    def _ask_model(
        self, state: AgentState, tools: tuple[Mapping[str, Json], ...] = (), shown: str = ""
    ) -> Instruction:
        view = (UserMessage(content=shown),) if shown else ()
        said = state.messages if self._condenser is None else self._condenser.messages(state)
        return CallLlm.model_construct(
            type="call_llm",
            payload=ModelPayload.model_construct(
                messages=(*self._system, *said, *view),
                tools=(*self._definitions, *tools),
                model=self._model,
                options=self._options,
            ),
        )

    def _is_offered(self, tool: Tool, name: str) -> TypeGuard[AgentTool]:
        if not isinstance(tool, AgentTool) or not tool.definition:
            return False
        return "never" not in (self.policies.of(name), self.policies.of(tool.writes_as or name))

    def _next_call(self, calls: tuple[ToolCall, ...]) -> Instruction:
        questions = [call for call in calls if self._is_question(call)]
        others = [call for call in calls if call not in questions]
        for call in others:
            if self.policies.of(call.function.name) != "ask":
                return CallTool(tool_call=call)
        return (
            RequestHumanApprove(pending_tools_calling=tuple(others))
            if others
            else _build_question(questions[0])
        )

    def _is_question(self, call: ToolCall) -> bool:
        """Whether a person is asked something, which needs no approval."""
        if call.function.name != ASK_PERSON or self.policies.of(ASK_PERSON) == "never":
            return False
        return isinstance(parse_arguments(call.function.arguments).get("question"), str)


def _check_policies(policies: Policies, tools: Mapping[str, AgentTool], live: LiveTools | None) -> None:
    """Raises `InvalidTool` for a policy whose name is almost that of a tool. Other unknown names may be those
    of live tools, or of tools that another agent with the same policies has."""
    for name in policies.tools:
        if name in tools or (live is not None and live.find(name) is not None):
            continue
        from difflib import get_close_matches

        if get_close_matches(name, tools, n=1, cutoff=_MISSPELT):
            raise InvalidTool(tool=validation.escape_unstorable(name, 100), rule="policy_misspelt")


class _WithLive(Mapping[str, Tool]):
    """An agent's tools by name, those that come and go among them."""

    def __init__(self, fixed: Mapping[str, Tool], live: LiveTools) -> None:
        self._fixed = fixed
        self._live = live

    def __getitem__(self, name: str) -> Tool:
        found = self._live.find(name)
        return self._fixed[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


def _build_question(call: ToolCall) -> Instruction:
    given = parse_arguments(call.function.arguments)
    prompt = str(given["question"])
    about = {"tool_call_id": call.id}
    offered = given.get("options")
    options = tuple(Option(str(each), str(each)) for each in offered) if isinstance(offered, list) else ()
    if not options:
        return RequestHumanPrompt(prompt=prompt, metadata=about)
    several = given.get("several") is True
    return RequestHumanSelect(prompt=prompt, options=options, multi=several, metadata=about)


def _build_ask_person(language: Language) -> AgentTool:
    texts = catalogue(language)
    shape: dict[str, Json] = {
        "question": {"type": "string", "description": texts("ask_person.question")},
        "options": {
            "type": ["array", "null"],
            "items": {"type": "string"},
            "description": texts("ask_person.options"),
        },
        "several": {"type": ["boolean", "null"], "description": texts("ask_person.several")},
    }
    function: dict[str, Json] = {
        "name": ASK_PERSON,
        "description": texts("ask_person.description"),
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": shape,
            "required": list(shape),
            "additionalProperties": False,
        },
    }

    def lacks_question(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
        return {"success": False, "error": "invalid_arguments", "message": texts("ask_person.question")}

    return AgentTool(ASK_PERSON, lacks_question, {"type": "function", "function": function}, repeatable=True)
