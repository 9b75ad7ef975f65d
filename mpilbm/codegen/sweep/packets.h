/* The moment sweep: one launch a step, moments in, moments out; populations live in registers and in
   shared memory alone. A block owns a tile of TX * TY cells, a thread ROWS rows of CELLS neighbours, and
   the block walks along the planes:

     copies    | plane k + 2 ......... | plane k + 3 ......... |      into the stages, ahead of use
     all       | rebuild k | send | receive | finish k - 1 | rebuild k + 1 | ...

   Of each plane the tile and the cells around it are rebuilt; what moves within the plane changes
   cells in the registers of a thread or, as messages, through shared memory; what moves along the planes
   waits in the registers of its cell. What half-way walls on faces of the box send back is added to
   the sums of its own cell. The arithmetic of a cell is the same wherever it lies in a tile, and no
   product is contracted but by an fma that is written: neither tiles nor ranks change a bit. */

#define REAL_ROWS (TY + 2 * REACH)             /* rows of a tile with those around it */
#define NARROW (VALUES - WIDE)                 /* values in the format `store`, behind those in `wide` */
#define OWNED (ROWS * CELLS)                   /* cells of a thread */
#define THREAD_ROWS (TY / ROWS)
#define SENDERS (TX / CELLS + 1)               /* threads of a row that send a message */
#define MIRROR (((LEVELS * THREAD_ROWS + MORE) * SENDERS + 3) / 4 * 4) /* values of half of the messages */
#define THREADS (TX / CELLS * THREAD_ROWS)
#define SECTOR (32 / (CELLS * (int)sizeof(store))) /* threads whose cells share 32 bytes, a sector, of a row */
#define SWAPPED (sizeof(store) == 2) /* wider values: memory is the limit, and scattered stores cost more */
#define HALO_ROWS (2 * TX / CELLS * REACH)
#define WARPS ((THREADS + 31) / 32)

/* The values of one format in a row of a stage; sizes in bytes, copies begin at multiples of 128. */
template <class T, int COUNT> struct Share {
  static constexpr int count = COUNT;
  static constexpr int margin = 32 / (int)sizeof(T); /* cells beside a row of a tile: whole sectors */
  static constexpr int pitch = TX + 2 * margin;
  static constexpr int side = 16 / (int)sizeof(T);   /* cells of a row beyond a periodic face */
  static constexpr int row_bytes = (COUNT * pitch * (int)sizeof(T) + 127) / 128 * 128;
  static constexpr int side_bytes = (COUNT * side * (int)sizeof(T) + 127) / 128 * 128;
};
typedef Share<wide, WIDE> Wide;
typedef Share<store, NARROW> Narrow;
/* Values whose numbers for a thread's cells lie PITCH numbers apart. */
template <int COUNT, int PITCH> struct Spaced {
  static constexpr int count = COUNT, pitch = PITCH;
};
#define ROW_BYTES (Wide::row_bytes + Narrow::row_bytes)
#define SIDE_BYTES (Wide::side_bytes + Narrow::side_bytes)
#define SIDE_AT (REAL_ROWS * ROW_BYTES)
#define STAGE (SIDE_AT + 2 * REAL_ROWS * SIDE_BYTES)

/* All is computed in the unit of what is stored; UNIT is the value of one of it. */
#ifdef STORE_HALF
#define UNIT R(1.0 / 32768.0)
INLINE real raw(unsigned short bits) { return half_to_float(bits); }
#else
#define UNIT R(1)
#endif
INLINE real raw(float value) { return R(value); }
INLINE real raw(double value) { return R(value); }

