"""What a build or a package consists of, and what is linked with what."""
