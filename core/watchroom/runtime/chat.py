"""The agent that most people want: a model that calls tools until it has nothing left to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue

from watchroom.model import Json
from watchroom.requests import Option, arguments_of
from watchroom.runtime.agent import ANY_TOOL, AgentTool, CallOrigin, Policies, Tool
from watchroom.runtime.instructions import (
    CallLlm,
    CallTool,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
)
from watchroom.runtime.messages import SystemMessage, ToolCall
from watchroom.runtime.models.protocol import ModelPayload, ModelRuntime
from watchroom.runtime.state import AgentState
from watchroom.texts import Language, catalogue

ASK_PERSON: Final = "ask_person"
"""The tool by which a model asks a person: for a text, or for a choice of ``options``."""


class ChatAgent:
    """Asks its model, runs the calls that the model wants, and so on, until it answers without a call.

    Calls whose policy is ``ask`` wait for a person, all of one turn together, after those that may run.
    With ``asks`` the model has the tool `ASK_PERSON` as well. ``system`` is said before the session's
    messages, and is not one of them. ``model`` and ``options`` go along as in `ModelPayload`.
    """

    def __init__(
        self,
        tools: Iterable[AgentTool] | Mapping[str, Tool] = (),
        *,
        model_runtime: ModelRuntime | None = None,
        system: str = "",
        model: str = "",
        options: Mapping[str, JsonValue] | None = None,
        policies: Policies = ANY_TOOL,
        asks: bool = False,
        language: Language = "en",
    ) -> None:
        given = tools if isinstance(tools, Mapping) else {tool.name: tool for tool in tools}
        own: Mapping[str, Tool] = {ASK_PERSON: _ask_person(language)} if asks else {}
        self.tools: Mapping[str, Tool] = {**given, **own}
        self.model_runtime = model_runtime
        self.policies = policies
        self._system = (SystemMessage(content=system),) if system else ()
        self._model = model
        self._options = options or {}
        self._definitions = tuple(
            tool.definition
            for name, tool in self.tools.items()
            if isinstance(tool, AgentTool) and tool.definition and policies.of(name) != "never"
        )

    def runner(self, state: AgentState) -> Instruction:
        calls = state.open_calls
        if calls:
            return self._next_of(calls)
        if state.said_last == "assistant":
            return Finish(reason="answered")
        return CallLlm.model_construct(
            type="call_llm",
            payload=ModelPayload.model_construct(
                messages=(*self._system, *state.messages),
                tools=self._definitions,
                model=self._model,
                options=self._options,
            ),
        )

    def _next_of(self, calls: tuple[ToolCall, ...]) -> Instruction:
        questions = [call for call in calls if self._is_question(call)]
        others = [call for call in calls if call not in questions]
        for call in others:
            if self.policies.of(call.function.name) != "ask":
                return CallTool(tool_call=call)
        return RequestHumanApprove(pending_tools_calling=tuple(others)) if others else _question(questions[0])

    def _is_question(self, call: ToolCall) -> bool:
        """Whether a person is asked something, which needs no approval."""
        if call.function.name != ASK_PERSON or self.policies.of(ASK_PERSON) == "never":
            return False
        return isinstance(arguments_of(call.function.arguments).get("question"), str)


def _question(call: ToolCall) -> Instruction:
    given = arguments_of(call.function.arguments)
    prompt = str(given["question"])
    about = {"tool_call_id": call.id}
    offered = given.get("options")
    options = tuple(Option(str(each), str(each)) for each in offered) if isinstance(offered, list) else ()
    if not options:
        return RequestHumanPrompt(prompt=prompt, metadata=about)
    several = given.get("several") is True
    return RequestHumanSelect(prompt=prompt, options=options, multi=several, metadata=about)


def _ask_person(language: Language) -> AgentTool:
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
