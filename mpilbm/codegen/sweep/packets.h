/* The moment sweep: one launch a step, moments in, moments out; populations live in registers and in
   shared memory alone. A block owns a tile of TX * TY cells, CELLS neighbours in x a thread, and walks
   along the planes:

     copies    | plane k + 2 ......... | plane k + 3 ......... |      into the stages, ahead of use
     all       | rebuild k | deposit | gather | finish k - 1 | rebuild k + 1 | ...

   Of each plane the tile and the cells around it are rebuilt; what moves within the plane changes
   cells through `deposits`, what moves along the planes waits in the registers of its cell. What
   half-way walls on faces of the box send back is added to the sums of its own cell. The
   arithmetic of a cell is the same wherever it lies in a tile, and no product is contracted but by
   an fma that is written: neither tiles nor ranks change a bit. */

#define REAL_ROWS (TY + 2 * REACH)             /* rows of a tile with those around it */
#define MARGIN (32 / (int)sizeof(store))       /* values beside a row of a tile: whole sectors */
#define PITCH (TX + 2 * MARGIN)
#define SIDE (16 / (int)sizeof(store))         /* values of a row beyond a periodic face */
#define LINE_OF(values) (((values) * (int)sizeof(store) + 127) / 128 * 128 / (int)sizeof(store))
#define ROW_PITCH LINE_OF(VALUES * PITCH)
#define SIDE_PITCH LINE_OF(VALUES * SIDE)
#define SIDE_AT (REAL_ROWS * ROW_PITCH)
#define STAGE (SIDE_AT + 2 * REAL_ROWS * SIDE_PITCH)
#define WIDTH (TX + 2 * CELLS)
#define TILE_VALUES (WIDTH * REAL_ROWS)
#define THREADS (TX / CELLS * TY)
#define HALO_ROWS (2 * TX / CELLS * REACH)
#define WARPS ((THREADS + 31) / 32)
#define COLUMN (THREADS >= HALO_ROWS + 64 ? 32 : REAL_ROWS)

/* All is computed in the unit of what is stored; UNIT is the value of one of it. */
#ifdef STORE_HALF
#define UNIT R(1.0 / 32768.0)
#define RAW(value) half_to_float(value)
#define STORED(value) float_to_half(value)
#else
#define UNIT R(1)
#define RAW(value) R(value)
#define STORED(value) ((store)(value))
#endif
#define LOAD_RAW(values, index) RAW((values)[index])

/* Neighbouring cells are read and written at once. */
struct __align__(CELLS * sizeof(store)) Packet {
  store cell[CELLS];
};
struct __align__(CELLS * sizeof(real)) Pair {
  real cell[CELLS];
};
INLINE void put(real* to, real first, real last)
{
  Pair pair;
  pair.cell[0] = first;
  pair.cell[CELLS - 1] = last;
  *(Pair*)to = pair;
}
INLINE void take(const real* from, real& first, real& last)
{
  const Pair pair = *(const Pair*)from;
  first = pair.cell[0];
  last = pair.cell[CELLS - 1];
}
INLINE void look(const store* values, real (*moments)[VALUES])
{
#pragma unroll
  for (int v = 0; v < VALUES; v++) {
    const Packet packet = *(const Packet*)(values + v * PITCH);
    for (int c = 0; c < CELLS; c++) moments[c][v] = RAW(packet.cell[c]);
  }
}
INLINE void send(store* to, real first, real last)
{
  Packet packet;
  packet.cell[0] = STORED(first);
  packet.cell[CELLS - 1] = STORED(last);
  *(Packet*)to = packet;
}

