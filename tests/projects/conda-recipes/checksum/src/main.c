#include "checksum.h"
#include <stdio.h>

int main(int argc, char **argv) {
    printf("%08lx\n", checksum(argc > 1 ? argv[1] : ""));
    return 0;
}
