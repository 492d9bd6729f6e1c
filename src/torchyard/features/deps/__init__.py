"""The versions of third-party dependencies."""
