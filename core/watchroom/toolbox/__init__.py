"""What an agent can call: one definition a tool, from which validation, schemas, docs and dispatch come."""

from watchroom.toolbox.schemas import Format
from watchroom.toolbox.toolbox import Toolbox

__all__ = ["Format", "Toolbox"]
