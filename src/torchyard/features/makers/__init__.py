"""Keys of makers: new ones, trusted ones, revoked ones."""
