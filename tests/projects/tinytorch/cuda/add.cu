#include "cuda/gpu.h"
#include "cuda/gpu_math.h"

namespace tt::gpu {

__global__ void add_kernel(double* left, const double* right, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) left[i] += right[i];
}

std::vector<double> add(const std::vector<double>& left, const std::vector<double>& right) {
  if (left.size() != right.size()) throw Error("add: the lengths differ");
  DeviceArray a(left), b(right);
  add_kernel<<<a.blocks(), 256>>>(a.data(), b.data(), a.size());
  return a.read();
}

}  // namespace tt::gpu
