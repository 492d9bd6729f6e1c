"""Load a config from a file."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from torchyard.compute.registry import look_up
from torchyard.config.decode import decode
from torchyard.config.document import Document
from torchyard.config.evaluate import evaluate
from torchyard.config.lock import (
    add_locked_rows,
    build_lock_path,
    conda_lock_folder,
    locked_origins,
    read_build_lock,
)
from torchyard.config.matrix import named_values
from torchyard.config.recipes import find_recipe
from torchyard.config.spec import FileSpec
from torchyard.config.tables import load_tables
from torchyard.errors import ConfigError, HostError
from torchyard.host.files import (
    basename,
    dirname,
    exists,
    isdir,
    join,
    read_folder,
    read_globs,
    read_text,
    realpath,
)
from torchyard.model.config import Config, Source
from torchyard.model.lock import BuildLock
from torchyard.model.recipe import Dimension
from torchyard.model.recipe_output import RecipeOutput
from torchyard.model.tables import Tables


def read_document(path: str, changes: Sequence[str] = ()) -> Document:
    """Read a file. Origins omit its directory, so that plans do not depend on it."""
    return Document(basename(path), _read(path), changes)


def load_config(
    path: str,
    changes: Sequence[str] = (),
    *,
    others: Sequence[str] = (),
    lock: BuildLock | None = None,
) -> Config:
    """Read and evaluate a file; it and `others` are excluded from its source directory."""
    return config_of(path, read_document(path, changes), others=others, lock=lock)


def _read(path: str) -> str:
    if isdir(path):
        msg = f"`{path}` is a directory"
        raise HostError(msg, hint="name the file in it: -f " + join(path, "torchyard.toml"))
    try:
        return read_text(path)
    except HostError as error:
        if exists(path):
            raise
        msg = f"there is no configuration `{path}`"
        hint = "`torchyard init` writes one; `-f FILE` names another"
        raise HostError(msg, hint=hint) from error


def _with_proof(config: Config, base: str) -> Config:
    """Return the config with the texts of the project's tests and of a policy file."""
    check, smoke = config.check, config.smoke
    if check.policy.endswith(".toml"):
        text = read_text(join(base, check.policy))
        check = msgspec.structs.replace(check, policy=basename(check.policy), text=text)
    if smoke.folder:
        folder = realpath(join(base, smoke.folder))
        name = basename(folder)  # tests are named after it
        tests = {f"{name}/{path}": text for path, text in read_folder(folder).items()}
        smoke = msgspec.structs.replace(smoke, tests=tests)
    return msgspec.structs.replace(config, check=check, smoke=smoke)


def _with_patches(config: Config, base: str) -> Config:
    """Return the config with the texts of its source's patches."""
    if not config.patches.globs:
        return config
    texts = read_globs(base, config.patches.globs)
    return msgspec.structs.replace(
        config, patches=msgspec.structs.replace(config.patches, texts=texts)
    )


def _with_licenses(config: Config, base: str) -> Config:
    """Return the config with the licence texts of conda packages."""
    globs = [glob for output in config.conda_outputs.values() for glob in output.license_files]
    return msgspec.structs.replace(config, conda_license_texts=read_globs(base, globs))


def _named_computes(spec: FileSpec) -> Iterator[str]:
    """Yield the computes that a file names; an unknown one makes the registry load plug-ins."""
    yield from spec.tables.compute
    yield from named_values(spec.matrix, Dimension.COMPUTE)


def _lock_of(spec: FileSpec, path: str) -> BuildLock:
    """Return the lock of a file; empty if the file needs none."""
    recipe = find_recipe(spec.project.recipe)
    is_locked = (recipe is not None and recipe.is_extension) or spec.root.image is not None
    is_locked = is_locked or (spec.toolchain is not None and spec.toolchain.conda is not None)
    return read_build_lock(path) if is_locked else BuildLock()


def _outputs_of(spec: FileSpec, path: str) -> Callable[[Tables], Sequence[RecipeOutput]] | None:
    """Return how to read the outputs of the file's conda recipe; None if it has none."""
    recipe = find_recipe(spec.project.recipe)
    if recipe is None or not recipe.is_rendered:
        return None
    if spec.source.path is None:
        msg = "a plan needs the conda recipe, and [source] has no directory"
        raise ConfigError(msg, hint='name its directory: path = "."')
    from torchyard.config.recipe_outputs import read_recipe_outputs  # noqa: PLC0415 - few have one

    folder = join(dirname(path), spec.source.path)
    return partial(read_recipe_outputs, folder, spec.matrix.platform or ())


def config_of(
    path: str,
    document: Document,
    *,
    others: Sequence[str] = (),
    lock: BuildLock | None = None,
) -> Config:
    """Evaluate a document that was read from a path; its source directory is relative to it.

    Its lock is beside it, unless another one is given.
    """
    spec = decode(document)
    look_up(_named_computes(spec))
    lock = _lock_of(spec, path) if lock is None else lock
    tables = add_locked_rows(load_tables(), lock)
    config = evaluate(spec, document, tables, lock, _outputs_of(spec, path))
    config = msgspec.structs.replace(config, origins={**locked_origins(lock), **config.origins})
    config = _with_patches(_with_proof(config, dirname(path)), dirname(path))
    config = _with_licenses(config, dirname(path))
    if config.source.path is None:
        return config
    from torchyard.host.tree import read_source_tree  # noqa: PLC0415 - most sources are commits

    source = config.source
    folder = join(dirname(path), config.source.path)
    names = [*source_exclusions(source, path), *others]
    tree = read_source_tree(folder, names, include_ignored=source.include_ignored)
    source = msgspec.structs.replace(source, digest=tree.digest)
    return msgspec.structs.replace(config, source=source, left_out=tree.left_out)


def source_exclusions(source: Source, path: str) -> list[str]:
    """Return the paths excluded from a source directory: the file, its locks, `leave_out`."""
    folder = join(dirname(path), source.path or "")
    locks = (build_lock_path(path), conda_lock_folder(path))
    return [path, *locks, *(join(folder, n.rstrip("/")) for n in source.leave_out)]
