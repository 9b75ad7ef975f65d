"""Launch shapes: measured once, then taken from the cache; forgotten on demand."""

from dataclasses import dataclass

import pytest

from mpilbm.backends import tuning

BOX = (64, 256, 256)


@dataclass(frozen=True)
class Shape:
    seconds: float


class Clock:
    """A device whose launches take as long as their shape says; counts them."""

    name, compiler, kernel_options, records = "clock", "C 1.0", (), False

    def __init__(self):
        self.now, self.launches = 0.0, 0

    def stream(self, _):
        return self

    def record(self, timed):
        return Event(self.now)

    def bind(self, shape):
        def launch(stream, begin, end):
            assert (begin, end) == (1, 65)
            self.now += shape.seconds
            self.launches += 1

        return launch


@dataclass
class Event:
    at: float

    def seconds_since(self, other):
        return self.at - other.at


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MPILBM_CACHE_DIR", str(tmp_path))


SHAPES = [Shape(2.0), Shape(1.0), Shape(3.0)]


def choose(device, text="text", box=BOX, shapes=SHAPES):
    return tuning.fastest(device, text, box, shapes, device.bind)


def test_the_fastest_is_measured_once():
    device = Clock()
    assert choose(device) == Shape(1.0)
    measured = device.launches
    assert measured == 3 * (2 + tuning.REPEATS) * 2  # launches until a trial has enough cells
    assert choose(device) == Shape(1.0)
    assert device.launches == measured
    tuning.forget()
    choose(device)
    assert device.launches == 2 * measured


def test_shapes_are_prepared_together_before_they_are_tried():
    device, prepared = Clock(), []

    def prepare(shapes):
        assert device.launches == 0
        prepared.append(list(shapes))

    for box in ((4, 4, 4), BOX, BOX):  # few cells: the first shape; the third is in the cache
        tuning.fastest(device, "text", box, SHAPES, device.bind, prepare=prepare)
    assert prepared == [SHAPES]


def test_another_kernel_box_or_device_is_measured_again():
    device = Clock()
    choose(device)
    for more in ({"text": "more"}, {"box": (64, 128, 512)}):
        before = device.launches
        choose(device, **more)
        assert device.launches > before


@pytest.mark.parametrize(
    ("name", "value"), [("name", "other"), ("compiler", "C 1.1"), ("kernel_options", ("-DFUSED",))]
)
def test_another_device_or_compiler_is_measured_again(name, value):
    choose(Clock())
    tuning.fastest_way(Clock(), "key", tuning.SMALL, {"a": lambda: None})
    other, again = Clock(), Clock()
    setattr(other, name, value)
    setattr(again, name, value)
    choose(other)
    assert other.launches
    tuning.fastest_way(again, "key", tuning.SMALL, {"a": way(again, 1.0)})
    assert again.launches


def test_other_launching_code_is_measured_again(monkeypatch):
    device = Clock()
    choose(device)
    before = device.launches
    monkeypatch.setattr(tuning.cache, "code_digest", lambda *folders: f"changed {folders}")
    choose(device)
    assert device.launches == 2 * before


def test_a_stored_choice_that_is_no_longer_offered_is_replaced():
    device = Clock()
    choose(device)
    assert choose(device, shapes=[Shape(5.0), Shape(4.0)]) == Shape(4.0)


def test_unusable_shapes_are_not_chosen():
    def usable(shape):
        return shape.seconds > 1

    device = Clock()
    for box, found in ((BOX, Shape(1.5)), ((4, 5, 6), Shape(2.0))):
        shapes = [Shape(0.5), Shape(2.0), Shape(1.5)]
        assert tuning.fastest(device, "text", box, shapes, device.bind, usable) == found
    only = [Shape(0.5), Shape(0.7)]
    assert tuning.fastest(device, "text", BOX, only, device.bind, usable) == only[0]


def test_launches_are_recorded_where_that_is_possible():
    class Recorder(Clock):
        records = True

        def recording(self, work):
            self.recorded = self.recorded + 1 if hasattr(self, "recorded") else 1
            return work

    device = Recorder()
    assert choose(device) == Shape(1.0)
    assert device.recorded == len(SHAPES)


def test_small_boxes_and_single_shapes_are_not_measured():
    device = Clock()
    assert choose(device, box=(4, 5, 6)) == Shape(2.0)
    assert choose(device, shapes=SHAPES[:1]) == Shape(2.0)
    assert device.launches == 0


def way(device, seconds):
    def work():
        device.now += seconds
        device.launches += 1

    return work


@pytest.mark.parametrize(("seconds", "fastest"), [((2.0, 1.0), "b"), ((1.0, 2.0), "a")])
def test_the_fastest_way_is_measured_once(seconds, fastest):
    device = Clock()
    ways = {name: way(device, each) for name, each in zip("ab", seconds, strict=True)}
    assert tuning.fastest_way(device, "key", tuning.SMALL, ways) == fastest
    measured = device.launches
    assert tuning.fastest_way(device, "key", tuning.SMALL, ways) == fastest
    assert device.launches == measured
    tuning.fastest_way(device, "other", tuning.SMALL, ways)
    assert device.launches == 2 * measured
    tuning.forget()
    tuning.fastest_way(device, "key", tuning.SMALL, ways)
    assert device.launches == 3 * measured
