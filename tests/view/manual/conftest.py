"""The manual describes the package alone: classes that other tests have registered are hidden."""

import pytest

from mpilbm.core import registry


@pytest.fixture(autouse=True)
def _only_the_package(monkeypatch):
    for kind in registry.KINDS:
        registry.names(kind)  # loads the package's own classes
        own = {
            name: cls
            for name, cls in registry._classes[kind].items()
            if cls.__module__.partition(".")[0] == "mpilbm"
        }
        monkeypatch.setitem(registry._classes, kind, own)
