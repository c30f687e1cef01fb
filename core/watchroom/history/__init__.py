"""The past of a workspace: searching it, writing it out, comparing moments of it, and proving it unchanged.

Each part is imported on its own, and loads nothing else: ``search``, ``git``, ``seal`` (tamper evidence),
``fork``, ``verify``, ``report``, ``comparison``, ``export``, and ``queries`` (details for front ends).
"""
