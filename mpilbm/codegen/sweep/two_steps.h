#if STEPS_OF_PASS == 2
/* The sweep with two steps in one pass over memory, for boxes that wrap around along an axis or have half-way
   walls at both of its faces. A block reads TX * TY cells of each plane; it computes the first step for all but
   those at the rim, the second for all but two on each side, its own. Each thread has CELLS neighbours in x
   and walks along the planes; the moments between the steps stay in its registers:

     copies  | plane k + 1 .......                  | into the slots of the thread itself
     all     | rebuild k | send | receive, finish k - 1, rebuild k - 1 | send | receive, finish k - 2 | rebuild k + 1
             |  first step                                               |  second step

   The functions of a cell are those of the single step, and between the steps moments are rounded as by a
   store and a load: the results have the bits of two launches of a single step. What is computed at the
   rim from messages that no thread sent is not used, and neither is what is computed beyond a wall, for which
   cells of the opposite side are read. */
#define OWN_X (TX - 4)
#define OWN_ROWS (TY - 4)
#define SLOT_WIDE (CELLS * (int)sizeof(wide)) /* bytes of a value of a thread's cells */
#define SLOT_NARROW (CELLS * (int)sizeof(store))
#define NARROW_AT (THREADS * WIDE * SLOT_WIDE)
#define STAGE_OF_SLOTS (NARROW_AT + THREADS * NARROW * SLOT_NARROW)

INLINE int around(int at, int count) { return at < 0 ? (at + 2 * count) % count : at % count; }

/* Moments as they are after a store and a load. */
INLINE void round_as_stored(real (*moments)[VALUES])
{
  __align__(16) wide first[(WIDE ? WIDE : 1) * CELLS];
  __align__(16) store others[NARROW * CELLS];
#pragma unroll
  for (int v = 0; v < WIDE; v++) send(first + v * CELLS, v, moments);
#pragma unroll
  for (int v = WIDE; v < VALUES; v++) send(others + (v - WIDE) * CELLS, v, moments);
  look_at_all<Spaced<WIDE, CELLS>, Spaced<NARROW, CELLS>>(first, others, moments);
}

/* Copy all values of a thread's cells, of which `cell` is the first in a plane that begins at `source`. */
INLINE void load_own(unsigned char* stage, int thread, const store* source, unsigned cell, int f_slot)
{
  constexpr int slots = (int)(sizeof(wide) / sizeof(store));
#pragma unroll
  for (int v = 0; v < WIDE; v++)
    copy_async<SLOT_WIDE>(stage + (v * THREADS + thread) * SLOT_WIDE, (const wide*)(source + slots * v * f_slot) + cell);
#pragma unroll
  for (int v = WIDE; v < VALUES; v++)
    copy_async<SLOT_NARROW>(stage + NARROW_AT + ((v - WIDE) * THREADS + thread) * SLOT_NARROW,
                            source + ((v + WIDE * (slots - 1)) * f_slot + cell));
}
INLINE void look_at_own(const unsigned char* stage, int thread, real (*moments)[VALUES])
{
  look_at_all<Spaced<WIDE, THREADS * CELLS>, Spaced<NARROW, THREADS * CELLS>>(
      stage + thread * SLOT_WIDE, stage + NARROW_AT + thread * SLOT_NARROW, moments);
}

/* A block's way along `count` planes from `first` on. What walls and bodies cost is left out where it meets
   none: FACES are the walls along rows and x that it may meet, AT_PLANES says that there may be walls across, AT_BODIES
   that there may be bodies. It stores cells with from_x <= x < end_x only. Planes beyond a wall are not read. */
