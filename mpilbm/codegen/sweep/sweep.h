#if STEPS_OF_PASS == 1
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
      copy_async<16>((T*)(to + line * ROW_BYTES) + value * Sizes::pitch + piece * Sizes::side, row + x);
    if (beyond && (right ? tile.right : tile.left))
      copy_async<16>((T*)(side + ((right ? REAL_ROWS : 0) + line) * SIDE_BYTES) + value * Sizes::side, row + x);
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

INLINE Halo halo_in_rows(const Tile tile, int thread)
{
  const bool above = thread >= TX / CELLS;
  const int number = above ? thread - TX / CELLS : thread;
  const int row = above ? tile.height : -1, at = (above ? tile.height / ROWS : -1) * SENDERS + number;
  const int bits = number * CELLS >= tile.width ? 0 : above ? Halo::ABOVE : Halo::BELOW;
  return {bits, at, place_in_row(row + REACH, number * CELLS)};
}
INLINE Halo halo_beside(const Tile tile, int number, int nx)
{
  const bool right = number >= REAL_ROWS, beyond = right ? tile.right : tile.left;
  const int line = right ? number - REAL_ROWS : number, row = line - REACH;
  const int above = row + ROWS; /* not negative */
  int bits = row < tile.height + REACH ? Halo::BESIDE : 0;
  if (right) bits |= Halo::RIGHT;
  if (beyond) bits |= Halo::BEYOND;
  if (above % ROWS != (right ? ROWS - 1 : 0)) bits |= Halo::SECOND;
#pragma unroll
  for (int step = -1; step < 2; step++) {
    const int reached = right ? row - step : row + step;
    if (reached >= 0 && reached < tile.height WHERE_MIRRORS(|| (row >= 0 && row < tile.height))) bits |= step < 0 ? Halo::REACHES / 2 : Halo::REACHES << step;
  }
  const int at = (above / ROWS - 1) * SENDERS + (right ? tile.width / CELLS : 0);
  return {bits, at, beyond ? place_beyond_face((right ? REAL_ROWS : 0) + line, right ? 0 : nx - 1)
                           : place_in_row(line, right ? tile.width : -1)};
}
INLINE Halo halo_of(const Tile tile, int thread, int nx)
{
  if (thread < HALO_ROWS) return halo_in_rows(tile, thread);
  if (thread < HALO_ROWS + 2 * REAL_ROWS) return halo_beside(tile, thread - HALO_ROWS, nx);
  return {0, 0, {0, 0}};
}

/* Place of a thread in its tile. Where instructions are the limit, threads at x- or x+ exchange their places
   with threads of the first row, so that few warps have all of them: only these take the time of walls
   along x. Threads whose cells share a sector of memory move together. */
INLINE int2 place_of_thread(const Tile tile, int sides)
{
  const int column = (int)threadIdx.x, row = (int)threadIdx.y, last = tile.width / CELLS - 1;
  const bool right = (sides & 3) == 2;
  const int inwards = right ? last - column : column, sector = inwards / SECTOR;
  const bool swapped = SWAPPED && (right || (sides & 3) == 1) && inwards >= 0 && sector < THREAD_ROWS &&
                         (sector == 0 || row == 0) && last + 1 >= THREAD_ROWS * SECTOR;
  if (!swapped) return make_int2(column, row);
  const int to = row * SECTOR + inwards % SECTOR;
  return make_int2(right ? last - to : to, sector);
}

/* Whether a body is in the planes of a block's way; all threads call it. */
INLINE bool meets_bodies(const Tile tile, const Bodies& bodies, int64 first, int count, ARGUMENTS)
{
  __shared__ int met;
  if (threadIdx.x == 0 && threadIdx.y == 0) met = 0;
  __syncthreads();
  for (int n = (int)(threadIdx.y * blockDim.x + threadIdx.x); n < count * tile.height; n += THREADS)
    if (row_has_bits(bodies, first + n / tile.height, tile.row + n % tile.height, rows, tile.x, tile.width, nx)) met = 1;
  __syncthreads();
  return met;
}

/* A block's way along `count` planes from `first` on; what walls and bodies cost is left out where it meets
   none, and in the planes where it meets none: `sides` are the walls along all its way, `met` says that bodies are there. */
