"""Reports about the dependencies of a source tree."""
