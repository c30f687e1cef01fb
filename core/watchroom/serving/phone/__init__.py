"""Pages with which a person answers single requests from a phone. Links in alerts lead to them.

- `server.py`: the HTTP server on the loopback interface, with its limits. Start with `PhoneServer`.
- `pages.py`: `PhonePages` checks links and answers requests.
- `content.py`: what a page shows of a request.
- `page.py`: the pages as HTML, without scripts and without other resources.
- `limits.py`: how many requests are served, and how many refusals are recorded.
"""
