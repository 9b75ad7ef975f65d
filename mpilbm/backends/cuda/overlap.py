"""How a pass of two steps is divided, so that the halo exchange runs behind its bulk planes.

```
multiprocessors | edge planes of both faces | bulk planes, in blocks ........ |
exchange                                    |  wait | latency, bytes |
```

Blocks of tiles run in waves, and each processes four planes more than it updates (RIM): few planes
of a block cost repeated work, many leave the last wave half empty. Times are counted in planes of a
block, of which one takes PLANE_SECONDS.

    before   waves(all planes) + exchange
    overlap  max(end of all blocks, end of the edge blocks + wait + exchange)

Blocks of a tile leave no registers of a multiprocessor to the exchange kernel: it waits for the end
of a bulk block if the bulk blocks that remain occupy all of them. The least of all divisions is
used. Slabs of THICK planes and more have THICK_EDGE edge planes and the blocks of the measured
tile: for them measurements differ less than the model errs.

Measured (H100, float32): a block takes 2.8 to 3.1 us for a plane in boxes of 192^3 to 512^3 cells.
With the exchange after the computation the model gives 166, 116 and 65 GLUPS for 384^3, 192^3 and
128^3 cells on four GPUs; measured 189, 131 and 73. Divided, it gives 1.16, 1.27 and 1.26 times as
many; measured 1.10, 1.04 and 1.11 (tools/measured/h100_4gpus_strong_2026-11-27.json). Of 8 to 128
edge planes, 32 were the fastest in slabs of 512 planes (tools/measured/temporal_blocking.md).
"""

from collections.abc import Iterator

from mpilbm.backends.interfaces import Parts

RIM = 4  # planes that a block of a pass of two steps reads and does not update
PLANE_SECONDS = 3e-6  # in which a block processes a plane
EXCHANGE_SECONDS = 20e-6  # latency of an exchange by cuda_ipc, as measured by `info --probe`
EXCHANGE_RATE = 320e9  # bytes per second that a GPU sends to both neighbours, by NVLink
THICK, THICK_EDGE = 128, 32  # planes of a slab, edge planes at a face
EDGES = 2, 3, 4, 6, 8, 12, 16, 24, 32, 48  # edge planes that are considered
MORE_PIECES = 8  # numbers of bulk blocks in a column that are considered


def parts(planes: int, faces: int, columns: int, wave: int, most: int, sent: int) -> Parts | None:
    """The division of a slab; None: all planes are computed before the exchange.

    planes   of the slab
    faces    with a neighbour, 1 or 2
    columns  of blocks: tiles that cover a plane
    wave     blocks that the device holds
    most     planes of a block
    sent     bytes sent in an exchange
    """
    if planes >= THICK:
        return Parts(THICK_EDGE, most)
    exchange = (EXCHANGE_SECONDS + sent / EXCHANGE_RATE) / PLANE_SECONDS
    before = exchange + min(
        -(-columns * pieces // wave) * (-(-planes // pieces) + RIM)
        for pieces in _pieces(planes, most)
    )
    found: list[tuple[float, int, Parts | None]] = [(before, planes, None)]
    for edge in EDGES:
        bulk = planes - faces * edge
        for pieces in _pieces(bulk, most) if bulk > 0 else ():
            block = -(-bulk // pieces)
            times = _times(faces * columns, edge + RIM, pieces * columns, block + RIM, wave)
            found.append((max(times[0], times[1] + exchange), edge, Parts(edge, block)))
    return min(found, key=lambda one: one[:2])[2]


def _pieces(planes: int, most: int) -> Iterator[int]:
    """Numbers of blocks in a column that are considered."""
    least = -(-planes // most)
    yield from range(least, min(least + MORE_PIECES, planes) + 1)


def _times(edges: int, edge: int, blocks: int, block: int, wave: int) -> tuple[int, int]:
    """When all blocks end, and when the exchange kernel finds a place.

    `edges` blocks of `edge` planes each, which begin first, then `blocks` of `block`, on `wave`
    places.
    """
    full, rest = divmod(edges, wave)
    free = (wave - rest, edge * full), (rest, edge * (full + 1))  # places, from when on

    def begun(time: int) -> int:
        """Bulk blocks that have begun, if there are enough."""
        return sum(
            places * ((time - start) // block + 1) for places, start in free if time >= start
        )

    done = edge * (full + (rest > 0))
    waits = 0 if begun(done) > blocks else block
    low, high = 0, edge * (full + 1) + block * (-(-blocks // wave) + 1)
    while low < high:  # the first time at which all have ended
        middle = (low + high) // 2
        low, high = (low, middle) if begun(middle - block) >= blocks else (middle + 1, high)
    return max(low, done), done + waits
