"""Races: several agents work on the same prompt, each in a working tree of its own, and a person picks one.

`service.Races` begins a race, records its progress, and stores the work that was not picked. Start reading at
`rows`.
"""
