"""A simulation of ld.so over a package and the packages installed beside it."""
