/* Half-way walls of bodies at rest: blocks of words, see solids/body_walls.py. Bit i of the word of a cell says
   that population i would come from a solid cell, bit 0 that the cell itself is solid.

   Solid cells hold zeros, so that they send zeros: nothing is cleared in the cells around them. A cell next to a
   body adds its own outgoing populations of the opposite directions to its sums (`reflect`). */
struct Bodies {
  const int* blocks;    /* of a plane, row and BLOCK cells of it; 0: no bit is set */
  const uint32* words;  /* BLOCK of each block */
  int64 segments;       /* blocks of a row */
};
#define BLOCK 32

/* The words of neighbouring cells, the first of them at x. */
INLINE Packet<uint32> words_at(const Bodies& bodies, int64 plane, int row, int rows, int x)
{
  Packet<uint32> found = {};
  const int block = bodies.blocks[(plane * rows + row) * bodies.segments + x / BLOCK];
  if (block) found = packet_at(bodies.words + (int64)block * BLOCK + x % BLOCK);
  return found;
}
/* The solid cells of a thread, a bit each, from their words. */
INLINE int solids_in(const Packet<uint32>& words)
{
  int found = 0;
  for (int c = 0; c < CELLS; c++) found |= (int)(words.cell[c] & 1u) << c;
  return found;
}
/* Solid cells hold zeros. */
INLINE void empty_solids(int solids, real (*moments)[VALUES])
{
  if (!solids) return;
  keep_branch();
  for (int c = 0; c < CELLS; c++)
    if (solids >> c & 1)
      for (int v = 0; v < VALUES; v++) moments[c][v] = R(0);
}

/* Whether a row has bits in width cells from x on, which wrap around; x is inside the box. */
INLINE bool row_has_bits(const Bodies& bodies, int64 plane, int row, int rows, int x, int width, int nx)
{
  const int* const blocks = bodies.blocks + (plane * rows + row) * bodies.segments;
  bool found = false;
  while (width > 0) {
    const int in_block = BLOCK - x % BLOCK, in_row = nx - x, step = in_block < in_row ? in_block : in_row;
    found |= blocks[x / BLOCK] != 0;
    x = step < in_row ? x + step : 0;
    width -= step;
  }
  return found;
}
/* Set all values of the solid cells to zero; a block of threads for each (plane, row, block of cells). */
extern "C" __global__ void __launch_bounds__(BLOCK)
clear_solids(const __grid_constant__ Bodies bodies, store* f, int nx, int rows, int f_row, int f_slot, int64 f_plane)
{
  const int64 plane = (int64)blockIdx.x;
  const int row = (int)blockIdx.y, segment = (int)blockIdx.z, x = segment * BLOCK + (int)threadIdx.x;
  const int block = bodies.blocks[(plane * rows + row) * bodies.segments + segment];
  if (x >= nx || !(bodies.words[(int64)block * BLOCK + threadIdx.x] & 1u)) return;
  constexpr int slots = (int)(sizeof(wide) / sizeof(store));
  store* const values = f + plane * f_plane;
  const int cell = row * f_row + x;
  for (int v = 0; v < WIDE; v++) ((wide*)(values + slots * v * f_slot))[cell] = (wide)0;
  for (int v = WIDE; v < VALUES; v++) (values + (v + WIDE * (slots - 1)) * f_slot)[cell] = (store)0;
}
