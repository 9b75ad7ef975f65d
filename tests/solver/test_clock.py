"""The clock measures what a device does, also if the host is ahead of it."""

import pytest

from mpilbm.solver.step_times import Clock


class Moment:
    def __init__(self, device):
        self.device, self.at = device, device.enqueued

    @property
    def done(self):
        if self.device.failed:
            raise RuntimeError("the device has failed")
        return self.at <= self.device.time

    def synchronize(self):
        self.device.time = max(self.device.time, self.at)

    def seconds_since(self, earlier):
        return self.at - earlier.at


class Device:
    """A stream whose work takes the seconds that `enqueue` says."""

    def __init__(self):
        self.enqueued = self.time = 0.0
        self.failed = False

    def enqueue(self, seconds):
        self.enqueued += seconds

    def record(self, timed=False):
        assert timed
        return Moment(self)

    def flush(self):
        pass


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def clock(device):
    clock = Clock()
    clock.follow(device)
    for seconds in (4.0, 5.0):
        with clock.measure("stepping"):
            device.enqueue(seconds)
        with clock.measure("outputs"):
            device.enqueue(0.25)
    return clock


def test_only_what_is_done_counts(clock, device):
    assert (clock.stepping, clock.outputs) == (0, 0)
    device.time = 4.3
    assert (clock.stepping, clock.outputs) == (4, 0.25)
    device.time = 20
    assert (clock.stepping, clock.outputs) == (9, 0.5)


def test_a_reading_is_that_of_its_point_in_the_run(clock, device):
    reading = clock.reading()
    with clock.measure("stepping"):
        device.enqueue(7)
    assert reading.seconds == 9
    assert device.time == 9.5  # it did not wait for the steps after it


def test_after_a_failure_of_the_device_the_known_times_remain(clock, device):
    device.time = 4.3
    assert clock.stepping == 4
    device.failed = True
    assert (clock.stepping, clock.outputs) == (4, 0.25)


def test_without_a_device_the_host_is_measured():
    clock = Clock()
    with clock.measure("outputs"):
        pass
    assert 0 < clock.outputs < 1
    assert clock.stepping == 0
