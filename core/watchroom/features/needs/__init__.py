"""Needs: items that wait for a person, such as a conflict, a question, a lost process or an unread handoff.

`rules.py` decides which row opens which kind of need, and which answers close it. `damage.py` finds rows that
cannot be read. `Acknowledgements` in `service.py` records which needs people have seen. `tools.py` has the
tool for people. The dashboard's list of open needs is in `watchroom.features.overview.needs`. Start with
`need_opened_by` in `rules.py`.
"""
