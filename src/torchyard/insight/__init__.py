"""The structure and the time of a build, read from the files that it leaves."""
