"""People: who is enrolled with which key and role, and which of their decisions count.

`Person` and `People` in `rows` describe who is enrolled. `rules` lists every effect that a row can have on
protected state, and who can cause it. `decisions` decides whether a row counts: it describes what a person
signs, and checks the signature. `PeopleRegistry` in `service` enrols and revokes people, `DecisionSigning`
signs their rows on the way into the journal, and `SignedSettings` manages the settings of a closed workspace.
`tokens` has the tokens for connections over the network. Start reading at `rules.EFFECT_RULES`, then at
`decisions.find_flaw`.
"""
