"""Links in alerts: each shows a person one need, and answers one request once.

- `rules.py`: reads the configuration of links, and decides whether a link is valid.
- `rows.py`: the content of a link's row. It has only a checksum of the token.
- `service.py`: `Links` issues links, and finds them. The answer that names a link uses it up.

The pages are in `watchroom.serving.phone`, and `watchroom.features.alerts.links` puts links into alerts.
"""