template <bool AT_WALLS, bool AT_BODIES>
INLINE void walk(const Tile tile, unsigned char* stages, real* messages, unsigned long long* barriers,
                 const Maps* maps, const Maps* wide_maps, const Walls& walls, const Bodies& bodies, int sides, bool met,
                 int64 first, int count, ARGUMENTS)
{
  const int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x);
  const int2 place = place_of_thread(tile, AT_WALLS ? sides : 0);
  const int tx = place.x * CELLS, ty = place.y * ROWS;
  const auto load = [&](int k, int stage) {
    const int plane = (int)PLANE((int)first - 1 + k);
    if (k < count + 2)
      load_plane(tile, stages + stage * STAGE, barriers + stage, maps, wide_maps, thread, plane, GIVEN);
    if (!BULK) copy_commit();
  };
  for (int k = 0; k < STAGES; k++) load(k, k);
  const bool inside = tx < tile.width && ty < tile.height;
  const int at = place.y * SENDERS + place.x;
  const Place from = place_in_row(ty + REACH, tx);
  const Halo halo = halo_of(tile, thread, nx);
  const int cell = (tile.row + ty) * f_row + tile.x + tx;
  store* out = f_out + ((first - 2) * f_plane + cell);
  int beside = 0, lowest = -1, highest = count + 2;  /* planes at walls, as numbers k */
  if constexpr (AT_WALLS) {
    for (int c = 0; c < OWNED; c++)
      beside |= (sides & faces_at(tile.x + tx + c % CELLS, tile.row + ty + c / CELLS, nx, rows)) << 4 * c;
    if (walls.planes[0] >= first - 1) lowest = (int)(walls.planes[0] - first + 1);
    if (walls.planes[1] <= first + count) highest = (int)(walls.planes[1] - first + 1);
  }
  real current[OWNED][SUMS] = {}, rising[OWNED][RISING] = {};
  int solids[ROWS] = {}; /* of the plane before */
  int stage = 0;
  unsigned phase = 0;
  for (int k = 0; k < count + 2; k++, out += f_plane) {
    real f[OWNED][Q];
    const int across = AT_WALLS ? (k == lowest) << 4 | (k == highest) << 5 : 0;
    if (BULK)
      barrier_wait(barriers + stage, phase);
    else {
      copy_wait<STAGES - 1>();
      __syncthreads();
    }
    const unsigned char* const values = stages + stage * STAGE;
    const auto send_halo = [&] {
      if (halo.is(Halo::BESIDE))
        send_column(messages, values, halo);
      else if (halo.is(Halo::BELOW | Halo::ABOVE)) {
        real moments[CELLS][VALUES];
        look(values, halo.from, moments);
        send_row(messages, halo, moments);
      }
    };
    /* Registers are few: threads with more rows send each row at once, and all threads rebuild, also those
       outside the box, because a condition would keep f in registers all along the loop. */
    if (ROWS > 1) {
      if (BULK) __syncthreads();
      send_halo();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      real moments[CELLS][VALUES];
      look(values, row_after(from, r), moments);
#pragma unroll
      for (int c = 0; c < CELLS; c++) rebuild(moments[c], f[r * CELLS + c]);
      if (BULK && ROWS == 1) __syncthreads();
      if (inside) send_messages(messages, at, r, f);
    }
    if (ROWS == 1) send_halo();
    __syncthreads();
    load(k + STAGES, stage);
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
    if (!inside || k < lowest) continue;
    const auto clear_beside = [&] {
      if (!AT_WALLS || !beside WHERE_MIRRORS(|| k > highest)) return;
      keep_branch();
#pragma unroll
      for (int c = 0; c < OWNED; c++) clear(faces_beside(beside, c), f[c] WHERE_MIRRORS(, messages, at, c));
    };
    receive_from_above(messages, at, f);
    if (AT_WALLS && k > highest) {
      keep_branch();
      for (int c = 0; c < OWNED; c++)
        for (int i = 0; i < Q; i++) f[c][i] = R(0);
    }
    clear_beside();
    if (k > 1) {
      keep_branch();
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        real stored[CELLS][VALUES];
#pragma unroll
        for (int n = 0, c = r * CELLS; n < CELLS; n++, c++)
          finish(stored[n], current[c], f[c], NUMBERS(first - 2 + k, tile.row + ty + r, tile.x + tx + n));
        if constexpr (AT_BODIES) empty_solids(solids[r], stored);
        send_all(out + r * f_row, cell + r * f_row, f_slot, stored);
      }
    }
    receive_others(messages, at, f);
    clear_beside();
#pragma unroll
    for (int c = 0; c < OWNED; c++) advance(current[c], rising[c], f[c]);
    if constexpr (AT_WALLS)
      if (beside | across) {
#pragma unroll
        for (int c = 0; c < OWNED; c++)
          bounce(faces_beside(beside, c) | across, walls, messages, at, f, c, current[c]);
      }
    if (AT_BODIES && met) {
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const Packet<uint32> words = words_at(bodies, PLANE(first - 1 + k), tile.row + ty + r, rows, tile.x + tx);
        solids[r] = solids_in(words);
#pragma unroll
        for (int n = 0, c = r * CELLS; n < CELLS; n++, c++)
          if (words.cell[n] > 1) reflect(words.cell[n], messages, at, f, c, current[c]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sweep(const __grid_constant__ Maps maps, const __grid_constant__ Maps wide_maps, const __grid_constant__ Walls walls,
      const __grid_constant__ Bodies bodies, int64 begin, int64 end, int64 stride, int64 chunk, ARGUMENTS)
{
  extern __shared__ __align__(128) unsigned char memory[];
  unsigned char* const stages = memory;
  real* const messages = (real*)(memory + STAGES * STAGE);
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
  int sides = 0;
  bool near = false, met = false; /* walls of the box or bodies, bodies */
#if WALLS
  const int around = tile.left | tile.right << 1 | (tile.row == 0) << 2 | (tile.row + tile.height == rows) << 3;
  sides = walls.faces & around;
  near = sides || first <= walls.planes[0] || first + count > walls.planes[1];
#endif
#if BODIES
  met = meets_bodies(tile, bodies, first, count, GIVEN);
#endif
  if (near || met)
    walk<WALLS, BODIES>(tile, stages, messages, barriers, &maps, &wide_maps, walls, bodies, sides, met, first, count, GIVEN);
  else
    walk<false, false>(tile, stages, messages, barriers, &maps, &wide_maps, walls, bodies, 0, false, first, count, GIVEN);
}
#endif
