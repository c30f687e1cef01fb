"""Full-text search over all texts in the journal.

The index is ``search.db`` in the workspace's state folder. It may be deleted at any moment. The index of a
workspace on a server is in the checkout's folder, so it has only texts that this person may read. A
background thread of a process with the open workspace keeps the index up to date. No commit waits for it, so
a search result contains the last row that it covers.

    index = open_index("team/")
    found = index.search(workspace.journal, SearchQuery("数据库 timeout", zone="collab"))
"""

from watchroom.history.search.index import CLAIM, Hit, SearchIndex, SearchResult, open_index
from watchroom.history.search.query import SearchQuery, parse_query

__all__ = ["CLAIM", "Hit", "SearchIndex", "SearchQuery", "SearchResult", "open_index", "parse_query"]
