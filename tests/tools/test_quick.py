"""The choice of tools/test --quick."""

import pytest
from support import TESTS
from support.quick import QUICK, choose


def test_the_first_and_last_case_of_each_function():
    functions = {
        ("core/test_cache.py", "test_one"): ["a"],
        ("core/test_cache.py", "test_many"): ["b", "c", "d"],
        ("test_else.py", "test_other"): ["e"],
    }
    assert choose(functions) == ["a", "b", "d"]


def test_an_entry_that_matches_nothing_is_refused():
    with pytest.raises(pytest.UsageError, match="laws/test_walls"):
        choose({("laws/test_walls.py", "test_renamed"): ["a"]})


def test_all_files_are_there():
    files = {entry.split("::")[0] for entry in QUICK}
    assert all((TESTS / file).exists() for file in files)
