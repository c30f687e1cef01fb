"""Races: several agents work on the same prompt, each in a working tree of its own, and a person picks one.

`service.Races` begins a race, records how it goes, and puts away what was not picked. Start reading at
`rows`.
"""
