struct Tile {
  int x, row, width, height;  /* first cell; cells that lie inside the box */
  bool left, right;           /* touches a face of the box */
};

INLINE int wrapped(int row, int rows) { return row + (row < 0 ? rows : row >= rows ? -rows : 0); }

#if BULK
/* The first lane of each warp copies a row. A copy begins at a multiple of 16 bytes: the device calls any
   other start an illegal instruction. */
INLINE void load_plane(const Tile tile, store* stage, unsigned long long* barrier, const void* rows_map,
                       const void* side_map, int thread, int64 plane, ARGUMENTS)
{
  const int lines = tile.height + 2 * REACH, slot = (int)plane * VALUES;
  if (thread == 0) {
    const int sides = (tile.left ? SIDE : 0) + (tile.right ? SIDE : 0);
    barrier_expect(barrier, lines * VALUES * (PITCH + sides) * (int)sizeof(store));
  }
  if (thread % 32) return;
#pragma unroll 1
  for (int line = thread / 32; line < lines; line += WARPS) {
    const int row = wrapped(tile.row + line - REACH, rows);
    copy_box(stage + line * ROW_PITCH, rows_map, barrier, tile.x - MARGIN, row, slot);
    store* const side = stage + SIDE_AT + line * SIDE_PITCH;
    if (tile.left) copy_box(side, side_map, barrier, (nx - 1) / SIDE * SIDE, row, slot);
    if (tile.right) copy_box(side + REAL_ROWS * SIDE_PITCH, side_map, barrier, 0, row, slot);
  }
}
#else
/* Before tensor maps: all threads copy 16 bytes at a time. */
INLINE void load_plane(const Tile tile, store* stage, unsigned long long*, const void*, const void*,
                       int thread, int64 plane, ARGUMENTS)
{
  const int lines = (tile.height + 2 * REACH) * VALUES, pieces = PITCH / SIDE;
  const store* const source = f_in + plane * f_plane;
  for (int k = thread; k < lines * (pieces + 2); k += THREADS) {
    const int piece = k % (pieces + 2), value = k / (pieces + 2) % VALUES, line = k / (pieces + 2) / VALUES;
    const store* const row = source + value * f_slot + wrapped(tile.row + line - REACH, rows) * f_row;
    const bool beyond = piece >= pieces, right = piece > pieces;
    const int x = !beyond ? tile.x - MARGIN + piece * SIDE : right ? 0 : (nx - 1) / SIDE * SIDE;
    store* const side = stage + SIDE_AT + (right ? REAL_ROWS : 0) * SIDE_PITCH;
    if (!beyond && x >= 0 && x < f_row)
      copy_async16(stage + line * ROW_PITCH + value * PITCH + piece * SIDE, row + x);
    if (beyond && (right ? tile.right : tile.left))
      copy_async16(side + line * SIDE_PITCH + value * SIDE, row + x);
  }
}
#endif

/* What a thread rebuilds beside the tile. `way`: 0 and 1 CELLS cells below and above in rows, 2 and 3 a
   cell in x, -1 nothing; `from` where its moments lie in a stage, `step` values apart. */
struct Halo {
  int way, from, step, at;
};

INLINE Halo halo_of(const Tile tile, int thread, int nx)
{
  Halo halo = {-1, 0, PITCH, 0};
  int x = 0, row = 0;
  if (thread < HALO_ROWS) {
    const bool above = thread >= TX / CELLS;
    x = (above ? thread - TX / CELLS : thread) * CELLS;
    row = above ? tile.height : -1;
    if (x < tile.width) halo.way = above;
  } else if (thread < HALO_ROWS + COLUMN + REAL_ROWS) {
    const int k = thread - HALO_ROWS;
    const bool right = k >= COLUMN;
    row = (right ? k - COLUMN : k) - REACH;
    x = right ? tile.width : -1;
    if (k - (right ? COLUMN : 0) < REAL_ROWS && row < tile.height + REACH) halo.way = 2 + right;
  }
  halo.at = (row + REACH) * WIDTH + x + CELLS;
  halo.from = (row + REACH) * ROW_PITCH + MARGIN + x;
  if ((halo.way == 2 && tile.left) || (halo.way == 3 && tile.right)) {
    const int line = (halo.way == 3 ? REAL_ROWS : 0) + row + REACH;
    halo.from = SIDE_AT + line * SIDE_PITCH + (halo.way == 2 ? (nx - 1) % SIDE : 0);
    halo.step = SIDE;
  }
  return halo;
}

/* A block's way along `count` planes from `first` on; what walls cost is left out where it meets none, and
   in the planes where it meets none: `sides` are the walls along all its way. */
