#include "cuda/gpu.h"
#include "cuda/gpu_math.h"

namespace tt::gpu {

__global__ void scale_kernel(double* values, double factor, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) values[i] *= factor;
}

std::vector<double> scale(const std::vector<double>& values, double factor) {
  DeviceArray a(values);
  scale_kernel<<<a.blocks(), 256>>>(a.data(), factor, a.size());
  return a.read();
}

}  // namespace tt::gpu
