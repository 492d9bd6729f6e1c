#include "cuda/gpu.h"
#include "cuda/gpu_math.h"

namespace tt::gpu {

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

}  // namespace tt::gpu
