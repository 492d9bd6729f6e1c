"""The parts of a build or a package, and their links."""
