struct Tile {
  int x, row, width, height;  /* first cell; cells that lie inside the box */
  bool left, right;           /* touches a face of the box */
};

INLINE int wrapped(int row, int rows) { return row + (row < 0 ? rows : row >= rows ? -rows : 0); }

/* How one format is copied: the tensor maps of rows of a tile and of cells beyond a periodic face. */
struct Maps {
  BoxMap rows, side;
};

#if BULK
/* The values of one format in a row. A copy begins at a multiple of 16 bytes: the device calls any other
   start an illegal instruction. */
template <class Sizes>
INLINE void load_row(const Tile tile, unsigned char* to, unsigned char* side, const Maps* maps,
                     unsigned long long* barrier, int row, int plane, int nx)
{
  copy_box(to, &maps->rows, barrier, tile.x - Sizes::margin, row, plane);
  if (tile.left) copy_box(side, &maps->side, barrier, (nx - 1) / Sizes::side * Sizes::side, row, plane);
  if (tile.right) copy_box(side + REAL_ROWS * SIDE_BYTES, &maps->side, barrier, 0, row, plane);
}
template <class T, class Sizes> INLINE int bytes_of_row(int sides)
{
  return Sizes::count * (Sizes::pitch + sides * Sizes::side) * (int)sizeof(T);
}
/* The first lane of each warp copies a row. */
INLINE void load_plane(const Tile tile, unsigned char* stage, unsigned long long* barrier, const Maps* maps,
                       const Maps* wide_maps, int thread, int64 plane, ARGUMENTS)
{
  const int lines = tile.height + 2 * REACH;
  if (thread == 0) {
    const int sides = (int)tile.left + (int)tile.right;
    barrier_expect(barrier, lines * (bytes_of_row<wide, Wide>(sides) + bytes_of_row<store, Narrow>(sides)));
  }
  if (thread % 32) return;
#pragma unroll 1
  for (int line = thread / 32; line < lines; line += WARPS) {
    const int row = wrapped(tile.row + line - REACH, rows);
    unsigned char *const to = stage + line * ROW_BYTES, *const side = stage + SIDE_AT + line * SIDE_BYTES;
    if (WIDE) load_row<Wide>(tile, to, side, wide_maps, barrier, row, (int)plane, nx);
    load_row<Narrow>(tile, to + Wide::row_bytes, side + Wide::side_bytes, maps, barrier, row, (int)plane, nx);
  }
}
#else
/* Before tensor maps: all threads copy 16 bytes at a time. `source`: the first value of the plane; `to`
   and `side`: where it lies in a stage. */
template <class T, class Sizes>
INLINE void load_values(const Tile tile, const store* source, unsigned char* to, unsigned char* side,
                        int thread, int nx, int rows, int f_row, int f_slot)
{
  constexpr int pieces = Sizes::pitch / Sizes::side, slots = (int)(sizeof(T) / sizeof(store));
  const int lines = (tile.height + 2 * REACH) * Sizes::count;
  for (int k = thread; k < lines * (pieces + 2); k += THREADS) {
    const int piece = k % (pieces + 2), number = k / (pieces + 2);
    const int line = number / Sizes::count, value = number - line * Sizes::count;
    const T* const values = (const T*)(source + slots * value * f_slot);
    const T* const row = values + wrapped(tile.row + line - REACH, rows) * f_row;
    const bool beyond = piece >= pieces, right = piece > pieces;
    const int last = (nx - 1) / Sizes::side * Sizes::side;
    const int x = !beyond ? tile.x - Sizes::margin + piece * Sizes::side : right ? 0 : last;
    if (!beyond && x >= 0 && x < f_row)
      copy_async16((T*)(to + line * ROW_BYTES) + value * Sizes::pitch + piece * Sizes::side, row + x);
    if (beyond && (right ? tile.right : tile.left))
      copy_async16((T*)(side + ((right ? REAL_ROWS : 0) + line) * SIDE_BYTES) + value * Sizes::side, row + x);
  }
}
INLINE void load_plane(const Tile tile, unsigned char* stage, unsigned long long*, const Maps*, const Maps*,
                       int thread, int64 plane, ARGUMENTS)
{
  const store* const source = f_in + plane * f_plane;
  constexpr int slots = WIDE * (int)(sizeof(wide) / sizeof(store));
  unsigned char* const side = stage + SIDE_AT;
  if constexpr (WIDE > 0) load_values<wide, Wide>(tile, source, stage, side, thread, nx, rows, f_row, f_slot);
  load_values<store, Narrow>(tile, source + slots * f_slot, stage + Wide::row_bytes, side + Wide::side_bytes,
                             thread, nx, rows, f_row, f_slot);
}
#endif

