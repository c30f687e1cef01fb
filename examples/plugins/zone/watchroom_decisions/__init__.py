"""A zone of decisions: numbered files with a title and a status, and a tool that writes the next one."""

import re

from watchroom.features.files.plugin_zones import ZoneWrite
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import Message, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

TOOLS = Toolset("collab", texts=__name__)
STATUSES = ("proposed", "accepted", "replaced")


def check_decision(write: ZoneWrite) -> None:
    """Refuse a write that is not a decision."""
    if not re.fullmatch(r"\d{4}\.md", write.path):
        raise ValueError("the name of a decision is a number such as 0007.md")
    status = re.search(r"\A# .+\n\nStatus: (\w+)\n", write.content)
    if status is None or status[1] not in STATUSES:
        raise ValueError(f"it must begin with '# TITLE', an empty line, and 'Status: {'|'.join(STATUSES)}'")
    if status[1] == "accepted" and not write.actor.startswith("human:"):
        raise ValueError("only people accept a decision")


class ProposeParams(ParamsModel):
    subject: Message
    content: str


class ProposeResult(ResultModel):
    filepath: str


@TOOLS.tool("propose_decision")
def propose_decision(context: ToolContext, params: ProposeParams) -> ProposeResult:
    """Write the next decision. If another agent takes its number first, this is a conflict."""
    files = context.zones.collab.files(context.call)
    number = sum(row.path.startswith("decisions/") for row in files) + 1
    path = f"decisions/{number:04}.md"
    content = f"# {params.subject}\n\nStatus: proposed\n\n{params.content}\n"
    context.zones.collab.write(context.call, path, content, 0, message=params.subject)
    return ProposeResult(filepath=path)
