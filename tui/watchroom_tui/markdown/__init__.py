"""Markdown as lines of a given width. Pure and incremental. Texts are never interpreted as markup of the
screen."""
