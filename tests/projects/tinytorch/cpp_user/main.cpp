#include <aten/math.h>
#include <c10/error.h>

#include <cstdio>

int main() {
  const tt::Vector sum = tt::add({1, 2}, {3, 4});
  const tt::Vector product = tt::matmul({1, 2, 3, 4}, {5, 6, 7, 8}, 2, 2, 2);
  std::printf("%g %g\n%g %g %g %g\n", sum[0], sum[1], product[0], product[1], product[2],
              product[3]);
  try {
    tt::add({1}, {});
  } catch (const tt::Error& error) {
    std::printf("%s\n", error.what());
  }
  std::fputs(tt::show_config().c_str(), stdout);
}