INLINE Halo halo_of(const Tile tile, int thread, int nx)
{
  Halo halo = {-1, 0, {0, 0}, false};
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
  halo.beyond = (halo.way == 2 && tile.left) || (halo.way == 3 && tile.right);
  if (halo.beyond)
    halo.from = place_beyond_face((halo.way == 3 ? REAL_ROWS : 0) + row + REACH, halo.way == 3 ? 0 : nx - 1);
  else
    halo.from = place_in_row(row + REACH, x);
  return halo;
}

/* A block's way along `count` planes from `first` on; what walls cost is left out where it meets none, and
   in the planes where it meets none: `sides` are the walls along all its way. */
template <bool AT_WALLS>
INLINE void walk(const Tile tile, unsigned char* stages, real* deposits, unsigned long long* barriers,
                 const Maps* maps, const Maps* wide_maps, const Walls* walls, int sides, int64 first, int count,
                 ARGUMENTS)
{
  const int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
  const int tx = (int)threadIdx.x * CELLS, ty = (int)threadIdx.y;
  const auto load = [&](int k, int stage) {
    const int plane = (int)PLANE((int)first - 1 + k);
    if (k < count + 2)
      load_plane(tile, stages + stage * STAGE, barriers + stage, maps, wide_maps, thread, plane, GIVEN);
    if (!BULK) copy_commit();
  };
  for (int k = 0; k < STAGES; k++) load(k, k);
  const bool inside = tx < tile.width && ty < tile.height;
  const int at = (ty + REACH) * WIDTH + tx + CELLS;
  const Place from = place_in_row(ty + REACH, tx);
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
    const unsigned char* const values = stages + stage * STAGE;
    if (inside) {
      real moments[CELLS][VALUES];
      look(values, from, moments);
#pragma unroll
      for (int c = 0; c < CELLS; c++) rebuild(moments[c], f[c]);
    }
    if (BULK) __syncthreads();
    if (inside) deposit(deposits + at, f);
    if (halo.way >= 2)
      deposit_column(deposits + halo.at, values, halo);
    else if (halo.way >= 0) {
      real moments[CELLS][VALUES];
      look(values, halo.from, moments);
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
      constexpr int slots = (int)(sizeof(wide) / sizeof(store));
#pragma unroll
      for (int v = 0; v < WIDE; v++)
        send((wide*)(out + slots * v * f_slot) + cell, v, stored);
#pragma unroll
      for (int v = WIDE; v < VALUES; v++)
        send(out + ((v + WIDE * (slots - 1)) * f_slot + cell), v, stored);
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
sweep(const __grid_constant__ Maps maps, const __grid_constant__ Maps wide_maps, const Walls* walls,
      int64 begin, int64 end, int64 stride, int64 chunk, ARGUMENTS)
{
  extern __shared__ __align__(128) unsigned char memory[];
  unsigned char* const stages = memory;
  real* const deposits = (real*)(memory + STAGES * STAGE);
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
    walk<true>(tile, stages, deposits, barriers, &maps, &wide_maps, walls, sides, first, count, GIVEN);
    return;
  }
#endif
  walk<false>(tile, stages, deposits, barriers, &maps, &wide_maps, walls, 0, first, count, GIVEN);
}
