"""Toolchains: interpreters, compilers, CUDA, ROCm, BLAS, compile caches, and their environments."""
