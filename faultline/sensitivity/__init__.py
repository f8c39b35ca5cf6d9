"""Synthetic anomalies: wrong answers that a buggy store could have given in a run that passed (`harness.sensitivity`).

One module for each kind of object that workloads use; `families` maps workloads to them. Each anomaly changes answers
alone, never requests or their times. The rules:

- A *moment* is when a fault began or ended (`moments`): stores forget at faults. In a run without faults the moment is
  that of the acknowledgement.
- Each acknowledged write, and each answer, is as likely as any other: the probe measures the run, and does not choose
  anomalies that are easy to find.
- `lost-write` is drawn from the acknowledged writes that stood at some moment, that is, were acknowledged before it and
  not overwritten yet; then one of the moments at which it stood is drawn. Operations that begin after the moment are
  answered as if the write had never happened. It counts as inserted even when no client reads it again, and is then not
  shown. But a write that was overwritten before any read is no loss.
- Where one answer alone is wrong (`stale-read`, `fractured-read`, `reordered` …), it is drawn from the answers that can
  be wrong in this way: for `stale-read`, those of operations that began after a newer value had been acknowledged.
- An answer that a workload allows is no anomaly: where only sessions have a promise, an old answer is fine unless the
  session itself knew a newer one.
"""

__all__: list[str] = []
