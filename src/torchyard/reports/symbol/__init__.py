"""Reports about the files that define and need a symbol."""
