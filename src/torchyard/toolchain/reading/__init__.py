"""Facts about a project from its source, by file and line, read without running any of its code.

`read_project` in `project` turns a directory into a `ProjectReading`: the backend, what is
compiled, the `switches` and `downloads` of a build, and the torch that it requires. The types of
values are in `source_text`. The source is not trusted: the number and sizes of files are limited,
and links that lead out of the tree are not followed. Significant names are in `data/reading.toml`.
"""
