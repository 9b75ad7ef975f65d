"""What the README shows is what the repository holds."""

import re
import tomllib
from pathlib import Path

from mpilbm.case.case import parse_case

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_collision_shown_is_the_file():
    assert (ROOT / "mpilbm/physics/collisions/trt.py").read_text().strip() in README


def test_the_case_shown_is_a_case():
    text = re.search(r"```toml\n(.*?)```", README, re.S)[1]
    assert parse_case(tomllib.loads(text), ROOT / "README.md").warnings == ()


def test_files_named_exist():
    for name in re.findall(r"`((?:tools|jobs|cases|mpilbm)/[\w./]+)`", README):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / name).exists(), name
