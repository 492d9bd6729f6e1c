"""Components of packages: sources, vendored trees, bundled and static libraries, toolchains."""

from enum import StrEnum

from torchyard.model.values import Reported, Value

FACTS = "components.json"
"""The file of a compiling job's result with what its libraries are made of."""

SBOM_FILE = "torchyard.cdx.json"
"""The name of the document in packages."""


class ComponentKind(StrEnum):
    """The way in which a component is part of a package."""

    SOURCE = "source"
    """A tree that is compiled, by commit or digest."""
    VENDORED = "vendored"
    """A third-party project in it: a submodule, or a folder."""
    BUNDLED = "bundled"
    """A third-party library, by file."""
    STATIC = "static"
    """An archive that was linked into libraries of the package."""
    TOOLCHAIN = "toolchain"
    """What compiled it, and is no part of it."""
    REQUIRED = "required"
    """A requirement; only in bills that are inferred."""


class Component(Reported, kw_only=True):
    """A part of a package; unknown fields are empty.

    `path` is that of a tree in the source, or of an archive that was built from it; `made_of` is
    the path of the archive's tree. `files` are the names of the package's files that are it, or
    contain it. `digest` is a SHA-256, before a library gets its new name and rpath.
    """

    kind: ComponentKind
    name: str
    version: str = ""
    license: str = ""
    """An SPDX expression, or what its authors call it."""
    purl: str = ""
    digest: str = ""
    path: str = ""
    made_of: str = ""
    files: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """Its identifier in a document."""
        digest = f"@{self.digest[:8]}" if self.digest else ""
        return f"{self.kind}:{self.path or self.name}{digest}"


class Facts(Value, kw_only=True):
    """What a compiling job knows of its libraries' components, and of its source's licence.

    `unseen` are the libraries whose link commands are unknown, so that archives may be missing.
    """

    license: str = ""
    components: tuple[Component, ...] = ()
    unseen: tuple[str, ...] = ()


ALL = "*"
"""Instead of names of unseen libraries: no job has noted what its libraries are made of."""


class Bill(Reported, kw_only=True):
    """The bill of materials of a package: itself, and its components.

    `unseen` are libraries as in facts, or ALL. An `inferred` bill is made of a package alone.
    """

    name: str
    version: str
    purl: str
    components: tuple[Component, ...] = ()
    unseen: tuple[str, ...] = ()
    inferred: bool = False
