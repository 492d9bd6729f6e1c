#include "config.h"
#include "ops/ops.h"

int add(int a, int b) { return a + b + ANSWER; }
