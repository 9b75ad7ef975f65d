"""What differs on an AMD GPU: CuPy for ROCm has the names of CUDA and calls HIP."""

from collections.abc import Mapping
from typing import Any

from mpilbm.backends.amd.driver import VERSION_UNIT


class Hip:
    """Replaces parts of CudaDevice: no graphs, no `cuda_ipc`, no sweep of `moments`."""

    records = False
    no_ipc = "sends by instructions of NVIDIA GPUs, found AMD GPUs; use 'auto' or 'nccl'"
    language, version_unit, rtc = "HIP", VERSION_UNIT, "HIPRTC"
    options: tuple[str, ...] = ("-std=c++17", "-ffp-contract=off")
    capability = shared_memory = 0  # the sweep needs 8.0

    def _unique(self, runtime: Any, index: int) -> str:
        """The place on the PCI bus, which is the same for all partitions of a GPU."""
        return runtime.deviceGetPCIBusId(index)

    def _describe(self, properties: Mapping[str, Any]) -> None:
        architecture = properties["gcnArchName"].decode().split(":")[0]
        self.name = f"{properties['name'].decode()} ({architecture})"
        self.processors = properties["multiProcessorCount"]
