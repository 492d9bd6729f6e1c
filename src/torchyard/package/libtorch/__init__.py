"""libtorch zips: the C++ libraries of a project, with all that they need and no Python."""
