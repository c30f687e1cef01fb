"""Draw Markdown as lines of a given width. Pure and incremental. No text is read as markup."""
