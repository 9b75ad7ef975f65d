"""Runs on a CPU whose memory is treated as that of a GPU: parts are cut and added on the device."""

from mpilbm.backends.cpu import Cpu
from mpilbm.outputs.images import device_part
from mpilbm.solver.fields import sources, staging

BOX = {"name": "box", "every": 10, "from": [2, 3, 1], "to": [18, 12, 14], "label": "cut",
       "fields": ["u", "vorticity", "rho"]}  # fmt: skip
OUTPUTS = [
    BOX,
    BOX | {"label": "means", "stride": [2, 3, 4], "fields": ["q_criterion", "rho"]},
    BOX | {"label": "only_z", "stride": [1, 1, 5], "type": "float32"},
    BOX | {"label": "flat", "stride": [3, 2, 1], "compression": "gzip"},
    {"name": "snapshot", "every": 10, "stride": 2, "label": "twice"},
]


def own_memory(monkeypatch, small=False):
    """Let CPUs have a memory of their own; `small`: blocks of few planes. Bytes of all pieces."""
    opened, started, found = Cpu.open, staging.Staging.start, []

    def separate(self, *ranks):
        device = opened(self, *ranks)
        device.unified = False
        return device

    def counted(self, source, begin, end):
        piece = started(self, source, begin, end)
        found.append((type(source).__name__, piece.bytes))
        return piece

    monkeypatch.setattr(Cpu, "open", separate)
    monkeypatch.setattr(staging.Staging, "start", counted)
    if small:
        monkeypatch.setattr(sources, "BLOCK_BYTES", 1)
        monkeypatch.setattr(device_part, "SCRATCH_BYTES", 1)
    return found
