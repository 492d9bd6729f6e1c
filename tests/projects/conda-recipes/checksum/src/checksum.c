#include "checksum.h"
#include <string.h>
#include <zlib.h>

unsigned long checksum(const char *text) {
    return crc32(0, (const unsigned char *)text, strlen(text));
}
