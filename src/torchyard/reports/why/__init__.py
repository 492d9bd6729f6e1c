"""Reports about why something was built again."""
