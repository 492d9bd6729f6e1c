"""Rules about indexes. The index check (`torchyard.publish.index_check`) applies them."""

from torchyard.checks.rule import Severity, index_rule

PAGE = index_rule(
    "index-page",
    Severity.ERROR,
    "a page is missing or cannot be read",
    """
    A page of the index does not exist, or is not the document that it should be.

    That is the list of projects or the page of one, in HTML or JSON; `repodata.json` of a conda
    channel; `index.json`, `index.html` or `latest.json` of a listing of libtorch zips. Installers
    stop at a page that they cannot read, or do not find its files.

    Write the page again: `torchyard channel mend` does so in a channel of torchyard.
    """,
)

HTML = index_rule(
    "index-html",
    Severity.WARNING,
    "a page violates PEP 503; some installers reject it",
    """
    An HTML page lacks `<!DOCTYPE html>`, has a content type that is not HTML's, or has a link whose
    text is not the name of its file.

    PEP 503 asks for HTML5 with the file name as the text of each link. pip is lenient today; other
    installers and mirrors are not, and pip has become stricter before.

    Correct what generates the page, or the content type that the server sends.
    """,
)

DIFFER = index_rule(
    "index-json-html-differ",
    Severity.ERROR,
    "the HTML and JSON pages disagree",
    """
    Two pages about the same files disagree: files, addresses, hashes, `requires-python`, metadata
    or yanks of the JSON page (PEP 691) are not those of the HTML page (PEP 503).

    What gets installed then depends on which form the installer asks for. In listings of libtorch
    zips, `latest.json` and the listing of a variant are compared with the whole listing as well.

    Generate both pages from the same data, and publish them together.
    """,
)

VERSION = index_rule(
    "index-version",
    Severity.ERROR,
    "a page breaks the promise of its API version",
    """
    A page names an API version that does not exist (PEP 629), lacks what its version promises
    (`versions` and `size`, PEP 700), or has an unknown or contradicted project status (PEP 792).

    Installers warn about a minor version that they do not know, and reject a major one. Tools that
    rely on the promised fields fail in ways that are hard to trace back to the page.

    Name the version whose fields the page has, and list the version of every file.
    """,
)

NAME = index_rule(
    "index-name",
    Severity.ERROR,
    "installers do not find it, or take it for another project",
    """
    The address of a project is not its normalized name, the page is that of another project, or the
    name of a file cannot be parsed or belongs to another project.

    Installers ask for normalized names only (PEP 503), and ignore files whose names they cannot
    parse. A file of another project may be installed in place of the right one.

    Rename the folder or the file; a file's name has to be as its build backend made it.
    """,
)

LINK_BROKEN = index_rule(
    "index-link-broken",
    Severity.ERROR,
    "a listed file is missing",
    """
    The index lists a file, or its provenance (PEP 740), and the server does not have it.

    Installers choose the file by the page, fail to download it, and do not try another one.

    Upload the file again, or remove it from the page.
    """,
)

ABSOLUTE_LINK = index_rule(
    "index-absolute-link",
    Severity.NOTE,
    "a copy of the pages still sends installers to the original host",
    """
    Links on the page contain a host name.

    That is allowed, and usual where files are on another server. A mirror that copies such pages
    without rewriting them still sends its users to the original server, which they may not reach.

    Use relative links if pages and files are served by the same host.
    """,
)

HASH_MISSING = index_rule(
    "index-hash-missing",
    Severity.WARNING,
    "installers cannot verify the file",
    """
    The index has no hash of a file or of its sidecar, or only a hash that can be forged, such as
    MD5.

    A damaged or exchanged file is then installed without notice. Lock files get their hashes from
    the index, and `pip --require-hashes` has nothing to compare with.

    Add the SHA-256 to every link or record.
    """,
)

HASH_WRONG = index_rule(
    "index-hash-wrong",
    Severity.ERROR,
    "installers reject the file: its hash is another",
    """
    The bytes of a file do not have the hash that the index lists. Found with `--deep` only.

    Installers download the file and reject it. The file was replaced after the page was written,
    was damaged, or was tampered with.

    Find out which of the two is right. Never replace a published file: publish a new build number
    or version.
    """,
)

SIZE = index_rule(
    "index-size",
    Severity.ERROR,
    "the file is larger or smaller than listed",
    """
    The server has another number of bytes of a file than the index lists.

    The file is incomplete, or not the one that was published. Its hash cannot match either.

    Upload the file again, or correct the page if the file is right.
    """,
)

PACKAGE = index_rule(
    "index-package",
    Severity.ERROR,
    "the file is not a complete package",
    """
    A file has the listed hash, and cannot be unpacked. Found with `--deep` only.

    It was broken before it was published: an incomplete upload, or a disk that ran full. Every
    installation of it fails.

    Yank the file and publish a new one; `torchyard check` shows its defects.
    """,
)

