"""A list of the files of an output with their times, which ParaView opens as one time series."""

import json
import re
from pathlib import Path
from typing import Self

from mpilbm.core.units import TIME, Units
from mpilbm.storage.files import whole


class SeriesFile:
    """The file `<stem>.vtkhdf.series` in the output folder: names and times as JSON.

    After a restart it keeps the files up to its step `first`. [Format: ParaView, file series]
    """

    def __init__(self, directory: Path, stem: str, units: Units | None, first: int):
        self.path, self.stem, self.units = directory / f"{stem}.vtkhdf.series", stem, units
        name = re.compile(re.escape(stem) + r"_([0-9]{9,18})\.vtkhdf")
        found = (name.fullmatch(path.name) for path in directory.iterdir())
        steps = (int(match[1]) for match in found if match)
        self._steps = {step for step in steps if step <= first}

    @classmethod
    def none(cls) -> Self:
        """On ranks other than 0, which write no series."""
        return cls.__new__(cls)

    def add(self, step: int) -> None:
        """Add the file of a step, when it is complete; on rank 0, in any thread."""
        self._steps.add(step)
        files = [
            {"name": f"{self.stem}_{each:09d}.vtkhdf", "time": self._time(each)}
            for each in sorted(self._steps)
        ]
        with whole(self.path) as file:
            json.dump({"file-series-version": "1.0", "files": files}, file, indent=1)
            file.write("\n")

    def _time(self, step: int) -> float:
        return float(step) if self.units is None else float(self.units.to_si(step, TIME))
