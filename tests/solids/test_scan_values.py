"""`check` of a case with a scan: the values that it contains, thresholds, files with a header."""

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from support.voxel_files import GREY, WRITERS, check, shape

from mpilbm.cli import cli
from mpilbm.solids.shapes import voxels
from mpilbm.solids.volumes import Volume, voxel_values

TWO = np.where(GREY > 99, 255, 0).astype(np.uint8)


@pytest.fixture(autouse=True)
def _forget():
    voxels._opened.cache_clear()


def line(output):
    (found,) = [each for each in output.splitlines() if "values of rock" in each]
    return " ".join(found.split())


@pytest.mark.parametrize("writer", WRITERS, ids=lambda each: each.__name__)
def test_values_and_their_shares(writer, tmp_path):
    found = shape(tmp_path, **writer(tmp_path, TWO))
    assert found.contents() == [("0: 38 %, 255: 62 %", "62.4% of the voxels are solid")]


def test_check_shows_a_wrong_byte_order(tmp_path):
    (TWO > 0).astype(">u2").tofile(tmp_path / "a.raw")
    done = check(tmp_path, "a.raw", more=', size = [12, 5, 7], type = "uint16", solid = "== 1"')
    assert line(done.output) == "values of rock 0: 38 %, 256: 62 % 0.0% of the voxels are solid"


def test_check_of_a_union_shows_the_values_of_its_parts(tmp_path):
    np.save(tmp_path / "a.npy", TWO)
    part = '{{name = "voxels", file = "{file}"}}'
    union = f'{{{{name = "union", of = [{part}, {part}]}}}}'
    assert check(tmp_path, "a.npy", shape=union).output.count("0: 38 %, 255: 62 %") == 2


def test_check_shows_the_values_of_a_mask(tmp_path):
    np.save(tmp_path / "a.npy", TWO)
    check(tmp_path, "a.npy")
    text = (tmp_path / "case.toml").read_text()
    text = text.replace('shape = {name = "voxels", file = "a.npy"}', 'mask = "a.npy"')
    (tmp_path / "case.toml").write_text(text)
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "case.toml")])
    assert line(done.output).endswith("rock 0: 38 %, 255: 62 % 62.4% of the voxels are solid")


def scan(shape, shares=(0.3, 0.7)):
    """A scan with noise around 60 in the pores and 180 in the solid."""
    rng = np.random.default_rng(5)
    middle = rng.choice([60, 180], shape, p=shares)
    return np.clip(rng.normal(middle, 15), 1, 255).astype(np.uint8)


@pytest.mark.parametrize("fluid", [0, 3])
def test_a_grey_scan_without_a_threshold(fluid, tmp_path):
    """Also if it has no 0, so that the solid fills the box."""
    values = scan((7, 5, 12))
    values.reshape(-1)[:fluid] = 0
    np.save(tmp_path / "a.npy", values)
    (found,) = [each for each in check(tmp_path, "a.npy").output.splitlines()
                if "body.rock.shape.solid: " in each]  # fmt: skip
    count = len(np.unique(values))
    assert f"{count} values, porosity {fluid / 420:.3f}: all values but 0 are solid; for" in found
    threshold = int(found.partition("give solid = '>= ")[2].partition("'")[0])
    assert 90 < threshold < 150
    assert f"porosity {(values < threshold).mean():.3f})" in found
    done = check(tmp_path, "a.npy", more=f', solid = ">= {threshold}"')
    assert done.exit_code == 0
    assert "shape.solid" not in done.output
    assert "shape.solid" not in check(tmp_path, "a.npy", more=', solid = "!= 0"').output


def test_the_threshold_of_large_integers(tmp_path):
    """All digits are needed; a porosity of 0 has no sign."""
    values = scan((7, 5, 12)).astype(np.uint32) + 2_000_000_000
    np.save(tmp_path / "a.npy", values)
    text = check(tmp_path, "a.npy").output
    threshold = int(text.partition("give solid = '>= ")[2].partition("'")[0])
    assert f"porosity {(values < threshold).mean():.3f})" in text
    assert 90 < threshold - 2_000_000_000 < 150
    assert "values, porosity 0.000: " in text


