// level: full
// package: TinyTorch
// about: a program finds the library by CMake, calls it, and catches what it throws
#include <aten/math.h>
#include <c10/error.h>

#include <cstdio>
#include <string>

int main() {
  if (tt::add({1, 2}, {3, 4}) != tt::Vector{4, 6}) {
    std::puts("error: 1 + 3 is not 4");
    return 1;
  }
  try {
    tt::add({1}, {});
  } catch (const tt::Error& error) {
    return std::string(error.what()) == "add: the lengths differ by 1" ? 0 : 1;
  }
  std::puts("error: nothing was thrown");
  return 1;
}
