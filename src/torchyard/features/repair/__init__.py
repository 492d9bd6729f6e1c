"""Changes of tags, versions and libraries of packages."""