SIDECAR_NONE = index_rule(
    "index-sidecar-none",
    Severity.NOTE,
    "resolvers download whole wheels to read METADATA",
    """
    Wheels have no sidecar `FILE.metadata` (PEP 658).

    To resolve dependencies, installers read METADATA of every candidate. Without a sidecar they
    fetch it out of the wheel, or download the wheel: with PyTorch, gigabytes.

    Publish the METADATA beside each wheel, with its hash on the page.
    """,
)

SIDECAR_MISSING = index_rule(
    "index-sidecar-missing",
    Severity.ERROR,
    "resolvers fail: promised METADATA is missing",
    """
    A page says that a wheel has a sidecar `FILE.metadata` (PEP 658), and the server does not have
    it.

    Installers ask for it and fail; most of them do not fall back to the wheel.

    Upload the sidecar, or remove `core-metadata` from the page.
    """,
)

SIDECAR_WRONG = index_rule(
    "index-sidecar-wrong",
    Severity.ERROR,
    "what is resolved is not what gets installed",
    """
    A sidecar has another hash than listed, cannot be read, or differs from the METADATA inside the
    wheel (the latter with `--deep`).

    Installers resolve with the sidecar and install the wheel: requirements are missing, or versions
    conflict, without any error.

    Extract METADATA from the wheel again, byte for byte.
    """,
)

METADATA_DIFFERS = index_rule(
    "index-metadata-differs",
    Severity.ERROR,
    "resolvers use the metadata of one wheel for all of a version",
    """
    Wheels of one version have different requirements, extras or Python versions.

    Resolvers and lock files read the METADATA of one wheel, and assume that it holds for the
    version. On other platforms the wrong packages are then installed.

    Use environment markers, so that all wheels have the same METADATA, or put builds that differ
    into indexes of their own.
    """,
)

REQUIRES_PYTHON = index_rule(
    "index-requires-python",
    Severity.ERROR,
    "installers choose files for the wrong Pythons",
    """
    `requires-python` on the page is not that of the METADATA, or is no valid specifier.

    Installers select files by what the page says: they skip a file that would work, or choose one
    that fails.

    Copy `Requires-Python` from METADATA, escaped as HTML where the page is HTML.
    """,
)

REQUIRES_PYTHON_NONE = index_rule(
    "index-requires-python-none",
    Severity.NOTE,
    "installers download files that their Python cannot use",
    """
    METADATA has `Requires-Python`, and the page does not.

    Installers only learn from METADATA that the file is not for their Python, after they have
    chosen it. Old versions of pip install it.

    Copy `Requires-Python` from METADATA to the page.
    """,
)

YANKED = index_rule(
    "index-yanked",
    Severity.NOTE,
    "only some files of a version are yanked",
    """
    Some files of a version are yanked (PEP 592), and others are not.

    That is allowed. Installers then choose the version where a file is left, and an older version
    elsewhere, so that machines of one fleet differ.

    Yank all files of the version, unless only some are broken.
    """,
)

UNRESOLVED = index_rule(
    "index-unresolved",
    Severity.ERROR,
    "a stranger's package of that name may get installed",
    """
    A package requires a name that the index does not have, be it for an extra only.

    Users add another index to find it, such as PyPI. If the name is free there, anyone can register
    it, and their code is installed: dependency confusion.

    Add the project to the index. If it is meant to come from elsewhere, say so with
    `--external GLOB`.
    """,
)

REPODATA_DIFFERS = index_rule(
    "index-repodata-differs",
    Severity.ERROR,
    "solvers see different channels, depending on what they read",
    """
    `repodata.json`, `repodata.json.zst` and the shards of a conda subdir have different records.

    conda, mamba and pixi read different ones of these, so that the same command installs different
    packages.

    Write all of them from the same records, and publish them together.
    """,
)

SHARD = index_rule(
    "index-shard",
    Severity.ERROR,
    "solvers that read shards fail",
    """
    A shard of the sharded repodata (CEP 16) is missing or cannot be read, or its bytes do not have
    the hash by which the shard index names it.

    Solvers that prefer shards fail for every package of that name.

    Write the shards again, and the shard index after all of them.
    """,
)

RECORD = index_rule(
    "index-record",
    Severity.ERROR,
    "the record is not that of the package",
    """
    The record of a conda package contradicts its file name, its subdir, or, with `--deep`, the
    `info/index.json` inside the package.

    Solvers decide by the record alone: the solved environment is not the one that gets installed.

    Index the channel again from its packages.
    """,
)

NOARCH = index_rule(
    "index-noarch",
    Severity.ERROR,
    "conda rejects a channel without noarch",
    """
    The conda channel has no `noarch/repodata.json`.

    conda asks every channel for `noarch`, and stops if it is missing, even if all packages are for
    one platform.

    Publish an empty `noarch/repodata.json`.
    """,
)
