"""Settings for package indexes and other servers, used by everything that fetches.

They are the caller's settings of pip and uv, in variables and files, for torchyard's own
client, and as variables for the programs that torchyard starts: uv, pip, git, apt, skopeo.
"""

import netrc
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from configparser import Error, RawConfigParser
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit
from urllib.request import proxy_bypass

from torchyard.errors import HostError
from torchyard.host.cache import cache_base, cache_folder
from torchyard.host.process import capture, own_program
from torchyard.host.secrets import caller_environment

_NO_INDEX = "file:///nonexistent"
"""An empty default index for uv, as no variable disables it."""

_VARIABLES = re.compile(
    r"PATH|LANG|LC_\w+|TZ|NETRC|(?i:https?|all|no)_(?i:proxy)|SSL_CERT_\w+|REQUESTS_CA_BUNDLE"
    r"|CURL_CA_BUNDLE|GIT_SSL_CAINFO|PIP_(?!TARGET|PREFIX|USER|ROOT)\w+|UV_(?!PUBLISH)\w+"
)
_AUTHORITIES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file with certificate authorities; the first set one counts."""
_INDEXES = re.compile(r"UV_DEFAULT_INDEX|UV_INDEX|(UV|PIP)_((EXTRA_)?INDEX_URL|FIND_LINKS)")
"""Variables of indexes, which are merged."""
_PLACES = {"index-url", "extra-index-url", "find-links"}

_FILES = {
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "UV_CONFIG_FILE": (".config/uv/uv.toml",),
    "NETRC": (".netrc",),
}
"""The files below the home directory, and the variables that replace them."""
_SYSTEM_FILES = {
    "PIP_CONFIG_FILE": ("/etc/xdg/pip/pip.conf", "/etc/pip.conf"),
    "UV_CONFIG_FILE": ("/etc/uv/uv.toml",),
}

_Options = dict[str, list[str]]
"""Words by options of `pip install`, such as `extra-index-url`."""


class NetworkSettings(NamedTuple):
    """Indexes, with the default one first, directories of wheels, authorities and proxies.

    Addresses contain user names and passwords: they are for programs, and never shown.
    """

    indexes: tuple[str, ...]
    links: tuple[str, ...]
    authorities: str
    """A file with certificates; empty for the system's."""
    proxies: Mapping[str, str]
    """By scheme."""
    is_offline: bool
    strategy: str
    """uv's `index-strategy`, if set."""
    no_index: bool = False

    def proxy_for(self, url: str) -> str:
        """Return the proxy for an address, or ""."""
        parts = urlsplit(url)
        return "" if proxy_bypass(parts.hostname or "") else self.proxies.get(parts.scheme, "")

    def login_for(self, url: str) -> str:
        """Return `user:password` for an address: its own, of an index on its host, or of netrc."""
        parts = urlsplit(url)
        name, _, host = parts.netloc.rpartition("@")
        for there in map(urlsplit, () if name else self.indexes + self.links):
            if there.scheme == parts.scheme and there.netloc.endswith(f"@{host}"):
                name = there.netloc.rpartition("@")[0]
        return unquote(name) or _from_netrc(parts.hostname or "")

    def variables(self) -> dict[str, str]:
        """Return the variables with these settings for other programs."""
        default, *more = self.indexes or (_NO_INDEX if self.no_index else "",)
        found = {
            **dict.fromkeys(("UV_DEFAULT_INDEX", "PIP_INDEX_URL"), default),
            **dict.fromkeys(("UV_INDEX", "PIP_EXTRA_INDEX_URL"), " ".join(more)),
            "UV_FIND_LINKS": ",".join(link.replace(",", "%2C") for link in self.links),
            "PIP_FIND_LINKS": " ".join(self.links),
            "PIP_NO_INDEX": "1" if self.no_index else "",
            "UV_INDEX_STRATEGY": self.strategy,
            "UV_SYSTEM_CERTS": "1",
            "UV_CACHE_DIR": "" if cache_base() else str(cache_folder("uv") or ""),
            **dict.fromkeys((*_AUTHORITIES, "GIT_SSL_CAINFO"), self.authorities),
        }
        for scheme, proxy in self.proxies.items():
            found |= dict.fromkeys((f"{scheme}_proxy", f"{scheme}_proxy".upper()), proxy)
        return {name: text for name, text in found.items() if text}


