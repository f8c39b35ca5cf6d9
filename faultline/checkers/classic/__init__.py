"""The field's classic checkers: each judges one kind of workload by counting rather than by searching.

sets, set_full           a grow-only set: its last read, or the life of each element over all reads
queues, unique_ids       every element that was put in comes out; every identifier is new
counter, bank            sums that must lie within bounds, or never change
long_fork, causal,       shapes of reads that no single order of writes explains
causal_reverse, adya
monotonic, sessions      values and versions that never go back
lock, log                mutual exclusion with fencing tokens; an append-only log with offsets
errors, log_patterns,    facts about the run itself rather than about the data
clocks
compose                  several checkers as one

`shape` reads operations and refuses histories of another shape, `conclusion` turns cases into findings, `words`
describes values and clients. All follow Jepsen's conventions for functions and values, so that its histories can be
checked."""
