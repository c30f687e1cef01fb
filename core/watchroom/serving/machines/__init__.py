"""Machines: the agents and needs of workspaces on other machines, through ssh.

The near end (`connection`) starts ``watchroom machine serve`` on the other machine, which is the far end
(`far_end`). Both speak lines of JSON (`messages`) over the standard input and output of ssh.
"""