def network_settings() -> NetworkSettings:
    """Read the caller's settings: uv's precede pip's, and variables precede files.

    The indexes in pip's files count if uv's settings name none.
    """
    env = caller_environment()
    uv, pip = _uv_options(env), _pip_files(env)
    hidden = _PLACES if _PLACES & {*uv} else ()
    found = {name: words for name, words in pip.items() if name not in hidden}
    found |= {name: text.split() for name, text in _variables(env, "PIP_").items()} | uv

    def first(name: str, other: str = "") -> str:
        return " ".join(found.get(name, ())) or other

    default = first("index-url") or _default_index()
    indexes = (*filter(None, (default,)), *found.get("extra-index-url", ()))
    uses_keyring = first("keyring-provider", "disabled") != "disabled"
    no_index = _is_set(first("no-index"))
    return NetworkSettings(
        indexes=() if no_index else _addresses(indexes, keyring=uses_keyring),
        links=_addresses(found.get("find-links", ())),
        authorities=next(filter(None, map(env.get, _AUTHORITIES)), first("cert")),
        proxies=_proxies(env, first("proxy")),
        is_offline=_is_set(first("offline")),
        strategy=first("index-strategy", "" if "extra-index-url" in uv else "unsafe-best-match"),
        no_index=no_index,
    )


def fetching_environment() -> dict[str, str]:
    """Return the caller's environment for a program that uses the network."""
    env = caller_environment()
    kept = {name: text for name, text in env.items() if not _INDEXES.fullmatch(name)}
    return {**network_settings().variables(), **kept}


def installer_variables() -> dict[str, str]:
    """Return the part of that environment for pip and uv in sandboxes and roots."""
    env = fetching_environment()
    return {name: text for name, text in env.items() if _VARIABLES.fullmatch(name)}


def proxies_and_authorities() -> dict[str, str]:
    """Return the part of that environment that is not about packages."""
    env = installer_variables()
    return {name: env[name] for name in env if re.search(r"(?i:_proxy)$|_CERT_FILE|_CA", name)}