template <int FACES, bool AT_PLANES, bool AT_BODIES>
INLINE void walk(unsigned char* memory, const Walls& walls, const Bodies& bodies, int from_x, int end_x,
                 int block_x, int block_row, int64 first, int count, ARGUMENTS)
{
  unsigned char* const stages = memory;
  const int pair = (int)threadIdx.x, line = (int)threadIdx.y, thread = line * (TX / CELLS) + pair;
  const int at = line * SENDERS + pair;
  real* const messages_1 = (real*)(memory + STAGES * STAGE_OF_SLOTS);
  real* const messages_2 = messages_1 + 2 * MIRROR;
  const int beyond_x = block_x * OWN_X + pair * CELLS - 2, beyond_row = block_row * OWN_ROWS + line - 2;
  const int x = around(beyond_x, nx), row = around(beyond_row, rows);
  const unsigned cell = (unsigned)(row * f_row + x);
  const bool middle = line >= 1 && line < TY - 1;
  const bool own = line >= 2 && line < TY - 2 && pair * CELLS >= 2 && pair * CELLS < TX - 2 &&
                   beyond_x >= from_x && beyond_x < end_x && beyond_row < rows;
  int beside = 0, lowest = -2, highest = count + 4; /* planes at walls, as numbers k of the first step */
  if constexpr (FACES != 0)
    for (int c = 0; c < CELLS; c++) beside |= (walls.faces & FACES & faces_at(beyond_x + c, beyond_row, nx, rows)) << 4 * c;
  if constexpr (AT_PLANES) {
    if (walls.planes[0] >= first - 2) lowest = (int)(walls.planes[0] - first + 2);
    if (walls.planes[1] <= first + count) highest = (int)(walls.planes[1] - first + 2);
  }
  const int start = AT_PLANES && lowest > 0 ? lowest : 0;
  const auto load = [&](int k, int stage) {
    if (k < count + 4 && (!AT_PLANES || k <= highest))
      load_own(stages + stage * STAGE_OF_SLOTS, thread, f_in + PLANE(first - 2 + k) * f_plane, cell, f_slot);
    copy_commit();
  };
#pragma unroll
  for (int k = 0; k < STAGES; k++) load(start + k, k);
  store* out = f_out + (first - 4 + start) * f_plane;
  real current_1[CELLS][SUMS] = {}, rising_1[CELLS][RISING] = {};
  real current_2[CELLS][SUMS] = {}, rising_2[CELLS][RISING] = {};
  int stage = 0, solids = 0; /* CELLS bits of each plane, the last one first */
#pragma unroll 1
  for (int k = start; k < count + 4; k++, out += f_plane) {
    real f[CELLS][Q], moments[CELLS][VALUES];
    copy_wait<STAGES - 1>();
    look_at_own(stages + stage * STAGE_OF_SLOTS, thread, moments);
    load(k + STAGES, stage);
    if (++stage == STAGES) stage = 0;
    /* What comes from beyond a wall is zero, and what a wall returns is added; `number`: the plane of the step. */
    const auto enclose = [&](int number WHERE_MIRRORS(, const real* messages)) {
      if constexpr (AT_PLANES)
        if (number > highest) {
          keep_branch();
          for (int c = 0; c < CELLS; c++)
            for (int i = 0; i < Q; i++) f[c][i] = R(0);
        }
      if constexpr (FACES != 0)
        if (beside WHERE_MIRRORS(&& number <= highest)) {
          keep_branch();
#pragma unroll
          for (int c = 0; c < CELLS; c++)
            clear(FACES & faces_beside(beside, c), f[c] WHERE_MIRRORS(, messages, at, c));
        }
    };
    const auto words = [&](int number) { /* no slab has planes below those of number 0 */
      if (number < 0 || (AT_PLANES && (number < lowest || number > highest))) return Packet<uint32>{};
      return words_at(bodies, PLANE(first - 2 + number), row, rows, x);
    };
    const auto return_from_bodies = [&](const Packet<uint32> words, const real* messages, real (*current)[SUMS]) {
#pragma unroll
      for (int c = 0; c < CELLS; c++)
        if (words.cell[c] > 1) reflect(words.cell[c], messages, at, f, c, current[c]);
    };
    const auto return_from_walls = [&](int number, const real* messages, real (*current)[SUMS]) {
      if constexpr (FACES != 0 || AT_PLANES) {
        const int across = AT_PLANES ? (number == lowest) << 4 | (number == highest) << 5 : 0;
        if (beside | across) {
#pragma unroll
          for (int c = 0; c < CELLS; c++) {
            const int faces = FACES & faces_beside(beside, c) | across;
            if (FACES > 3 || AT_PLANES ? faces > 3 : false)
              bounce(faces & (FACES | (AT_PLANES ? 48 : 0)), walls, messages, at, f, c, current[c]);
            else if (faces) /* all warps of a block at x- or x+ take it: it tests no other face */
              bounce(faces & FACES & 3, walls, messages, at, f, c, current[c]);
          }
        }
      }
    };
#pragma unroll
    for (int c = 0; c < CELLS; c++) rebuild(moments[c], f[c]);
    send_messages(messages_1, at, 0, f);
    __syncthreads();
    if (middle) {
      receive_from_above(messages_1, at, f);
      receive_others(messages_1, at, f);
      enclose(k WHERE_MIRRORS(, messages_1));
      /* Cells are complete from k = 2 on; before, they have the numbers of a plane that exists. */
#pragma unroll
      for (int c = 0; c < CELLS; c++) {
        finish(moments[c], current_1[c], f[c], NUMBERS_BETWEEN(PLANE(first - 3 + (k > 1 ? k : 2)), row, x + c));
        advance(current_1[c], rising_1[c], f[c]);
      }
      return_from_walls(k, messages_1, current_1);
      if constexpr (AT_BODIES) {
        empty_solids(solids & ((1 << CELLS) - 1), moments);
        const Packet<uint32> own_words = words(k);
        return_from_bodies(own_words, messages_1, current_1);
        solids = solids << CELLS | solids_in(own_words);
      }
      round_as_stored(moments);
#pragma unroll
      for (int c = 0; c < CELLS; c++) rebuild(moments[c], f[c]);
      send_messages(messages_2, at, 0, f);
    }
    __syncthreads();
    if (!own || (AT_PLANES && k <= lowest)) continue;
    receive_from_above(messages_2, at, f);
    receive_others(messages_2, at, f);
    enclose(k - 1 WHERE_MIRRORS(, messages_2));
    if (k > 3) {
#pragma unroll
      for (int c = 0; c < CELLS; c++) finish(moments[c], current_2[c], f[c], NUMBERS(first - 4 + k, row, x + c));
      if constexpr (AT_BODIES) empty_solids(solids >> 2 * CELLS & ((1 << CELLS) - 1), moments);
      send_all(out + cell, (int)cell, f_slot, moments);
    }
#pragma unroll
    for (int c = 0; c < CELLS; c++) advance(current_2[c], rising_2[c], f[c]);
    return_from_walls(k - 1, messages_2, current_2);
    if constexpr (AT_BODIES) return_from_bodies(words(k - 1), messages_2, current_2);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sweep(const __grid_constant__ Walls walls, const __grid_constant__ Bodies bodies, const int64* blocks, int from_x, int end_x,
      int64 begin, int64 end, int64 stride, int64 chunk, ARGUMENTS)
{
  extern __shared__ __align__(128) unsigned char memory[];
#if LISTED
  const int64 block = blocks[blockIdx.x];
  const int block_x = (int)(block & 0xfffff), block_row = (int)(block >> 20 & 0xfffff), part = (int)(block >> 40);
#else
  const int block_x = (int)blockIdx.x, block_row = (int)blockIdx.y, part = (int)blockIdx.z;
#endif
  const int64 first = begin + part * (stride > 1 ? stride : chunk);
  const int count = (int)(end - first < chunk ? end - first : chunk);
  walk<FACES_MET, PLANES_MET, BODIES_MET>(memory, walls, bodies, from_x, end_x, block_x, block_row, first, count, GIVEN);
}
#endif
