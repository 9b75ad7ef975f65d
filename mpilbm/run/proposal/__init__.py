"""Proposals: cells, time step, collision and walls for a flow given in SI, with cost and accuracy.

`mpilbm new --template external` and `internal` write one as a case; `mpilbm check` compares a case
with [units] with it. Both use the rules of `scheme`, the figures of `accuracy` and the costs of
`costs`.
"""
