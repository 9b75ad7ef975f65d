/* Faces of the box, x-, x+, row-, row+, plane-, plane+, that are half-way walls; see solids/box_walls.py. */
struct Walls {
  int faces, later[ROOM], moving;
  int64 planes[2];
  double u[ROOM][3];
};

/* The faces of the box that a cell touches. */
INLINE int faces_at(int x, int row, int nx, int rows)
{
  return (x == 0) | (x == nx - 1) << 1 | (row == 0) << 2 | (row == rows - 1) << 3;
}

/* The faces of the box that cell c of a thread touches. A thread's cells lie inside the box together, so only
   the outermost ones touch a face: the compiler leaves out the others. */
INLINE int faces_beside(int beside, int c)
{
  const int column = (c % CELLS == 0) | (c % CELLS == CELLS - 1) << 1;
  return beside >> 4 * c & (column | (c / CELLS == 0) << 2 | (c / CELLS == ROWS - 1) << 3);
}