template <bool AT_WALLS>
INLINE void walk(const Tile tile, store* stages, real* deposits, unsigned long long* barriers, const void* rows_map,
                 const void* side_map, const Walls* walls, int sides, int64 first, int count, ARGUMENTS)
{
  const int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
  const int tx = (int)threadIdx.x * CELLS, ty = (int)threadIdx.y;
  const auto load = [&](int k, int stage) {
    if (k < count + 2)
      load_plane(tile, stages + stage * STAGE, barriers + stage, rows_map, side_map, thread, first - 1 + k, GIVEN);
    if (!BULK) copy_commit();
  };
  for (int k = 0; k < STAGES; k++) load(k, k);
  const bool inside = tx < tile.width && ty < tile.height;
  const int at = (ty + REACH) * WIDTH + tx + CELLS, from = (ty + REACH) * ROW_PITCH + MARGIN + tx;
  const Halo halo = halo_of(tile, thread, nx);
  store* out = f_out + (first - 2) * f_plane;
  const unsigned cell = (unsigned)((tile.row + ty) * f_row + tile.x + tx);
  int beside[CELLS] = {}, lowest = -1, highest = count + 2;  /* planes at walls, as numbers k */
  if constexpr (AT_WALLS) {
    for (int c = 0; c < CELLS; c++) {
      const int x = tile.x + tx + c, row = tile.row + ty;
      beside[c] = sides & ((x == 0) | (x == nx - 1) << 1 | (row == 0) << 2 | (row == rows - 1) << 3);
    }
    if (walls->planes[0] >= first - 1) lowest = (int)(walls->planes[0] - first + 1);
    if (walls->planes[1] <= first + count) highest = (int)(walls->planes[1] - first + 1);
  }
  real current[CELLS][SUMS] = {}, rising[CELLS][RISING] = {};
  int stage = 0;
  unsigned phase = 0;
  for (int k = 0; k < count + 2; k++, out += f_plane) {
    real f[CELLS][Q] = {};
    const int across = AT_WALLS ? (k == lowest) << 4 | (k == highest) << 5 : 0;
    if (BULK)
      barrier_wait(barriers + stage, phase);
    else {
      copy_wait<STAGES - 1>();
      __syncthreads();
    }
    const store* const values = stages + stage * STAGE;
    if (inside) {
      real moments[CELLS][VALUES];
      look(values + from, moments);
#pragma unroll
      for (int c = 0; c < CELLS; c++) rebuild(moments[c], f[c]);
    }
    if (BULK) __syncthreads();
    if (inside) deposit(deposits + at, f);
    if (halo.way >= 2)
      deposit_column(halo.way, deposits + halo.at, values + halo.from, halo.step);
    else if (halo.way >= 0) {
      real moments[CELLS][VALUES];
      look(values + halo.from, moments);
      deposit_row(halo.way, deposits + halo.at, moments);
    }
    __syncthreads();
    load(k + STAGES, stage);
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
    if (!inside) continue;
    gather(deposits + at, f);
    if constexpr (AT_WALLS) {
#pragma unroll
      for (int c = 0; c < CELLS; c++) {
        if (beside[c]) clear(beside[c], f[c]);
        if (k < lowest || k > highest)
          for (int i = 0; i < Q; i++) f[c][i] = R(0);
      }
    }
    if (k > 1) {
      real stored[CELLS][VALUES];
#pragma unroll
      for (int c = 0; c < CELLS; c++) finish(stored[c], current[c], f[c], NUMBERS);
#pragma unroll
      for (int v = 0; v < VALUES; v++)
        send(out + (v * f_slot + cell), stored[0][v], stored[CELLS - 1][v]);
    }
#pragma unroll
    for (int c = 0; c < CELLS; c++) {
      advance(current[c], rising[c], f[c]);
      if constexpr (AT_WALLS)
        if (beside[c] | across) bounce(beside[c] | across, walls, deposits + at, f, c, current[c]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sweep(const __grid_constant__ BoxMap rows_map, const __grid_constant__ BoxMap side_map, const Walls* walls,
      int64 begin, int64 end, int64 stride, int64 chunk, ARGUMENTS)
{
  extern __shared__ __align__(128) unsigned char memory[];
  store* const stages = (store*)memory;
  real* const deposits = (real*)(memory + STAGES * STAGE * sizeof(store));
  __shared__ unsigned long long barriers[STAGES];
  Tile tile = {(int)blockIdx.x * TX, (int)blockIdx.y * TY, 0, 0, false, false};
  tile.width = nx - tile.x < TX ? nx - tile.x : TX;
  tile.height = rows - tile.row < TY ? rows - tile.row : TY;
  tile.left = tile.x == 0;
  tile.right = tile.x + tile.width == nx;
  const int64 first = begin + (int64)blockIdx.z * (stride > 1 ? stride : chunk);
  const int count = stride > 1 ? 1 : (int)(end - first < chunk ? end - first : chunk);
  if (BULK && threadIdx.x == 0 && threadIdx.y == 0)
    for (int k = 0; k < STAGES; k++) barrier_init(barriers + k);
  __syncthreads();
#if WALLS
  const int around = tile.left | tile.right << 1 | (tile.row == 0) << 2 | (tile.row + tile.height == rows) << 3;
  const int sides = walls->faces & around;
  if (sides || first <= walls->planes[0] || first + count > walls->planes[1]) {
    walk<true>(tile, stages, deposits, barriers, &rows_map, &side_map, walls, sides, first, count, GIVEN);
    return;
  }
#endif
  walk<false>(tile, stages, deposits, barriers, &rows_map, &side_map, walls, 0, first, count, GIVEN);
}
