"""The journal's rows written as real files, for people, editors and shells.

`layout` computes paths and imports nothing else, so code that only needs a path does not load the rest.
"""
