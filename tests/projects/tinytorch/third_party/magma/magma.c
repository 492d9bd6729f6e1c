#include "magma.h"

const char* magma_version(void) { return "2.7.2"; }

int magma_solve2(const double* m, const double* right, double* out) {
  const double det = m[0] * m[3] - m[1] * m[2];
  if (det == 0.0) return 1;
  out[0] = (right[0] * m[3] - right[1] * m[1]) / det;
  out[1] = (right[1] * m[0] - right[0] * m[2]) / det;
  return 0;
}
