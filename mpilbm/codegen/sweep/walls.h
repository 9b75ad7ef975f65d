/* Faces of the box, x-, x+, row-, row+, plane-, plane+, that are half-way walls; see solids/box_walls.py. */
struct Walls {
  int faces, later[ROOM], moving;
  int64 planes[2];
  double u[ROOM][3];
};

