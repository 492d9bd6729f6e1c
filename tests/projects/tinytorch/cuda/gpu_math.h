#pragma once
#include <string>
#include <vector>

namespace tt::gpu {

int device_count();
std::vector<double> add(const std::vector<double>& left, const std::vector<double>& right);
std::vector<double> scale(const std::vector<double>& values, double factor);
double sum(const std::vector<double>& values);

// Loads libtt_linalg, which lies beside this library, and asks it.
std::string linalg_backend();

}  // namespace tt::gpu
