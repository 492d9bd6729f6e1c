#pragma once
// One source for CUDA and HIP: what PyTorch's hipify does to files, these lines do to names.

#ifdef TT_ROCM
#include <hip/hip_runtime.h>
#define cudaError_t hipError_t
#define cudaFree hipFree
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetErrorString hipGetErrorString
#define cudaMalloc hipMalloc
#define cudaMemcpy hipMemcpy
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaSuccess hipSuccess
#else
#include <cuda_runtime.h>
#endif

#include <vector>

#include "c10/error.h"

namespace tt {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) fail("GPU: {}", cudaGetErrorString(error));
}

// Numbers on the device for as long as this lives.
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<double>& values) : size_(values.size()) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { static_cast<void>(cudaFree(data_)); }

  double* data() { return data_; }
  int size() const { return static_cast<int>(size_); }
  int blocks() const { return (size() + 255) / 256; }
  std::vector<double> read() const {
    std::vector<double> out(size_);
    check(cudaMemcpy(out.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  std::size_t bytes() const { return size_ * sizeof(double); }

  std::size_t size_;
  double* data_ = nullptr;
};

}  // namespace tt
