"""Full-text search over all that the journal holds, by an index that may be deleted at any moment.

The index is ``search.db`` in the workspace's state folder: of a workspace on a server the folder of the
checkout, so that it holds what this person may read. A thread of a process that has the workspace open keeps
it, off the way of commits, so a search may be behind, and says up to which row it is not.

    index = open_index("team/")
    found = index.search(workspace.journal, SearchQuery("数据库 timeout", zone="collab"))
"""

from watchroom.search.index import CLAIM, SearchIndex, open_index
from watchroom.search.query import SearchQuery, parse_query
from watchroom.search.result import Hit, SearchResult

__all__ = ["CLAIM", "Hit", "SearchIndex", "SearchQuery", "SearchResult", "open_index", "parse_query"]
