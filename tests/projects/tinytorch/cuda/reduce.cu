#include "cuda/gpu.h"
#include "cuda/gpu_math.h"

namespace tt::gpu {

__global__ void sum_kernel(const double* values, double* out, int size) {
  double total = 0;
  for (int i = 0; i < size; ++i) total += values[i];
  *out = total;
}

double sum(const std::vector<double>& values) {
  DeviceArray a(values), out({0.0});
  sum_kernel<<<1, 1>>>(a.data(), out.data(), a.size());
  return out.read()[0];
}

}  // namespace tt::gpu
