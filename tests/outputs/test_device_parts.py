"""Parts that a device with its own memory cuts and adds have the bits of those of the host."""

import pytest
from support import image_cases
from support.coupled import two_fluids
from support.device_parts import BOX, OUTPUTS, own_memory

from mpilbm.case.case import parse_case
from mpilbm.outputs.images.device_part import scratch_bytes


def both(tmp_path, monkeypatch, given, small=False):
    """Whether a run with the memory of the host has the same files; sources and bytes of copies."""
    image_cases.run(tmp_path / "host", given=given)
    with monkeypatch.context() as patch:
        copied = own_memory(patch, small)
        image_cases.run(tmp_path / "device", given=given)
    return image_cases.same(tmp_path / "host", tmp_path / "device"), copied


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("layout", ["ab", "indirect"])
def test_all_parts_have_the_same_bits(tmp_path, monkeypatch, layout, small):
    outputs = [*image_cases.OUTPUTS, *OUTPUTS]
    given = image_cases.tables(layout=layout, outputs=outputs)
    same, copied = both(tmp_path, monkeypatch, given, small)
    assert same
    assert "PartSource" in {name for name, _ in copied}


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_only_the_reduced_fields_are_copied(tmp_path, monkeypatch, precision):
    half = {"name": "snapshot", "every": 20, "stride": 2}
    given = image_cases.tables(outputs=[half], precision={"compute": precision})
    same, copied = both(tmp_path, monkeypatch, given)
    values = 4 * 10 * 6 * 7 * 8  # rho and u of all blocks, in double precision
    assert same
    for name, size in copied:
        assert name == "PartSource"
        assert values <= size <= values + 2 * 256
    cut = {"name": "box", "every": 20, "from": [0, 0, 0], "to": [10, 12, 14], "fields": ["u"]}
    given = image_cases.tables(outputs=[cut], precision={"compute": precision})
    same, copied = both(tmp_path / "cut", monkeypatch, given)
    assert same
    values = 3 * 10 * 12 * 14 * (8 if precision == "float64" else 4)
    assert {name for name, _ in copied} == {"PartSource"}
    assert all(values <= size <= values + 256 for _, size in copied)


def test_coupled_fluids_in_two_dimensions(tmp_path, monkeypatch):
    outputs = [
        {"name": "snapshot", "every": 4, "stride": 2, "fields": ["rho", "u"]},
        {"name": "box", "every": 4, "from": [1, 1], "to": [7, 6], "stride": [1, 2]},
    ]
    given = two_fluids("D2Q9") | {"output": outputs, "run": {"steps": 4}}
    same, copied = both(tmp_path, monkeypatch, given)
    assert same
    assert {name for name, _ in copied} == {"PartSource"}


def test_moving_bodies(tmp_path, monkeypatch):
    """Shares are added, of numbers the largest counts, and `solid` is that of the step."""
    bodies = [
        {
            "label": f"ball_{int(x)}",
            "shape": {"name": "sphere", "centre": [x, 6.3, 7.2], "radius": 3.4},
            "boundary": {"name": "partially_saturated"},
            "motion": {"name": "translation", "velocity": [0.05, 0, 0.02]},
        }
        for x in (5.2, 13.1)
    ]
    outputs = [each | {"fields": ["body", "body_share", "u"]} for each in OUTPUTS]
    given = image_cases.tables(body=bodies, outputs=outputs)
    same, copied = both(tmp_path, monkeypatch, given)
    assert same
    assert "PartSource" in {name for name, _ in copied}


def test_check_counts_the_scratch_memory():
    outputs, gpu = [BOX | {"stride": 2, "fields": ["u"]}], {"name": "cuda"}
    on_cpu = parse_case(image_cases.tables(outputs=outputs), "x.toml")
    case = parse_case(image_cases.tables(outputs=outputs, backend=gpu), "x.toml")
    (output,) = case.outputs
    assert output.device_bytes(on_cpu, 14) == 0
    part = output.part(case)
    planes, blocks = case.shape[0], part.rows.count * part.x.count
    fields = planes * 20 * 12 * 4 * 4  # rho and u of whole planes
    sums = planes * -(-blocks * 3 * 8 // 256) * 256
    mask = 12 * 16 * 8
    assert output.device_bytes(case, planes) == fields + sums + mask
    assert scratch_bytes(case, part, ("u",), 2) < output.device_bytes(case, planes)
    whole = parse_case(image_cases.tables(outputs=[{"name": "snapshot"}], backend=gpu), "x.toml")
    assert whole.outputs[0].device_bytes(whole, planes) == 0
