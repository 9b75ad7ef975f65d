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
#define NARROW (VALUES - WIDE)                 /* values in the format `store`, behind those in `wide` */
#define WIDTH (TX + 2 * CELLS)
#define TILE_VALUES (WIDTH * REAL_ROWS)
#define THREADS (TX / CELLS * TY)
#define HALO_ROWS (2 * TX / CELLS * REACH)
#define WARPS ((THREADS + 31) / 32)
#define COLUMN (THREADS >= HALO_ROWS + 64 ? 32 : REAL_ROWS)

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
INLINE void put(real* to, real first, real last)
{
  Packet<real> pair;
  pair.cell[0] = first;
  pair.cell[CELLS - 1] = last;
  *(Packet<real>*)to = pair;
}
INLINE void take(const real* from, real& first, real& last)
{
  const Packet<real> pair = *(const Packet<real>*)from;
  first = pair.cell[0];
  last = pair.cell[CELLS - 1];
}
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
INLINE void look_at_tailed(const store* values, real (*moments)[VALUES])
{
#pragma unroll
  for (int v = 0; v < VALUES; v++) {
    Halves own;
    own.bits = bits_at(values + v * Narrow::pitch);
    if (HEAD_IN(v) >= 0) own.bits &= ~TAILS;
    for (int c = 0; c < CELLS; c++) moments[c][v] = raw(own.packet.cell[c]);
    if (CARRIER_OF(v) >= 0) {
      const uint32 carriers = bits_at(values + CARRIER_OF(v) * Narrow::pitch);
      for (int c = 0; c < CELLS; c++) {
        const uint32 shifted = c ? carriers >> (16 - SPARE + TAIL) : carriers << (SPARE - TAIL);
        moments[c][v] = of_bits(bits_of(moments[c][v]) | (shifted & ((1u << SPARE) - (1u << (SPARE - TAIL)))));
      }
    }
  }
}
#endif
INLINE void look(const unsigned char* stage, const Place place, real (*moments)[VALUES])
{
  look_at<wide, Wide>((const wide*)(stage + place.wide), 0, moments);
#if TAIL
  look_at_tailed((const store*)(stage + place.narrow), moments);
#else
  look_at<store, Narrow>((const store*)(stage + place.narrow), WIDE, moments);
#endif
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

/* What a thread rebuilds beside the tile. `way`: 0 and 1 CELLS cells below and above in rows, 2 and 3 a
   cell in x, -1 nothing; `from` where its moments lie in a stage; `beyond` whether beyond a face. */
struct Halo {
  int way, at;
  Place from;
  bool beyond;
};
/* A value of the cell of a halo in x. */
template <int v> INLINE real value_of(const unsigned char* stage, const Halo& halo)
{
  if constexpr (v < WIDE)
    return raw(((const wide*)(stage + halo.from.wide))[v * (halo.beyond ? Wide::side : Wide::pitch)]);
  const store* const values = (const store*)(stage + halo.from.narrow);
  const int pitch = halo.beyond ? Narrow::side : Narrow::pitch;
#if TAIL
  if constexpr (CARRIER_OF(v) >= 0) return whole(values[v * pitch], values[CARRIER_OF(v) * pitch], TAIL);
  if constexpr (HEAD_IN(v) >= 0) return raw(without_tail(values[v * pitch], TAIL));
#endif
  return raw(values[(v - WIDE) * pitch]);
}
