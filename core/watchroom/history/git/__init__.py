"""Export of a workspace's files to git, and import from git.

exported = export_history(workspace.journal, "team.git")
"""

from watchroom.errors import GitError, GitMissing, InvalidRepository
from watchroom.history.git.branch import Branched, write_branch
from watchroom.history.git.export import Exported, Grouping, LeftOut, export_history
from watchroom.history.git.importing import Imported, Omitted, import_into_task, import_shared
from watchroom.history.git.seal_branch import SealBranch

__all__ = [
    "Branched",
    "Exported",
    "GitError",
    "GitMissing",
    "Grouping",
    "Imported",
    "InvalidRepository",
    "LeftOut",
    "Omitted",
    "SealBranch",
    "export_history",
    "import_into_task",
    "import_shared",
    "write_branch",
]
