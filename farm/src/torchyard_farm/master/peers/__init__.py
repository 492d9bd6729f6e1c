"""Several masters on one database."""
