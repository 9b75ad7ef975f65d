"""The table of limits that `mpilbm check` reads, from the points of tools/stability_map."""

import json
from pathlib import Path


def table_of(points) -> dict:
    """lattice -> Mach numbers, collision -> flow -> [largest stable, smallest failed] of each Mach.

    `mpilbm check` reads this table. "trt+smagorinsky" is a collision with a closure. `vortex` is
    the less stable of both sizes; null: no such point.
    """
    table: dict = {}
    for point in points:
        place = table.setdefault(point["lattice"], {"mach": {}, "collisions": {}})
        place["mach"][point["speed"]] = point["mach"]
        label = "+".join(filter(None, (point["collision"], point["closure"])))
        flows = place["collisions"].setdefault(label, {})
        flow = "vortex" if point["setting"] == "large" else point["setting"]
        sizes = flows.setdefault(flow, {}).setdefault(point["speed"], {})
        sizes.setdefault(point["setting"], []).append((point["re_cell"], bool(point["failed"])))
    for place in table.values():
        for flows in place["collisions"].values():
            for flow, speeds in flows.items():
                flows[flow] = [limits(speeds[speed].values()) for speed in sorted(place["mach"])
                               if speed in speeds]  # fmt: skip
                if len(flows[flow]) < len(place["mach"]):
                    flows[flow] = None
        place["mach"] = [mach for _, mach in sorted(place["mach"].items())]
    return table


def limits(sizes) -> list:
    """The largest stable Re_cell below every failed one, and the smallest that failed."""
    found = []
    for runs in sizes:
        failed = min((re for re, bad in runs if bad), default=None)
        stable = (re for re, bad in runs if not bad and (failed is None or re < failed))
        found.append((max(stable, default=0), failed))
    bad = [failed for _, failed in found if failed]
    return [min(stable for stable, _ in found), min(bad) if bad else None]


def write_table(points, file: Path) -> None:
    """The table as JSON, a line for each collision."""
    lines = []
    for lattice, place in sorted(table_of(points).items()):
        rows = [
            f"    {json.dumps(name)}: {json.dumps({k: v for k, v in flows.items() if v})}"
            for name, flows in sorted(place["collisions"].items())
        ]
        body = ",\n".join(rows)
        head = f'  "{lattice}": {{"mach": {json.dumps(place["mach"])}, "collisions": {{\n'
        lines.append(f"{head}{body}\n  }}}}")
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
