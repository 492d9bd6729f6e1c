#include "gauge.h"

int gauge_read(void) { return 42; }
