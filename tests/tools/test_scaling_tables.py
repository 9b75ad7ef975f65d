"""tools/scaling_tables: the tables of README and manual are those of the measurements."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "scaling_tables"


@pytest.fixture
def tool():
    loader = SourceFileLoader("scaling_tables", str(TOOL))
    found = module_from_spec(spec_from_loader("scaling_tables", loader))
    loader.exec_module(found)
    return found


def test_the_tables_are_those_of_the_measurements(tool):
    for path, text in tool.written(tool.KINDS).items():
        assert path.read_text("utf-8") == text, f"run tools/scaling_tables for {path.name}"


def test_newer_rows_and_more_gpus(tool, tmp_path, monkeypatch):
    """Of two days the later one is used; each number of GPUs has a column and rows."""

    def put(count, day, speed):
        rows = [
            {"flow": f"{kind} {rest}", "ranks": count, "glups": speed, "glups_alone": 50.0,
             "efficiency": speed / count / 50}
            for kind, rest in (("weak", "periodic moments float32/mixed 512^3"),
                               ("strong", "periodic moments float32/float32 192^3"))
        ]  # fmt: skip
        content = {"date": day, "rows": [*rows, {"flow": "weak x", "ranks": 4, "problem": "?"}]}
        (tmp_path / f"h100_{count}gpus_flows_{day}.json").write_text(json.dumps(content))

    put(4, "2026-01-02", 190.0)
    put(4, "2026-01-01", 100.0)
    put(8, "2026-01-02", 380.0)
    monkeypatch.setattr(tool, "MEASURED", tmp_path)
    manual, readme = (tool.written("h100")[path] for path in (tool.PERFORMANCE, tool.README))
    assert "| one H100 | 4 H100 | 8 H100 |\n" in manual
    assert (
        "| weak, periodic, 512³ each, `moments`, mixed | 50.0 | 190.0 (95 %) | 380.0 (95 %) |\n"
        in manual
    )
    assert "| 8 H100, periodic, `moments` |  |  | 380.0 (95 %) |  |\n" in manual
    assert "| 8 H100 | periodic, 8 x 512³ | the same | mixed | 380.0 | 95 % |\n" in readme
    assert "4 x that cavity" not in readme
    assert "`h100_4gpus_flows_2026-01-01.json`" not in manual
    assert "`h100_8gpus_flows_2026-01-02.json`" in manual


def test_a_chapter_without_the_tables_is_refused(tool):
    with pytest.raises(KeyError, match="on several GPUs"):
        tool.with_tables("# Performance\n", [[], [], []])
