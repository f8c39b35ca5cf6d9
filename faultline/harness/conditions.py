"""The weather of a run, as texts that a user writes: `fsync_us_max=20000`, `disk=page-cache`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

import msgspec

from faultline.harness.errors import UsageError
from faultline.harness.plan import Weather
from faultline.harness.run_record import WorldName

__all__ = ["Settings", "contradictions", "refuse_contradictions", "refuse_weather", "weather_of"]

Settings = Mapping[str, str | int | float]
"""Fields of the weather by name, with values as a user gives them."""

_REAL_NAMES = ("fsync_us_min", "fsync_us_max")
_USUAL = Weather()


def weather_of(settings: Settings, base: Weather = _USUAL) -> Weather:
    """Return `base` with these settings. Raise UsageError for a name that no weather has, or a value it cannot have."""
    for name in settings:
        if name not in Weather.__struct_fields__:
            near = difflib.get_close_matches(name, Weather.__struct_fields__, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"It has {', '.join(Weather.__struct_fields__)}."
            raise UsageError(f"The weather has no {name}.", hint)
    try:
        given = msgspec.convert(dict(settings), Weather, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"The weather cannot be {_written(settings)}: {error}.", "See docs/reference/weather.md."
        ) from None
    changes = {name: getattr(given, name) for name in settings}
    return msgspec.structs.replace(base, **changes)


def refuse_weather(settings: Settings, world: WorldName) -> None:
    """Raise UsageError for settings that are no weather, contradict each other, or that `world` cannot make."""
    refuse_contradictions(weather_of(settings))
    impossible = [name for name in settings if name not in _REAL_NAMES]
    if world != "simulated" and impossible:
        raise UsageError(
            f"The {world} world cannot make the weather {' and '.join(impossible)}.",
            "Leave it out, or use the simulated world (--world simulated).",
        )


def refuse_contradictions(weather: Weather) -> None:
    """Raise UsageError for weather with bounds that leave no value between them."""
    for complaint in contradictions(weather):
        raise UsageError(f"The weather contradicts itself: {complaint}.", "Give both bounds, the lower one first.")


def contradictions(weather: Weather) -> Iterator[str]:
    """Yield a clause for each pair of bounds that leaves no value between them."""
    for name in ("latency_us", "fsync_us"):
        least, most = getattr(weather, f"{name}_min"), getattr(weather, f"{name}_max")
        if least > most:
            yield f"weather.{name}_min is {least}, which is more than {name}_max, {most}"


def _written(settings: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())
