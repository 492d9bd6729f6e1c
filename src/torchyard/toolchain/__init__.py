"""What compiles: interpreters, compilers, CUDA, ROCm, BLAS, caches, and environments made of them."""
