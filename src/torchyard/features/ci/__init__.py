"""The files of CI providers, generated from the matrix."""
