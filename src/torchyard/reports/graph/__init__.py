"""Reports about which libraries are linked with which."""
