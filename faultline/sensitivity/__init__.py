"""Synthetic anomalies: wrong answers that a buggy store could have given in a run that passed (`harness.sensitivity`).

One module for each kind of object that workloads use; `families` says which workload has which. Each anomaly changes
answers alone, never what was asked, or when. The rules:

- A *moment* is when a fault began or ended (`moments`): it is at faults that stores forget. In a run without faults the
  moment is that of the acknowledgement.
- Each acknowledged write is as likely as any other, and each answer: what the run would have found is asked, not what
  is easy to find.
- `lost-write` is drawn from the acknowledged writes that stood at some moment, that is, were acknowledged before it and
  not overwritten yet; then one of the moments at which it stood is drawn. Operations that begin after the moment are
  answered as if it had never been. Whether anybody asks is not looked at: what is lost and never read again counts as
  inserted, and not as shown. But what was overwritten before anybody asked is no loss.
- Where one answer alone is wrong (`stale-read`, `fractured-read`, `reordered` …), it is drawn from the answers that can
  be wrong in this way: for `stale-read`, those of operations that began after a newer value had been acknowledged.
- What a workload allows is no anomaly of it: an old answer is none where only sessions are promised something, unless
  the session itself knew better.
"""

__all__: list[str] = []
