"""A tool that counts the words of a shared file."""

from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import Name, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

TOOLS = Toolset("collab", texts=__name__)


class CountParams(ParamsModel):
    filepath: Name


class CountResult(ResultModel):
    words: int
    version: int


@TOOLS.tool("count_words", path=("filepath",), reads_only=True)
def count_words(context: ToolContext, params: CountParams) -> CountResult:
    """Count the words of the current version. Errors of the service become refusals for the caller."""
    found = context.zones.collab.read(context.call, params.filepath)
    return CountResult(words=len(found.content.split()), version=found.current)
