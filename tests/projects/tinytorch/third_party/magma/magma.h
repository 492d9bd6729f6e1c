#pragma once

#ifdef __cplusplus
extern "C" {
#endif

const char* magma_version(void);

/* Solve the 2x2 system with the rows (a b) and (c d); 0 if it worked. */
int magma_solve2(const double* matrix, const double* right, double* out);

#ifdef __cplusplus
}
#endif
