"""People: their enrolments with keys and roles, and the rules for which of their decisions count.

`Person` and `People` in `rows` describe the enrolled people. `rules` lists every effect that a row can have
on protected state, and who can cause it. `decisions` decides whether a row counts: it describes what a person
signs, and checks the signature. `PeopleRegistry` in `service` enrols and revokes people. `DecisionSigning`
signs their rows on the way into the journal. `SignedSettings` manages the settings of a closed workspace.
`tokens` manages the tokens for connections over the network. Start reading at `rules.EFFECT_RULES`, then at
`decisions.find_flaw`.
"""
