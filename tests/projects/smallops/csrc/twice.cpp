#include "twice.h"

long twice(long number) {
  return number + number;
}
