#include "aten/math.h"
#include "c10/error.h"

#ifdef TT_CBLAS
#include TT_CBLAS
#endif

namespace tt {
namespace {

#ifdef TT_CBLAS
void multiply(const double* a, const double* b, double* c, int m, int k, int n) {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0, a, k, b, n, 0.0, c, n);
}
#else
void multiply(const double* a, const double* b, double* c, int m, int k, int n) {
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l)
      for (int j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
}
#endif

}  // namespace

Vector matmul(const Vector& left, const Vector& right, int rows, int inner, int columns) {
  if (rows <= 0 || inner <= 0 || columns <= 0) throw Error("matmul: a side is not positive");
  const auto size = [](int a, int b) { return static_cast<std::size_t>(a) * b; };
  if (left.size() != size(rows, inner) || right.size() != size(inner, columns))
    fail("matmul: the sides don't fit, inner side {}", std::to_string(inner));
  Vector out(size(rows, columns));
  multiply(left.data(), right.data(), out.data(), rows, inner, columns);
  return out;
}

}  // namespace tt
