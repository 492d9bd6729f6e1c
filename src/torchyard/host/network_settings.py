"""How this machine reaches package indexes and other servers, for everything that fetches.

The caller has told it to pip or uv, in variables and files. It is read here for torchyard's own
client, and given as variables to the programs that torchyard starts: uv, pip, git, apt, skopeo.
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
from torchyard.host.process import capture
from torchyard.host.secrets import caller_environment

_PYPI = "https://pypi.org/simple"
_NO_INDEX = "file:///nonexistent"
"""The default index of uv if there is to be none: no variable says so."""

_VARIABLES = re.compile(
    r"PATH|LANG|LC_\w+|TZ|NETRC|(?i:https?|all|no)_(?i:proxy)|SSL_CERT_\w+|REQUESTS_CA_BUNDLE"
    r"|CURL_CA_BUNDLE|GIT_SSL_CAINFO|PIP_(?!TARGET|PREFIX|USER|ROOT)\w+|UV_(?!PUBLISH)\w+"
)
_AUTHORITIES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file with certificates of authorities; the first that is set counts."""
_INDEXES = re.compile(r"UV_DEFAULT_INDEX|UV_INDEX|(UV|PIP)_((EXTRA_)?INDEX_URL|FIND_LINKS)")
"""Variables of indexes, which are merged."""

_FILES = {
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "UV_CONFIG_FILE": (".config/uv/uv.toml",),
    "NETRC": (".netrc",),
}
"""The files below the home directory, and the variables that name others in their place."""
_SYSTEM_FILES = {
    "PIP_CONFIG_FILE": ("/etc/xdg/pip/pip.conf", "/etc/pip.conf"),
    "UV_CONFIG_FILE": ("/etc/uv/uv.toml",),
}


class NetworkSettings(NamedTuple):
    """Indexes, with the default one first, directories of wheels, authorities and proxies.

    Addresses have user names and passwords: they are for programs, never to be shown.
    """

    indexes: tuple[str, ...]
    links: tuple[str, ...]
    authorities: str
    """A file with certificates; empty for those of the system."""
    proxies: Mapping[str, str]
    """By scheme."""
    is_offline: bool
    searched_by_pip: bool
    """Whether the newest version of all indexes is taken, not that of the first which has some."""

    def proxy_for(self, url: str) -> str:
        """Return the proxy for an address, or ""."""
        parts = urlsplit(url)
        return "" if proxy_bypass(parts.hostname or "") else self.proxies.get(parts.scheme, "")

    def login_for(self, url: str) -> str:
        """Return `user:password` for an address: its own, that of an index there, or netrc's."""
        parts = urlsplit(url)
        name, _, host = parts.netloc.rpartition("@")
        for index in () if name else self.indexes + self.links:
            there = urlsplit(index)
            if (there.scheme, there.netloc.rpartition("@")[2]) == (parts.scheme, host):
                name = name or there.netloc.rpartition("@")[0]
        return unquote(name) or _from_netrc(parts.hostname or "")

    def variables(self) -> dict[str, str]:
        """Return the variables that say the same to other programs."""
        default, *more = self.indexes or (_NO_INDEX,)
        found = {
            "UV_DEFAULT_INDEX": default,
            "UV_INDEX": " ".join(more),
            "UV_FIND_LINKS": ",".join(link.replace(",", "%2C") for link in self.links),
            "PIP_INDEX_URL": default,
            "PIP_EXTRA_INDEX_URL": " ".join(more),
            "PIP_FIND_LINKS": " ".join(self.links),
            "PIP_NO_INDEX": "" if self.indexes else "1",
            "UV_OFFLINE": "1" if self.is_offline else "",
            "UV_INDEX_STRATEGY": "unsafe-best-match" if self.searched_by_pip else "",
            "UV_SYSTEM_CERTS": "1",
            "UV_CACHE_DIR": "" if cache_base() else str(cache_folder("uv") or ""),
            "GIT_SSL_CAINFO": self.authorities,
            **dict.fromkeys(_AUTHORITIES, self.authorities),
        }
        for scheme, proxy in self.proxies.items():
            found |= dict.fromkeys((f"{scheme}_proxy", f"{scheme}_proxy".upper()), proxy)
        return {name: text for name, text in found.items() if text}


