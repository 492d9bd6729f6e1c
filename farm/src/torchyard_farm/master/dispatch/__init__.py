"""The choice of the next pending job and its worker."""
