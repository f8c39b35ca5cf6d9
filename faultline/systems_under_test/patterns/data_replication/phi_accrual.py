"""Phi accrual failure detector: the suspicion of a silence, judged by the regularity of earlier heartbeats.

*Problem.* A short fixed timeout accuses healthy servers on a busy network, and a long one finds a dead server late. The
right length depends on the real arrival of heartbeats, which changes.

*Idea.* Keep the last intervals between heartbeats, and treat them as a sample of a normal distribution. The suspicion
after a silence of *t* is phi(t) = -log10(the probability that a heartbeat still comes after *t*). A suspicion of 1 is
one mistake in ten such silences, 8 is one in a hundred million. The caller chooses the threshold, and the time
follows from the observations. It is mean + z * deviation, where z follows from the threshold. It is computed anew with
each heartbeat, so that a check is one comparison.

Three rules are taken from Akka. The deviation has a minimum: after perfectly regular heartbeats the first late one
would otherwise look impossible. A pause is always acceptable on top of the mean. And the first interval is assumed, not
observed, so that a server that is never heard is suspected, too. An interval longer than an acceptable silence is not a
sample: it shows that the server was away, and not how its heartbeats arrive.

*Invariants.* HB-I3 in its accrual form: no server is suspected while phi is below the threshold. HB-I5: a suspicion is
an opinion.

*Tolerates.* Jitter, slow links and load: the sample follows them. Steps of the wall clock, which is never read.

*Does not tolerate.* Sudden change: the old sample judges until the window has followed. Heavy tails: real delays are
not normally distributed, so the threshold is a scale and not a promise of probability.

*Workloads.* `register`, with `failure_detector=phi-accrual`.

*Checkers.* Linearizability, availability after heal.

*Planted bugs.* None; a detector that accuses at random is run in the tests instead, since safety must not depend on it.

Determinism: sums and roots are taken over whole microseconds, and z is rounded, so that every machine gets the same
times.

Sources: Patterns of Distributed Systems ch. 7; Hayashibara, Défago, Yared and Katayama, "The phi Accrual Failure
Detector" (SRDS 2004) 4.2 and 5; the three rules are those of Akka's `PhiAccrualFailureDetector`, as are threshold 8 and
the form of the estimate. Akka keeps 1000 intervals; 100 follow changes sooner.
"""

from __future__ import annotations

from collections import deque
from math import erfc, isqrt, log10, sqrt
from statistics import NormalDist

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.world.ports import Clock

__all__ = ["Arrivals", "PhiAccrualFailureDetector", "PhiParameters", "phi"]

_PHI_MAX = 300.0
"""Probabilities below 1e-300 cannot be told from zero."""


class PhiParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The threshold of suspicion, and the assumptions.

    `interval_us` is the interval at which the watched server sends.
    """

    interval_us: int
    threshold: float = 8.0
    window: int = 100
    deviation_us_min: int
    acceptable_pause_us: int

    @classmethod
    def of(cls, interval_us: int, threshold: float = 8.0) -> PhiParameters:
        """Return the parameters for a heartbeat interval: a deviation of at least half of it, and two lost
        heartbeats allowed.
        """
        if not 1 <= threshold <= 15:
            raise UsageError(
                f"A suspicion of {threshold:g} cannot be told apart from others: the threshold is from 1 to 15.",
                "8 is usual; set phi_threshold to a smaller number to suspect sooner.",
            )
        return cls(
            interval_us=interval_us,
            threshold=threshold,
            deviation_us_min=interval_us // 2,
            acceptable_pause_us=2 * interval_us,
        )


def phi(silence_us: float, mean_us: float, deviation_us: float) -> float:
    """Return the suspicion after a silence, where intervals have this mean and standard deviation."""
    still_to_come = erfc((silence_us - mean_us) / (deviation_us * sqrt(2))) / 2
    return min(_PHI_MAX, -log10(still_to_come)) if still_to_come > 0 else _PHI_MAX


class Arrivals:
    """The last intervals between heartbeats, as the running sums that mean and deviation need."""

    __slots__ = ("_intervals", "_squares", "_sum", "_window")

    def __init__(self, window: int, first_us: int) -> None:
        """Start with two assumed intervals a quarter above and below `first_us`, as nothing is known yet."""
        self._intervals: deque[int] = deque()
        self._window = window
        self._sum = 0
        self._squares = 0
        self.add(first_us + first_us // 4)
        self.add(first_us - first_us // 4)

    def add(self, interval_us: int) -> None:
        """Take in one more interval and forget the oldest beyond the window."""
        self._intervals.append(interval_us)
        self._sum += interval_us
        self._squares += interval_us * interval_us
        if len(self._intervals) > self._window:
            oldest = self._intervals.popleft()
            self._sum -= oldest
            self._squares -= oldest * oldest

    @property
    def mean_us(self) -> int:
        """The mean interval."""
        return self._sum // len(self._intervals)

    @property
    def deviation_us(self) -> int:
        """The standard deviation of the intervals."""
        count = len(self._intervals)
        return isqrt(count * self._squares - self._sum * self._sum) // count


class PhiAccrualFailureDetector:
    """A detector that suspects when phi of the silence reaches the threshold; it implements `FailureDetector`.

    Elections spread their timeouts by `restart(timeout_us)`: the excess of the drawn timeout over the shortest one is
    added to the acceptable silence, so that followers do not all suspect in the same instant.
    """

    __slots__ = (
        "_acceptable_us",
        "_arrivals",
        "_clock",
        "_heard_us",
        "_parameters",
        "_spread_us",
        "_timeout_us_min",
        "_z",
    )

    def __init__(self, clock: Clock, timeout_us: int, parameters: PhiParameters) -> None:
        self._clock = clock
        self._timeout_us_min = timeout_us
        self._parameters = parameters
        self._arrivals = Arrivals(parameters.window, parameters.interval_us)
        self._heard_us: int = clock.monotonic_us()
        self._spread_us = 0
        self._z = round(-NormalDist().inv_cdf(10**-parameters.threshold), 6)
        self._acceptable_us = self._solved_us()

    def heartbeat_received(self) -> None:
        """Note the sign of life, and the silence before it as a sample."""
        now_us = self._clock.monotonic_us()
        silence_us = now_us - self._heard_us
        if silence_us < self.acceptable_us():
            self._arrivals.add(silence_us)
            self._acceptable_us = self._solved_us()
        self._heard_us = now_us

    def restart(self, timeout_us: int) -> int:
        """Count silence from now; it is not a sample, because no heartbeat came."""
        self._heard_us = self._clock.monotonic_us()
        self._spread_us = max(0, timeout_us - self._timeout_us_min)
        return self.acceptable_us()

    def silence_us(self) -> int:
        """Return the time since the last sign of life."""
        return self._clock.monotonic_us() - self._heard_us

    def check(self) -> int:
        """Return the time until phi reaches the threshold; 0 when it has."""
        return max(0, self.acceptable_us() - self.silence_us())

    def phi(self) -> float:
        """Return the present suspicion."""
        return phi(self.silence_us() - self._spread_us, self._mean_us(), self._deviation_us())

    def acceptable_us(self) -> int:
        """Return the silence after which phi reaches the threshold."""
        return self._acceptable_us + self._spread_us

    def _solved_us(self) -> int:
        """Return the silence at which phi reaches the threshold, without the spread of election timeouts."""
        return self._mean_us() + int(self._z * self._deviation_us())

    def _mean_us(self) -> int:
        return self._arrivals.mean_us + self._parameters.acceptable_pause_us

    def _deviation_us(self) -> int:
        return max(self._parameters.deviation_us_min, self._arrivals.deviation_us)