def network_settings() -> NetworkSettings:
    """Read the caller's settings: uv's come before pip's, and variables before files.

    The indexes in pip's files count if uv's settings name none.
    """
    env = caller_environment()
    uv = _uv_settings(env)
    default, more = _uv_indexes(env, uv)
    links = [*filter(None, env.get("UV_FIND_LINKS", "").split(",")), *_strings(uv, "find-links")]
    pip = _pip_settings(env, with_indexes=not (default or more or links))
    links = links or pip.get("find-links", "").split()
    default = default or pip.get("index-url", "") or _PYPI
    extra = more or pip.get("extra-index-url", "").split()
    has_index = not (_is_set(pip, "no-index") or uv.get("no-index"))
    provider = env.get("UV_KEYRING_PROVIDER") or uv.get("keyring-provider")
    provider = provider or pip.get("keyring-provider", "disabled")
    indexes = (_with_password(_address(url), str(provider)) for url in (default, *extra))
    authorities = next(filter(None, map(env.get, _AUTHORITIES)), pip.get("cert", ""))
    return NetworkSettings(
        indexes=tuple(dict.fromkeys(indexes)) if has_index else (),
        links=tuple(dict.fromkeys(map(_address, links))),
        authorities=authorities,
        proxies=_proxies(env, pip.get("proxy", "")),
        is_offline=_is_set(env, "UV_OFFLINE") or uv.get("offline") is True,
        searched_by_pip=not more and "UV_INDEX_STRATEGY" not in env and "index-strategy" not in uv,
    )


def fetching_environment() -> dict[str, str]:
    """Return the caller's environment for a program that fetches something."""
    env = caller_environment()
    kept = {name: text for name, text in env.items() if not _INDEXES.fullmatch(name)}
    return {**network_settings().variables(), **kept}


def installer_variables() -> dict[str, str]:
    """Return the part of that environment which pip and uv get in sandboxes and roots."""
    env = fetching_environment()
    return {name: text for name, text in env.items() if _VARIABLES.fullmatch(name)}


