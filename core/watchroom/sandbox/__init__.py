"""Task workspaces and what runs in them (spec 2): files beneath one folder, and nothing outside it."""
