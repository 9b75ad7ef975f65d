/* The driver of a kernel that computes all planes of a slab and exchanges its edge planes.

   The blocks of the edge planes have the lowest numbers, so that a GPU begins with them. Such a block
   waits until the neighbour's planes of the previous step have arrived, computes its cells and stores
   the values that cross the face a second time, in the neighbour's memory. The last such block of a
   face sets the neighbour's flag. The other blocks wait for nothing. */
INLINE const Face* face_of(const Faces* faces)
{
  return blockIdx.z < 2 ? faces->face + blockIdx.z : nullptr;
}

/* The plane of a block: the first, the last, then the others in their order. */
INLINE int64 plane_of(int64 begin, int64 end)
{
  const int64 z = (int64)blockIdx.z;
  return z == 0 ? begin : z == 1 ? end - 1 : begin + z - 1;
}

/* Waits for the neighbour's planes; false if the neighbour has ended. */
INLINE bool before_cells(const Faces* faces, const Face* face)
{
  __shared__ word arrived;
  if (threadIdx.x == 0 && threadIdx.y == 0)
    arrived = await(face->arrived, *face->steps, faces->failure, face->failed, faces->patience);
  __syncthreads();
  return arrived;
}

/* The values of one or two cells of a thread, which it has stored in `f_out`; `at`: the index of the first
   within a slot, `left`: cells from it to the end of the row. */
INLINE void store_again(const Face* face, const store* f_out, int f_slot, int64 at, int cells, int left)
{
  store* to = (store*)face->to;
  int64 index = (int64)face->start + at;
  const int slots = (int)face->slots;
  if (cells == 2 && left > 1)
#pragma unroll 5
    for (int k = 0; k < slots; k++, index += f_slot)
      *(store2*)(to + index) = *(const store2*)(f_out + index);
  else
    for (int k = 0; k < slots; k++, index += f_slot) to[index] = f_out[index];
}

/* The barrier and the fence order the stores of all threads of the block before the count, and so before
   the flag. The last block changes the numbers, after all blocks of the face have read them. */
INLINE void after_cells(const Face* face)
{
  __syncthreads();
  if (threadIdx.x != 0 || threadIdx.y != 0) return;
  __threadfence_system();
  if (atomicAdd(face->blocks, 1ull) != gridDim.x * gridDim.y - 1) return;
  const word turn = *face->steps + 1;
  *face->steps = turn;
  *face->blocks = 0;
  __threadfence_system();
  set_flag(face->peer_arrived, turn);
}

#define FOR_CELLS_AND_FACES(cells, compute)                                                   \
  const int x = cells * (int)(blockIdx.x * blockDim.x + threadIdx.x);                         \
  const int row = (int)(blockIdx.y * blockDim.y + threadIdx.y);                               \
  const int64 plane = plane_of(begin, end);                                                   \
  const Face* const face = face_of(faces);                                                    \
  if (face && !before_cells(faces, face)) return;                                             \
  const bool inside = x < nx && row < rows;                                                   \
  if (inside) { compute; }                                                                    \
  if (!face) return;                                                                          \
  if (inside) store_again(face, f_out, f_slot, (int64)row * f_row + x, cells, nx - x);        \
  after_cells(face);
