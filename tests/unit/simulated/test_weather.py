"""Weather is a pure function with the spread of a good die, even between neighbouring instants."""

from itertools import pairwise

from faultline.harness.world.weather import DRAW_RANGE, draw, salt, uniform


def test_a_draw_depends_on_seed_stream_and_time_and_on_nothing_else():
    here = salt(7, "link", "athens", "byzantium")
    assert draw(here, 1000) == draw(salt(7, "link", "athens", "byzantium"), 1000)
    others = {draw(salt(8, "link", "athens", "byzantium"), 1000), draw(salt(7, "link", "byzantium", "athens"), 1000)}
    assert draw(here, 1000) not in others
    assert draw(here, 1000) != draw(here, 1001)


def test_names_of_a_stream_are_told_apart_by_position():
    assert salt(1, "ab", "c") != salt(1, "a", "bc")


def test_draws_of_neighbouring_instants_are_spread_evenly_and_uncorrelated():
    stream = salt(3, "disk")
    draws = [draw(stream, now_us) / DRAW_RANGE for now_us in range(20_000)]
    mean = sum(draws) / len(draws)
    assert abs(mean - 0.5) < 0.01
    lagged = sum((a - mean) * (b - mean) for a, b in pairwise(draws)) / len(draws)
    assert abs(lagged) < 0.002, "a variance of 1/12 and a correlation below 0.024"
    tenths = [sum(1 for value in draws if int(value * 10) == tenth) for tenth in range(10)]
    assert min(tenths) > 1_800 and max(tenths) < 2_200


def test_uniform_stays_in_its_range_and_an_empty_range_gives_its_lower_end():
    stream = salt(5, "timer")
    values = {uniform(stream, now_us, 10, 13) for now_us in range(1_000)}
    assert values == {10, 11, 12}
    assert uniform(stream, 1, 4, 4) == 4