/* Neighbouring cells are read and written at once. */
template <class T> struct __align__(CELLS * sizeof(T)) Packet {
  T cell[CELLS];
};
/* Values of a message that are read and written at once. */
template <int N> struct __align__(N * sizeof(real) > 16 ? 16 : N * sizeof(real)) Group {
  real value[N];
};
template <int N> INLINE void put(real* to, const Group<N>& values) { *(Group<N>*)to = values; }
template <int N> INLINE Group<N> taken(const real* from) { return *(const Group<N>*)from; }
/* Where the first values of a cell lie in a stage, in bytes, for both formats. */
struct Place {
  int wide, narrow;
};
INLINE Place place_in_row(int line, int x)
{
  const int row = line * ROW_BYTES;
  return {row + (Wide::margin + x) * (int)sizeof(wide),
          row + Wide::row_bytes + (Narrow::margin + x) * (int)sizeof(store)};
}
INLINE Place row_after(const Place place, int rows)
{
  return {place.wide + rows * ROW_BYTES, place.narrow + rows * ROW_BYTES};
}
INLINE Place place_beyond_face(int line, int x)
{
  const int row = SIDE_AT + line * SIDE_BYTES;
  return {row + x % Wide::side * (int)sizeof(wide),
          row + Wide::side_bytes + x % Narrow::side * (int)sizeof(store)};
}
template <class T> INLINE Packet<T> packet_at(const T* values) { return *(const Packet<T>*)values; }
template <class T, class Sizes> INLINE void look_at(const T* values, int first, real (*moments)[VALUES])
{
#pragma unroll
  for (int v = 0; v < Sizes::count; v++) {
    const Packet<T> packet = packet_at(values + v * Sizes::pitch);
    for (int c = 0; c < CELLS; c++) moments[c][first + v] = raw(packet.cell[c]);
  }
}
#if TAIL
/* All values are in 16 bits. The packed last bits of the cells of a packet, and a value without them. */
#define TAILS (((1u << TAIL) - 1) * (CELLS == 2 ? 0x10001u : 1u))
union Halves {
  Packet<unsigned short> packet;
  uint32 bits;
};
INLINE uint32 bits_at(const store* values)
{
  Halves both;
  both.bits = 0;
  both.packet = packet_at(values);
  return both.bits;
}
template <class Sizes> INLINE void look_at_tailed(const store* values, real (*moments)[VALUES])
{
#pragma unroll
  for (int v = 0; v < VALUES; v++) {
    Halves own;
    own.bits = bits_at(values + v * Sizes::pitch);
    if (HEAD_IN(v) >= 0) own.bits &= ~TAILS;
    for (int c = 0; c < CELLS; c++) moments[c][v] = raw(own.packet.cell[c]);
    if (CARRIER_OF(v) >= 0) {
      const uint32 carriers = bits_at(values + CARRIER_OF(v) * Sizes::pitch);
      for (int c = 0; c < CELLS; c++) {
        const uint32 shifted = c ? carriers >> (16 - SPARE + TAIL) : carriers << (SPARE - TAIL);
        moments[c][v] = of_bits(bits_of(moments[c][v]) | (shifted & ((1u << SPARE) - (1u << (SPARE - TAIL)))));
      }
    }
  }
}
#endif
template <class First, class Others>
INLINE void look_at_all(const void* first, const void* others, real (*moments)[VALUES])
{
  look_at<wide, First>((const wide*)first, 0, moments);
#if TAIL
  look_at_tailed<Others>((const store*)others, moments);
#else
  look_at<store, Others>((const store*)others, WIDE, moments);
#endif
}
INLINE void look(const unsigned char* stage, const Place place, real (*moments)[VALUES])
{
  look_at_all<Wide, Narrow>(stage + place.wide, stage + place.narrow, moments);
}
/* Store value v of the cells of a thread. */
template <class T> INLINE void send(T* to, int v, const real (*stored)[VALUES])
{
  Packet<T> packet;
  for (int c = 0; c < CELLS; c++) packet.cell[c] = (T)stored[c][v];
  *(Packet<T>*)to = packet;
}
#ifdef STORE_HALF
INLINE void send(unsigned short* to, int v, const real (*stored)[VALUES])
{
  const real first = stored[0][v], last = CELLS == 2 ? stored[CELLS - 1][v] : R(0);
  uint32 bits;
#if TAIL
  if (CARRIER_OF(v) >= 0)
    bits = floats_to_cut_halves(of_bits(rounded(first, SPARE - TAIL)), of_bits(rounded(last, SPARE - TAIL)));
  else if (HEAD_IN(v) >= 0) {
    const uint32 low = rounded(stored[0][HEAD_IN(v)], SPARE - TAIL);
    const uint32 high = rounded(stored[CELLS - 1][HEAD_IN(v)], SPARE - TAIL);
    bits = floats_to_cut_halves(of_bits(rounded(first, SPARE + TAIL)), of_bits(rounded(last, SPARE + TAIL)));
    bits ^= (bits ^ low_halves(low, high) >> (SPARE - TAIL)) & TAILS;
  } else
#endif
    bits = floats_to_halves(first, last);
  if (CELLS == 2) *(uint32*)to = bits;
  else *to = (store)bits;
}
#endif

/* Store all values of CELLS cells, the first of them `cell` of its plane; `out`: where its first value lies
   in the format `store`. */
INLINE void send_all(store* out, int cell, int f_slot, const real (*stored)[VALUES])
{
  constexpr int more = (int)(sizeof(wide) - sizeof(store)), slots = (int)(sizeof(wide) / sizeof(store));
  store* const widest = (store*)((unsigned char*)out + cell * more);
#pragma unroll
  for (int v = 0; v < WIDE; v++) send((wide*)(widest + slots * v * f_slot), v, stored);
#pragma unroll
  for (int v = WIDE; v < VALUES; v++) send(out + (v + WIDE * (slots - 1)) * f_slot, v, stored);
}

/* What a thread rebuilds beside the tile: CELLS cells of the row below or above, or a cell beside a row of
   the tile, at its right end or not; packed, because registers are few. `at`: its place among the senders
   of a message; `from`: where its moments lie in a stage. */
struct Halo {
  enum Bits { BELOW = 1, ABOVE = 2, BESIDE = 4, RIGHT = 8, BEYOND = 16, SECOND = 32, REACHES = 128 };
  int bits, at;
  Place from;
  __device__ __forceinline__ bool is(int bit) const { return (bits & bit) != 0; }
  /* Whether a population that moves by `step` rows, or back at the right end, reaches a row of the tile. */
  __device__ __forceinline__ bool reaches(int step) const { return is(step < 0 ? REACHES / 2 : REACHES << step); }
};
/* A value of the cell of a halo in x. */
template <int v> INLINE real value_of(const unsigned char* stage, const Halo& halo)
{
  if constexpr (v < WIDE)
    return raw(((const wide*)(stage + halo.from.wide))[v * (halo.is(Halo::BEYOND) ? Wide::side : Wide::pitch)]);
  const store* const values = (const store*)(stage + halo.from.narrow);
  const int pitch = halo.is(Halo::BEYOND) ? Narrow::side : Narrow::pitch;
#if TAIL
  if constexpr (CARRIER_OF(v) >= 0) return whole(values[v * pitch], values[CARRIER_OF(v) * pitch], TAIL);
  if constexpr (HEAD_IN(v) >= 0) return raw(without_tail(values[v * pitch], TAIL));
#endif
  return raw(values[(v - WIDE) * pitch]);
}
