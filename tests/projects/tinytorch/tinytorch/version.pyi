__version__: str
git_version: str
cuda: str | None
hip: str | None
