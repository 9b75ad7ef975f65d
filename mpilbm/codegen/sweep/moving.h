/* A cell in a body that moves: the velocity is computed where it is used, because registers are few. */
struct InBody {
  const double* motion;
  int number; /* of the body, 0 without one */
  real x, y, z;
};
INLINE Velocity velocity_in(const InBody& cell)
{
  return velocity_in_body(cell.motion, cell.number, cell.x, cell.y, cell.z);
}
