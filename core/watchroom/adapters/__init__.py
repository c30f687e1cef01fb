"""The toolbox as other frameworks take it. Each module needs its own framework only."""
