"""Needs: what waits for a person, such as a conflict, a question, a lost process or an unread handoff.

`rules.py` decides which row opens which kind of need, and what deals with it. `damage.py` finds rows that
cannot be read. `Acknowledgements` in `service.py` records which needs people have seen. `tools.py` offers
that to people. The dashboard's list of open needs is made in `watchroom.features.overview.needs`. Start with
`need_opened_by` in `rules.py`.
"""
