"""The journal's rows laid out as real files, for people, editors and shells.

`layout` says where, and needs nothing: whoever only has to know a path does not load the rest.
"""
