// level: full
// package: Torch
// timeout: 300
// about: what is thrown in libtorch is caught in a program (pytorch/pytorch#57744)
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <cstdio>
#include <cstring>

int main() {
  const at::Tensor matrix = at::ones({2, 3});
  try {
    at::mm(matrix, matrix);
  } catch (const c10::Error& error) {
    return std::strstr(error.what(), "shapes cannot be multiplied") ? 0 : 1;
  }
  std::puts("error: nothing was thrown");
  return 1;
}