def local_paths(texts: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the existing files and directories in arguments or variables, each after its text.

    A text is a path, or paths and `file:` addresses separated by spaces and commas.
    """
    for text in texts:
        for word in (text, *re.split(r"[\s,]+", text)):
            parts = urlsplit(word)
            path = Path(unquote(parts.path) if parts.scheme == "file" else word)
            if path.is_absolute() and path.exists():
                yield word, path


def linked_folders(index: Path) -> Iterator[Path]:
    """Yield the folders beside a local index with the files that its pages link to."""
    page = next(index.glob("*/index.html"), None) if index.is_dir() else None
    text = page.read_text(encoding="utf-8", errors="replace") if page else ""
    for name in sorted(set(re.findall(r"href=[\"']\.\./\.\./(\w[\w.-]*)/", text))):
        if (folder := index.parent / name).is_dir():
            yield folder


def installer_files() -> Iterator[tuple[str, Path]]:
    """Yield the files with the caller's settings, each after the variable for its path."""
    for name, paths in _FILES.items():
        for relative in paths:
            if (path := Path.home() / relative).is_file():
                yield name, path


def installer_cache(name: str, given: str | None = None) -> Path | None:
    """Return the given cache for pip or uv, or torchyard's own; None if it can't be created."""
    if not given:
        return cache_folder(name)
    path = Path(given)
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return path.absolute()
    return None


def _settings_files(name: str, env: Mapping[str, str]) -> list[Path]:
    """Return the existing files of pip or uv, in ascending precedence."""
    users = [env[name]] if env.get(name) else [str(Path.home() / f) for f in _FILES[name][::-1]]
    return [path for path in map(Path, (*_SYSTEM_FILES[name], *users)) if path.is_file()]


def _pip_files(env: Mapping[str, str]) -> _Options:
    name, found = "PIP_CONFIG_FILE", _Options()
    files = [*_settings_files(name, env), Path(sys.prefix, "pip.conf")]
    for path in files if env.get(name) != os.devnull else ():
        parser = RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (Error, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from error
        for section in parser.sections():
            if section in ("global", "install"):
                rows = parser[section].items()
                found |= {key.replace("_", "-"): text.split() for key, text in rows}
    return found


def _uv_options(env: Mapping[str, str]) -> _Options:
    found = _Options()
    for path in _settings_files("UV_CONFIG_FILE", env):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise _unreadable(path, error) from error
        for row in table.pop("index", ()):
            if not row.get("explicit"):
                key = "index-url" if row.get("default") else "extra-index-url"
                found.setdefault(key, []).append(f"{row.get('name', '')}={row.get('url', '')}")
        for key, value in {**table, **table.get("pip", {})}.items():
            found[key] = list(map(str, value)) if isinstance(value, list) else [str(value)]
    set_ = _variables(env, "UV_")
    set_["extra-index-url"] = f"{set_.get('extra-index-url', '')} {set_.get('index', '')}"
    set_["index-url"] = set_.get("default-index") or set_.get("index-url", "")
    set_["find-links"] = set_.get("find-links", "").replace(",", " ")
    found |= {name: text.split() for name, text in set_.items() if text.strip()}
    for name in {*found} & {"index-url", "extra-index-url"}:
        found[name] = [_without_name(word, env) for word in found[name]]
    return found


def _variables(env: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the options in variables: `PIP_INDEX_URL` is `index-url`."""
    named = {name.removeprefix(prefix): env[name] for name in env if name.startswith(prefix)}
    return {name.lower().replace("_", "-"): text for name, text in named.items() if text}


def _unreadable(path: Path, error: Exception) -> HostError:
    reason = str(error).partition("\n")[0]
    return HostError(f"`{path}` can't be read: {reason}", hint="correct or remove the file")


def _without_name(word: str, env: Mapping[str, str]) -> str:
    """Return the address in `name=address`, with the login from the name's variables."""
    named = re.match(r"([\w.-]*)=", word)
    if not named:
        return word
    prefix = f"UV_INDEX_{re.sub(r'[^A-Z0-9]', '_', named[1].upper())}"
    user, password = (env.get(f"{prefix}_{end}", "") for end in ("USERNAME", "PASSWORD"))
    return _with_login(word[named.end() :], user, password)


def _with_login(url: str, user: str, password: str) -> str:
    parts = urlsplit(url)
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
    netloc = f"{login}{parts.netloc.rpartition('@')[2]}"
    return parts._replace(netloc=netloc).geturl() if password else url


@cache
def _default_index() -> str:
    """Return uv's default index from its output, or "" if it fails."""
    words = ("--offline", "--quiet", "--no-header", "--emit-index-url", "--python", sys.executable)
    argv = [own_program("uv"), "pip", "compile", "--no-cache", *words, "-"]  # stdin is empty
    env = {name: text for name, text in caller_environment().items() if name == "TMPDIR"}
    with suppress(HostError):  # no writable directory
        output = capture(argv, cwd=Path("/"), env={"UV_NO_CONFIG": "1", **env})
        return output.strip().removeprefix("--index-url ")
    return ""


def _addresses(addresses: Iterable[str], *, keyring: bool = False) -> tuple[str, ...]:
    """Return addresses of indexes, pages and directories, with passwords from a keyring."""
    found = []
    for path in addresses:
        url = path if "://" in path else Path(path).expanduser().absolute().as_uri()
        parts = urlsplit(url)
        user = unquote(parts.username or "")
        if keyring and user and parts.password is None:
            url = _with_login(url, user, _from_keyring(url, user))
        found.append(url)
    return tuple(dict.fromkeys(found))


@cache
def _from_keyring(url: str, user: str) -> str:
    """Return the password of the program `keyring` for an index or its host, or ""."""
    program = shutil.which("keyring")
    for service in (url.replace(f"{quote(user)}@", "", 1), urlsplit(url).hostname or ""):
        with suppress(HostError):
            if program:
                return capture([program, "get", service, user], cwd=Path("/")).rstrip("\n")
    return ""


def _from_netrc(host: str) -> str:
    with suppress(OSError, netrc.NetrcParseError):
        path = os.environ.get("NETRC") or str(Path.home() / ".netrc")  # without its own, strict one
        found = netrc.netrc(path).authenticators(host)
        return f"{found[0]}:{found[2]}" if found else ""
    return ""


def _proxies(env: Mapping[str, str], pip: str) -> dict[str, str]:
    def read(name: str) -> str:
        return env.get(f"{name}_proxy") or env.get(f"{name}_proxy".upper()) or ""

    found = {scheme: read(scheme) or read("all") or pip for scheme in ("http", "https")}
    return {name: url if "://" in url else f"http://{url}" for name, url in found.items() if url}


def _is_set(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on")
