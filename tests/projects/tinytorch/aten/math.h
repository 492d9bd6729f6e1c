#pragma once
#include <string>
#include <vector>

namespace tt {

using Vector = std::vector<double>;

Vector add(const Vector& left, const Vector& right);

// Row-major: left is rows x inner, right is inner x columns.
Vector matmul(const Vector& left, const Vector& right, int rows, int inner, int columns);

int get_num_threads();
std::vector<std::string> op_names();
std::string show_config();

}  // namespace tt
