"""What the source of a project says, by file and line, read without running any of its code.

`read_project` in `project` turns a directory into a `ProjectReading`: the backend, what is
compiled, the `switches` that a build takes, what it `downloads`, and the torch that it requires.
The values are in `source_text`. The source may be anyone's: files are read up to a size and a
number, and links that lead out of the tree are not followed. Names that mean something are in
`data/reading.toml`.
"""
