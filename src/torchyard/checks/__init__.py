"""Evidence that a package is what its name says: rules for its contents."""
