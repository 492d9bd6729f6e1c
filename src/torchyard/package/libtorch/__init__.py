"""libtorch zips: the C++ libraries of a project with their dependencies, without Python."""