def test_labels_need_no_threshold(tmp_path):
    np.save(tmp_path / "a.npy", GREY % 4)
    assert "shape.solid" not in check(tmp_path, "a.npy").output
    np.save(tmp_path / "a.npy", GREY // 10)  # 26 values, some of them 0
    assert "warning: body.rock.shape.solid: 26 values" in check(tmp_path, "a.npy").output


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_the_threshold_of_otsu(dtype):
    """Against a search over all thresholds."""
    values = scan((9, 20, 30)).astype(dtype)
    found = voxel_values.voxel_values(Volume(values), [(0, n) for n in values.shape])
    flat = values.reshape(-1).astype(float)

    def within(limit):
        low, high = flat[flat < limit], flat[flat >= limit]
        return low.var() * len(low) + high.var() * len(high)

    least = min(within(each) for each in np.unique(flat)[1:])
    assert within(found.threshold) == pytest.approx(least)


def test_two_values_have_a_threshold_between_them():
    found = voxel_values.voxel_values(Volume(TWO), [(0, n) for n in TWO.shape])
    assert found.threshold == 128


def test_large_volumes_are_sampled(monkeypatch):
    values = scan((200, 30, 40))
    monkeypatch.setattr(voxel_values, "VOXELS", 1 << 14)
    spans = [(0, n) for n in values.shape]
    found = voxel_values.voxel_values(Volume(values), spans)
    assert found.sampled == "in 64 of 200 planes"
    whole = np.bincount(values.reshape(-1), minlength=256) / values.size
    assert np.abs(found.shares - whole[found.numbers]).max() < 0.01
    assert found.share(found.numbers < 120) == pytest.approx(0.3, abs=0.02)


def test_many_values_are_summarised():
    values = np.arange(1000).reshape(10, 100)
    found = voxel_values.voxel_values(Volume(values), [(0, 10), (0, 100)])
    assert found.text == "1000 values from 0 to 999"
    values[:, :30] = 7
    found = voxel_values.voxel_values(Volume(values), [(0, 10), (0, 100)])
    assert found.text == "701 values from 7 to 999, most frequent 7: 30 %"


def test_nan_and_infinity_are_no_values():
    values = np.array([[np.nan, np.inf, 1.5, 1.5], [2, 1.5, -np.inf, 2]])
    found = voxel_values.voxel_values(Volume(values), [(0, 2), (0, 4)])
    assert found.text == "1.5: 60 %, 2: 40 %"


def test_a_raw_file_with_a_header(tmp_path):
    (tmp_path / "a.raw").write_bytes(b"h" * 500 + TWO.tobytes())
    done = check(tmp_path, "a.raw", more=', size = [12, 5, 7], type = "uint8"')
    assert "if the file begins with a header of 500 bytes, describe it by a .mhd file with" in (
        text := done.output
    )
    assert "HeaderSize = -1" in text
    (tmp_path / "a.mhd").write_text(
        "NDims = 3\nDimSize = 12 5 7\nElementType = MET_UCHAR\nHeaderSize = -1\n"
        "ElementDataFile = a.raw\n"
    )
    assert line(check(tmp_path, "a.mhd").output).startswith("values of rock 0: 38 %, 255: 62 %")


def test_planes_are_read_in_chunks(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("rock", data=scan((20, 5, 12)), chunks=(8, 5, 12))
    found = shape(tmp_path, "a.h5", crop=[[1, 11], [0, 5], [3, 17]])._planes().values
    cut = scan((20, 5, 12))[3:17, :, 1:11]
    np.testing.assert_array_equal(found.numbers, np.unique(cut))
    assert found.planes == (14, 14)