def local_paths(texts: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield the existing files and directories in arguments or variables, each with its spelling.

    A text is a path, or has paths and `file:` addresses between spaces and commas.
    """
    for text in texts:
        for word in (text, *re.split(r"[\s,]+", text)):
            parts = urlsplit(word)
            path = Path(unquote(parts.path) if parts.scheme == "file" else word)
            if path.is_absolute() and path.exists():
                yield word, path


def installer_files() -> Iterator[tuple[str, Path]]:
    """Yield the files with the caller's settings, and the variables that could name them."""
    for name, places in _FILES.items():
        for place in places:
            if (path := Path.home() / place).is_file():
                yield name, path


def installer_cache(name: str, given: str | None = None) -> Path | None:
    """Return the cache for pip or uv: the given one, or torchyard's own, but not the caller's.

    None if it can't be made.
    """
    if not given:
        return cache_folder(name)
    path = Path(given)
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return path.absolute()
    return None


def _settings_files(name: str, env: Mapping[str, str]) -> list[Path]:
    """Return the files of pip or uv that exist, in the order in which they count more."""
    own = [env[name]] if env.get(name) else [str(Path.home() / one) for one in _FILES[name][::-1]]
    return [path for path in map(Path, (*_SYSTEM_FILES[name], *own)) if path.is_file()]


def _pip_settings(env: Mapping[str, str], *, with_indexes: bool) -> dict[str, str]:
    """Return the options of `pip install`, by their long names; its files may name indexes."""
    name, found = "PIP_CONFIG_FILE", dict[str, str]()
    files = [*_settings_files(name, env), Path(sys.prefix, "pip.conf")]
    for path in files if env.get(name) != os.devnull else ():
        parser = RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (Error, UnicodeDecodeError) as error:
            raise _unreadable(path, error) from error
        for section in ("global", "install"):
            found |= dict(parser[section]) if section in parser else {}
    found = {f"PIP_{name.upper().replace('-', '_')}": text for name, text in found.items()}
    if not with_indexes:
        found = {name: text for name, text in found.items() if not _INDEXES.fullmatch(name)}
    found |= {name: text for name, text in env.items() if name.startswith("PIP_") and text}
    return {name[4:].lower().replace("_", "-"): text for name, text in found.items()}


def _uv_settings(env: Mapping[str, str]) -> dict[str, object]:
    """Return the settings of `uv pip`."""
    found: dict[str, object] = {}
    for path in [] if _is_set(env, "UV_NO_CONFIG") else _settings_files("UV_CONFIG_FILE", env):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise _unreadable(path, error) from error
        pip = table.get("pip")
        found |= table | (pip if isinstance(pip, dict) else {})
    return found


def _unreadable(path: Path, error: Exception) -> HostError:
    said = str(error).partition("\n")[0]
    return HostError(f"`{path}` can't be read: {said}", hint="correct the file, or move it away")


def _uv_indexes(env: Mapping[str, str], table: Mapping[str, object]) -> tuple[str, list[str]]:
    """Return the default index in uv's settings, or "", and the others."""
    default = env.get("UV_DEFAULT_INDEX") or env.get("UV_INDEX_URL") or ""
    more = f"{env.get('UV_INDEX', '')} {env.get('UV_EXTRA_INDEX_URL', '')}".split()
    rows = table.get("index")
    for row in rows if isinstance(rows, list) else ():
        name, url = row.get("name", ""), row.get("url", "")
        word = f"{name}={url}" if name else url
        if row.get("default"):
            default = default or word
        elif not row.get("explicit"):
            more.append(word)
    default = default or "".join(_strings(table, "index-url"))
    more += _strings(table, "extra-index-url")
    return _without_name(default, env), [_without_name(word, env) for word in more]


def _without_name(word: str, env: Mapping[str, str]) -> str:
    """Return the address in `name=address`, with the login in the variables of the name."""
    named = re.match(r"([\w.-]+)=", word)
    if not named:
        return word
    prefix = f"UV_INDEX_{re.sub(r'[^A-Z0-9]', '_', named[1].upper())}"
    user, password = (env.get(f"{prefix}_{end}", "") for end in ("USERNAME", "PASSWORD"))
    return _with_login(word[named.end() :], user, password)


def _with_login(url: str, user: str, password: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@"
    return parts._replace(netloc=f"{login}{host}").geturl() if user or password else url


def _with_password(url: str, provider: str) -> str:
    """Return an address with the keyring's password, if it names a user only."""
    parts = urlsplit(url)
    if provider == "disabled" or not parts.username or parts.password is not None:
        return url
    return _with_login(url, unquote(parts.username), _from_keyring(url, unquote(parts.username)))


@cache
def _from_keyring(url: str, user: str) -> str:
    """Return the password that the program `keyring` has for an index or its host, or ""."""
    program = shutil.which("keyring")
    for service in (url.replace(f"{quote(user)}@", "", 1), urlsplit(url).hostname or ""):
        with suppress(HostError):
            if program:
                return capture([program, "get", service, user], cwd=Path("/")).rstrip("\n")
    return ""


def _from_netrc(host: str) -> str:
    path = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    with suppress(OSError, netrc.NetrcParseError):
        if found := netrc.netrc(str(path)).authenticators(host):
            return f"{found[0]}:{found[2]}"
    return ""


def _proxies(env: Mapping[str, str], pip: str) -> dict[str, str]:
    def read(name: str) -> str:
        return env.get(f"{name}_proxy") or env.get(f"{name}_proxy".upper()) or ""

    found = {scheme: read(scheme) or read("all") or pip for scheme in ("http", "https")}
    return {name: url if "://" in url else f"http://{url}" for name, url in found.items() if url}


def _address(place: str) -> str:
    """Return the address of an index or page, which may be a directory."""
    return place if "://" in place else Path(place).expanduser().absolute().as_uri()


def _strings(table: Mapping[str, object], name: str) -> list[str]:
    value = table.get(name, [])
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def _is_set(table: Mapping[str, str], name: str) -> bool:
    return table.get(name, "").lower() in ("1", "true", "yes", "on")
