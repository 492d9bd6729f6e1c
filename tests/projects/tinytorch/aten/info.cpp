// Prints how the library was built, as tt-config does, without Python.
#include <cstdio>

#include "aten/math.h"

int main() { std::fputs(tt::show_config().c_str(), stdout); }
