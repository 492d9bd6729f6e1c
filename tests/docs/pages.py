"""The scene of each page of the documentation, and its commands that are not run, with reasons."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

from tests.docs.markdown import Typed, commands
from tests.docs.prepare import Preparer
from tests.docs.scene import Scene

Value = TypeVar("Value")


class Page(NamedTuple):
    """How the commands of a page are run."""

    prepare: Callable[[Preparer], Scene]
    slow: bool = False
    programs: tuple[str, ...] = ()
    """What must be installed, besides torchyard, for its commands."""
    pythons: tuple[str, ...] = ()
    """The Pythons that its wheels are for, if its commands install them by the running one."""


PAGES = {
    "README.md": Page(Preparer.clone, programs=("cmake", "g++")),
    "docs/getting-started/installation.md": Page(Preparer.checkout, slow=True),
    "docs/getting-started/first-steps.md": Page(
        Preparer.clone, slow=True, programs=("cmake", "g++")
    ),
    "docs/getting-started/extension.md": Page(Preparer.empty, slow=True, programs=("bwrap", "g++")),
    "docs/getting-started/channel.md": Page(Preparer.empty, slow=True),
    "docs/getting-started/farm.md": Page(
        Preparer.tinytorch_farm, slow=True, programs=("bwrap", "g++")
    ),
    "docs/coming-from/cibuildwheel.md": Page(Preparer.clone),
    "docs/coming-from/feedstock.md": Page(Preparer.empty),
    "docs/coming-from/shell-script.md": Page(Preparer.clone, programs=("cmake", "g++", "ninja")),
    "docs/guides/describe-a-matrix.md": Page(Preparer.repository, slow=True),
    "docs/guides/inspect-a-machine.md": Page(
        Preparer.clone, slow=True, programs=("cmake", "g++", "ninja")
    ),
    "docs/guides/choose-what-compiles.md": Page(Preparer.torch, slow=True, programs=("gcc", "jq")),
    "docs/guides/see-a-plan.md": Page(Preparer.clone, programs=("jq",)),
    "docs/guides/build-on-this-machine.md": Page(Preparer.torch),
    "docs/guides/build-pytorch.md": Page(
        Preparer.clone, slow=True, programs=("bwrap", "g++", "unzip", "zstd")
    ),
    "docs/guides/build-an-extension.md": Page(Preparer.clone, slow=True, programs=("bwrap", "g++")),
    "docs/guides/develop.md": Page(Preparer.clone, slow=True, programs=("bwrap", "g++", "jq")),
    "docs/guides/roots-and-containers.md": Page(Preparer.small, programs=("cmake", "g++")),
    "docs/getting-started/gpu.md": Page(
        Preparer.clone, slow=True, programs=("bwrap", "debootstrap", "g++")
    ),
    "docs/guides/check-a-package.md": Page(Preparer.torch),
    "docs/guides/smoke-a-package.md": Page(
        Preparer.small_wheels, slow=True, programs=("cmake", "g++")
    ),
    "docs/guides/publish-a-release.md": Page(Preparer.torch),
    "docs/guides/publish-an-extension.md": Page(Preparer.extensions),
    "docs/guides/serve-a-channel.md": Page(Preparer.serving, pythons=("cp311", "cp312")),
    "docs/guides/look-after-a-channel.md": Page(
        Preparer.tools, programs=("jq",), pythons=("cp311", "cp312")
    ),
    "docs/guides/use-a-channel.md": Page(Preparer.torch, programs=("curl", "jq", "unzip")),
    "docs/guides/other-indexes.md": Page(Preparer.torch),
    "docs/guides/find-out-why-a-job-failed.md": Page(Preparer.small, programs=("cmake", "g++")),
    "docs/guides/understand-a-build.md": Page(Preparer.small, programs=("cmake", "g++", "ninja")),
    "docs/guides/generate-ci.md": Page(Preparer.clone),
    "docs/guides/build-on-a-farm.md": Page(Preparer.farm, slow=True),
    "docs/guides/operate-a-farm.md": Page(Preparer.farm_user, slow=True),
}

_NO_CONDA = (
    "conda and pixi are not installed; tests/integration/test_channel_clients.py uses rattler"
)
_LARGE = "needs wheels of 731 MB; tests/integration/test_check_real.py reads them"

_INDEX = "reads a wheel of PyPI; tests/integration/test_wheels_evidence.py checks small ones"

_PYTORCH = "needs a checkout of PyTorch, and hours to compile it"

_EXTENSION = "compiles for minutes; tests/integration/test_extension.py builds a smaller one"

_MACHINES = (
    "needs other machines; farm/tests start workers of several masters on loopback, with TLS"
)
_IMAGES = "builds images for minutes; farm/tests/test_images.py types these lines"
_SCHEDULED = "needs a farm of other machines; farm/tests/test_nightly.py and test_daily.py do it"

NOT_RUN: dict[str, dict[str, str]] = {
    "CONTRIBUTING.md": {"*": "for developers of torchyard: CI runs these, and they take hours"},
    "examples/plug-in/README.md": {"*": "tests/integration/test_plug_in_example.py does it"},
    "farm/README.md": {"*": "docs/guides/build-on-a-farm.md has the same commands"},
    "docs/evidence/README.md": {
        "*": "needs wheels of 731 MB; tests/integration/test_check_real.py"
    },
    "docs/evidence/wheels.md": {
        "*": "needs wheels of 4.67 GB; tests/integration/test_wheels_evidence.py has small ones"
    },
    "docs/guides/roots-and-containers.md": {
        "podman run *": "needs an image; tests/integration/test_containers.py runs containers",
        "torchyard toolchain root *": "needs minutes; tests/integration/test_roots.py makes one",
        "torchyard farm worker /srv/work *": _MACHINES,
        "tar *": "needs that root; tests/integration/test_root_images.py packs a small one",
        "skopeo *": "needs a registry; tests/integration/test_registry.py runs one",
    },
    "docs/guides/build-on-a-farm.md": {
        "torchyard farm worker /srv/work *": _MACHINES,
        "cd farm/examples/compose": _IMAGES,
        "export PROJECT=*": _IMAGES,
        "podman-compose *": _IMAGES,
    },
    "docs/guides/operate-a-farm.md": {
        "scp *": _MACHINES,
        "ssh *": _MACHINES,
        "mkdir -m 700 farm *": _MACHINES,
        "torchyard farm init *": _MACHINES,
        "torchyard farm start *": _MACHINES,
        "torchyard farm worker *": _MACHINES,
        "torchyard farm stop farm; *": "docs/guides/build-on-a-farm.md starts and stops one",
        "torchyard farm nightly *": _SCHEDULED,
        "torchyard farm daily *": _SCHEDULED,
        "torchyard farm status *": _SCHEDULED,
    },
    "docs/coming-from/feedstock.md": {
        "torchyard build -f hello.toml *": "needs conda-forge; "
        "tests/integration/test_conda_recipes.py builds recipes with a channel like it",
    },
    "README.md": {
        "pip install *": "docs/getting-started/installation.md has the same block",
        "pip download *": _INDEX,
        "torchyard check xformers-*": _INDEX,
        "torchyard compat *": "reads torch wheels; tests/integration/test_compat_real.py does it",
    },
    "docs/guides/build-pytorch.md": {
        "torchyard toolchain": _PYTORCH,
        "torchyard plan": _PYTORCH,
        "torchyard build 'package:[*]' -o packages": _PYTORCH,
        "uv pip compile *": _PYTORCH,
    },
    "docs/guides/build-an-extension.md": {
        "torchyard init --sdist *": _EXTENSION,
        "torchyard lock": _EXTENSION,
        "torchyard build -o dist": _EXTENSION,
    },
    "docs/guides/check-a-package.md": {
        "torchyard check torch-2.15.0-*": _LARGE,
        "torchyard check demo-1.0-*": "a broken wheel; tests/unit/test_planted_faults.py has such",
        "torchyard diff torch-2.13.0*": _LARGE,
    },
    "docs/guides/see-which-torch-loads.md": {
        "*": "reads torch wheels of an index; tests/integration/test_compat_real.py does it"
    },
    "docs/guides/smoke-a-package.md": {
        "torchyard smoke torch-2.13.0*": "minutes; tests/integration/test_smoke.py does it",
        "torchyard smoke pytorch-*.conda *": _NO_CONDA,
    },
    "docs/guides/serve-a-channel.md": {"conda install *": _NO_CONDA},
    "docs/guides/use-a-channel.md": {"conda install *": _NO_CONDA, "pixi *": _NO_CONDA},
}
"""Globs of commands that are not run, by page, each with the reason."""

STATUS: dict[str, dict[str, int]] = {
    "docs/getting-started/channel.md": {"torchyard publish wheels --to ./channel": 15},
    "docs/guides/publish-an-extension.md": {"*--torch 2.11.0*": 5},
    "docs/guides/other-indexes.md": {"torchyard channel check *": 16},
    "docs/guides/describe-a-matrix.md": {"torchyard build source:*": 7},
    "docs/guides/find-out-why-a-job-failed.md": {'torchyard build "core:[*]"': 9},
    "docs/guides/inspect-a-machine.md": {"torchyard doctor --source * cpu": 7},
    "docs/guides/see-a-plan.md": {"*--fail-on-vanish*": 8},
}
"""Globs of commands that end with another exit status than 0, by page."""

UNTIL: dict[str, dict[str, str]] = {
    "docs/getting-started/farm.md": {"torchyard farm worker work *": "working for the master"},
    "docs/guides/build-on-a-farm.md": {"torchyard farm worker work *": "working for the master"},
}
"""Globs of commands that stay in the foreground, by page, and what they print once they work."""


def reason_not_run(typed: Typed) -> str | None:
    return _found(NOT_RUN, typed)


def status_of(typed: Typed) -> int:
    return _found(STATUS, typed) or 0


def printed_once_ready(typed: Typed) -> str | None:
    return _found(UNTIL, typed)


def unused_globs() -> list[str]:
    """Return the globs of the tables above that match no command of their page."""
    tables = (NOT_RUN, STATUS, UNTIL)
    return [
        f"{page}: {glob}"
        for table in tables
        for page, globs in table.items()
        for glob in globs
        if not any(fnmatchcase(typed.words, glob) for typed in commands(page))
    ]


def _found(table: Mapping[str, Mapping[str, Value]], typed: Typed) -> Value | None:
    globs = table.get(typed.page, {})
    return next((globs[glob] for glob in globs if fnmatchcase(typed.words, glob)), None)
