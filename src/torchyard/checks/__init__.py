"""Proof that a package is what its name says: rules over what is in it, and trying it out."""
