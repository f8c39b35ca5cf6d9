"""Generators: what clients and the nemesis do next, as immutable values.

**Why an algebra.** A test has to say "writes and reads, mixed one to one, half a millisecond apart, on keys that change
every forty operations, by five clients of which two only read; for a minute; then wait until all is quiet, then
each client reads everything". As a loop with threads and a random number generator that is a page of code that cannot
be tested. As a value it is an expression:

    per_key = lambda key: limit(40, mix(reads(key), writes(key)))
    phases(
        time_limit(60_000_000, stagger(500, independent(per_key, groups=2))),
        each_thread(final_reads),
    )

A millisecond of `simulate(generator, workers=5)` shows its behaviour, with imaginary clients and no cluster.
Jepsen's generators (jepsen.generator, by Kyle Kingsbury) showed the way; the names and most meanings are theirs.

**Two functions.** `op(context)` offers the next operation and the generator that follows it, `update(context, event)`
tells a generator how an operation ended. Neither changes anything: a caller that asked, and then saw another event
first, drops the offer and asks again. `core` has the exact contract.

**Time is in the offer.** A draft says when it may start at the earliest; a pending answer says when to ask again. The
caller never polls: it sleeps until that time or the next completion.

**Chance is in the context.** Draws are pure functions of (seed, operations so far, salt of the combinator), see
`chance`. A combinator that draws hands its children another chance, so that `mix(a, mix(b, c))` reaches b and c alike.

**Meanings.**

| combinator | the operations it emits |
|---|---|
| `emit`, `fault` | one operation, once; one fault, for the nemesis |
| `function`, `unfold` | those that a pure function makes, without and with a state |
| `sequence`, `cycle` | one generator after another; one again and again |
| `phases`, `synchronize` | with a barrier: not before every worker is free |
| `mix`, `flip_flop`, `any_of` | drawn; in turn; the first that is due |
| `limit`, `once`, `time_limit`, `until_ok` | up to a number, a time, a success of its own |
| `stagger`, `sleep` | drawn distances apart; nothing for a while |
| `on_workers`, `clients`, `nemesis`, `split` | by some workers only |
| `reserve`, `each_thread` | different generators for different workers; a copy for each |
| `independent` | one key after another, groups of workers on keys of their own |
| `map_operations` | changed on the way |
| `scheduled` | those of a plan |

**Where it differs from Jepsen on purpose.** `mix` and `flip_flop` pass events on and never wait for a pending child
while another has something due. `reserve` counts among the workers that its parent left it, so it nests. `function`
ends when its generator is empty from the start, instead of calling again for ever. There are no events for invocations.
Workers are bit masks rather than sets, because a set would be the slowest part of a run and its order the least
predictable.

**Limits.** A draft for the future holds only until the next event: a completion that comes first may replace it by
another. `time_limit` counts from the first operation. Durations are integers of microseconds."""

from faultline.harness.generator.bounds import limit, once, time_limit, until_ok
from faultline.harness.generator.choice import any_of, flip_flop, mix
from faultline.harness.generator.core import EMPTY, FOREVER, PENDING, Context, Draft, Event, Generator, Offer, Pending
from faultline.harness.generator.independent import independent
from faultline.harness.generator.leaves import emit, fault, function, sleep, unfold
from faultline.harness.generator.order import cycle, phases, sequence, synchronize
from faultline.harness.generator.pace import stagger
from faultline.harness.generator.scheduled import scheduled
from faultline.harness.generator.simulate import (
    SimulatedEvent,
    all_info,
    mixed,
    perfect,
    planned_faults,
    planned_operations,
    simulate,
)
from faultline.harness.generator.threads import clients, each_thread, nemesis, on_workers, reserve, split
from faultline.harness.generator.transform import map_operations

__all__ = [
    "EMPTY",
    "FOREVER",
    "PENDING",
    "Context",
    "Draft",
    "Event",
    "Generator",
    "Offer",
    "Pending",
    "SimulatedEvent",
    "all_info",
    "any_of",
    "clients",
    "cycle",
    "each_thread",
    "emit",
    "fault",
    "flip_flop",
    "function",
    "independent",
    "limit",
    "map_operations",
    "mix",
    "mixed",
    "nemesis",
    "on_workers",
    "once",
    "perfect",
    "phases",
    "planned_faults",
    "planned_operations",
    "reserve",
    "scheduled",
    "sequence",
    "simulate",
    "sleep",
    "split",
    "stagger",
    "synchronize",
    "time_limit",
    "unfold",
    "until_ok",
]
