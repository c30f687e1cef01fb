"""The past of a workspace: search, exports, comparisons of moments, and proofs that it is unchanged.

Each part is imported separately, and loads no other part: ``search``, ``git``, ``seal`` (tamper evidence),
``fork``, ``verify``, ``report``, ``comparison``, ``export``, and ``queries`` (details for front ends).
"""
