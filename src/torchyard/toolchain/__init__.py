"""What compiles: interpreters, compilers, CUDA, ROCm, BLAS, caches, and their environments."""
