"""A module."""

from mini._C import made as made
