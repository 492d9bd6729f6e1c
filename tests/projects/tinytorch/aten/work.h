#pragma once
#include <algorithm>
#include <array>

namespace tt {

// Work for the compiler: every level is a type of its own, and sorts in an order of its own.
template <int Seed, int Depth>
struct Work {
  static double run(double x) {
    std::array<double, 20 + Depth> values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = x * static_cast<double>(i % 7);
    std::stable_sort(values.begin(), values.end(),
                     [x](double a, double b) { return a * x + Seed < b * x + Depth % 2; });
    return Work<Seed, Depth - 1>::run(values[Depth % 20]);
  }
};

template <int Seed>
struct Work<Seed, 0> {
  static double run(double x) { return x + Seed; }
};

}  // namespace tt
