"""Workers, companions and an oracle for the torture of a workspace."""
