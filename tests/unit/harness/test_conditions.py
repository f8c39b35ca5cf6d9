"""The weather of a request: read, told again, refused where it makes no sense."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.commands import run_command
from faultline.harness.conditions import weather_of
from faultline.harness.errors import UsageError
from faultline.harness.plan import Plan, Weather
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run_record import WorldName
from faultline.registry import resolve

PAGE_CACHE = {"disk": "page-cache", "fsync_us_max": "20000"}


def planned(request: RunRequest) -> Plan:
    return make_plan(request, resolve(request))


def test_settings_become_weather_whether_they_are_texts_or_numbers() -> None:
    weather = weather_of(PAGE_CACHE)
    assert (weather.disk, weather.fsync_us_max, weather.fsync_us_min) == ("page-cache", 20_000, Weather().fsync_us_min)
    assert weather_of({"disk": "page-cache", "fsync_us_max": 20_000}) == weather
    assert weather_of({"loss": "0.1"}, weather) == msgspec.structs.replace(weather, loss=0.1)
    assert weather_of({}) == Weather()


@pytest.mark.parametrize(
    "settings", [{"disc": "page-cache"}, {"disk": "floppy"}, {"fsync_us_max": "much"}, {"loss": "2"}]
)
def test_weather_that_there_is_not_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        weather_of(settings)


def test_a_plan_has_the_weather_of_its_request_and_the_command_names_it() -> None:
    request = RunRequest(system="consistent-core", weather={**PAGE_CACHE})
    assert planned(request).weather == weather_of(PAGE_CACHE)
    assert "--weather disk=page-cache --weather fsync_us_max=20000" in run_command(request)


def test_calm_weather_is_written_as_it_was_before_disks_were_a_part_of_it() -> None:
    calm = msgspec.json.decode(msgspec.json.encode(planned(RunRequest(system="consistent-core")).weather))
    assert "disk" not in calm and calm == msgspec.json.decode(msgspec.json.encode(Weather()))


@pytest.mark.parametrize(
    ("settings", "world"), [({"fsync_us_min": "9000"}, "simulated"), ({"disk": "page-cache"}, "local")]
)
def test_weather_that_contradicts_itself_or_that_a_world_cannot_make_is_refused_at_planning(
    settings: dict[str, str], world: WorldName
) -> None:
    request = RunRequest(system="consistent-core", world=world, weather={**settings})
    with pytest.raises(UsageError, match="weather"):
        planned(request)
