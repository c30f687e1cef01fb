"""Full-text search over everything that the journal holds.

The index is ``search.db`` in the workspace's state folder. It may be deleted at any moment. The index of a
workspace on a server is in the checkout's folder, so it has only what this person may read. A background
thread of a process that has the workspace open keeps the index up to date. No commit waits for it, so a
search result says up to which row it covers.

    index = open_index("team/")
    found = index.search(workspace.journal, SearchQuery("数据库 timeout", zone="collab"))
"""

from watchroom.history.search.index import CLAIM, Hit, SearchIndex, SearchResult, open_index
from watchroom.history.search.query import SearchQuery, parse_query

__all__ = ["CLAIM", "Hit", "SearchIndex", "SearchQuery", "SearchResult", "open_index", "parse_query"]
