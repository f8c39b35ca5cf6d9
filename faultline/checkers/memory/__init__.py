"""Models of memory between linearizability and nothing, which let reads be stale.

`accesses` reads a history of registers as what each client did, in its order. `causality` decides the causal models and
PRAM, `sequential` sequential consistency, and `checker` names the strongest model that holds. `staleness` measures how
stale reads are, in versions and in time."""
