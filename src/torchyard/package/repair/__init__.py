"""Change an existing package: tags, version, rpaths, libraries."""
