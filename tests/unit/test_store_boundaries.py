"""A store is not believed: nothing that it says leads outside, and nothing outside gets into it."""

import gzip
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from tests.support.helpers import Command
from tests.support.hostile_store import (
    BLOCK,
    SCOPES,
    Json,
    add_result,
    file_result,
    forge,
    picture,
    put,
    read_json,
    task_at,
)

from torchyard.errors import (
    BuildError,
    HostError,
    SelectionError,
    StoreError,
    TorchyardError,
)
from torchyard.host.untrusted_tree import TreeEntry, UntrustedTree
from torchyard.model.canonical import fingerprint
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.model.result import File, Result, Tree
from torchyard.store.keys import blob_key, claim_key, result_key
from torchyard.store.local_cache import LocalCache
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_all, fetch_file, fetch_tree, read_result_log
from torchyard.store.verify import remove_broken, verify

SECRET = "a file of the machine\n"


NOBODY = 65534


@pytest.fixture(params=["caller", "ordinary user"])
def user(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Try as the user that runs the tests, and if that is root, also as an ordinary one."""
    if request.param == "caller":
        yield
        return
    if os.getuid() != 0:
        pytest.skip("the tests run as an ordinary user")
    for above in tmp_path.parents:
        if not above.stat().st_mode & stat.S_IXOTH:
            above.chmod(above.stat().st_mode | stat.S_IXOTH)
    os.chown(tmp_path, NOBODY, NOBODY)
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    yield
    os.seteuid(0)
    os.setegid(0)
    os.setgroups(groups)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A directory outside, which must be the same afterwards."""
    folder = tmp_path / "victim"
    (folder / "sub").mkdir(parents=True)
    for path in (folder / "file", folder / "sub/file"):
        path.write_text(SECRET, encoding="utf-8")
    before = picture(folder)
    yield folder
    assert picture(folder) == before


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.at(str(tmp_path / "store"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What a step made."""
    folder = tmp_path / "out"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/file").write_text("made", encoding="utf-8")
    return folder


def result_of(store: Store, out: Path, stage: Stage = Stage.PACKAGE) -> Result:
    return add_result(store, task_at(SCOPES[stage], stage), out)


DIGEST = "ab" * 32


def _file(path: str) -> Json:
    return {"path": path, "digest": DIGEST, "size": 1, "mtime": 0}


MANIFESTS: dict[str, tuple[str, Json]] = {
    "path: above": ("tree.files.0.path", "../victim/file"),
    "path: absolute": ("tree.files.0.path", "/tmp/victim"),
    "path: above, later": ("tree.files.0.path", "sub/../../victim/file"),
    "path: a dot": ("tree.files.0.path", "./file"),
    "path: two slashes": ("tree.files.0.path", "sub//file"),
    "path: ends with a slash": ("tree.files.0.path", "sub/"),
    "path: empty": ("tree.files.0.path", ""),
    "path: above, of a sidecar": ("sidecars", [_file("../victim/file")]),
    "path: of a file and a sidecar": ("sidecars", [_file("sub/file")]),
    "path: NUL": ("tree.files.0.path", "sub\0file"),
    "path: too long": ("tree.files.0.path", "a/" * 4000 + "a"),
    "path: not Unicode": ("tree.files.0.path", 7),
    "digest: a path": ("tree.files.0.digest", "../../victim/file"),
    "digest: dots": ("tree.files.0.digest", ".."),
    "digest: short": ("tree.files.0.digest", "ab12"),
    "digest: upper case": ("tree.files.0.digest", "AB" * 32),
    "digest: with a newline": ("tree.files.0.digest", f"{DIGEST}\n"),
    "digest: with a slash": ("tree.files.0.digest", f"{DIGEST[:31]}/{DIGEST[:32]}"),
    "digest of a part": (
        "tree.files.0.parts",
        [{"digest": "../../../../etc/passwd", "size": 4}],
    ),
    "digest of the log": ("log.digest", "../" * 9 + "etc/passwd"),
    "size: negative": ("tree.files.0.size", -1),
    "size: huge": ("tree.files.0.size", 2**70),
    "size: not that of its parts": ("tree.files.0.parts", [{"digest": DIGEST, "size": 9}]),
    "time: huge": ("tree.files.0.mtime", 2**80),
    "link: above": ("tree.links", {"../victim/new": "x"}),
    "link: absolute": ("tree.links", {"/tmp/victim/new": "x"}),
    "link: of a folder with files": ("tree.links", {"sub": "../victim"}),
    "link: of a file, twice": ("tree.links", {"sub/file": "../victim/file"}),
    "link: without a target": ("tree.links", {"link": ""}),
    "link: NUL in the target": ("tree.links", {"link": "a\0b"}),
    "link: too long": ("tree.links", {"link": "a" * 5000}),
    "link: leads to the root": ("tree.links", {"link": "/etc/passwd"}),
    "link: leads above": ("tree.links", {"sub/link": "../../victim"}),
    "link: leads above, later": ("tree.links", {"dot": ".", "link": "dot/../victim/file"}),
    "file: below a file": ("tree.files", [_file("sub"), _file("sub/more")]),
    "file: far below a file": ("tree.files", [_file("a/b/c/d"), _file("a/b")]),
    "file: twice": ("tree.files", [_file("again"), _file("again")]),
    "empty: above": ("tree.empty", ["../victim/new"]),
    "empty: absolute": ("tree.empty", ["/tmp/victim/new"]),
    "empty: is a file": ("tree.empty", ["sub/file"]),
    "empty: below a file": ("tree.empty", ["sub/file/more"]),
    "scope: above": ("spec.tasks.0.scope", "../victim"),
    "scope: above, later": ("spec.tasks.0.scope", f"{BLOCK}/../../../victim/wheel"),
    "scope: absolute": ("spec.tasks.0.scope", "/tmp/victim"),
    "scope: dots": ("spec.tasks.0.scope", ".."),
    "scope: empty part": ("spec.tasks.0.scope", "linux//cp312/wheel"),
    "scope: newline": ("spec.tasks.0.scope", f"{BLOCK}/cp312/wheel\n"),
    "scope: of another identifier": ("spec.tasks.0.scope", f"{BLOCK}/cp311/wheel"),
    "identifier: above": ("spec.tasks.0.id", "package:demo-1.0/../../victim"),
    "identifier: of another stage": ("spec.tasks.0.id", f"core:demo-1.0/{BLOCK}/cp312/wheel"),
    "identifier: terminal escapes": ("spec.tasks.0.id", "package:\x1b[2Jdemo-1.0"),
    "input: a path": ("spec.tasks.0.inputs", ["../../../victim/file"]),
    "no task": ("spec.tasks", []),
    "no spec": ("spec", None),
    "unknown field": ("more", 1),
}


@pytest.fixture
def forged(store: Store, out: Path, request: pytest.FixtureRequest) -> str:
    """Replace the manifest of a result, and return its fingerprint."""
    path, value = MANIFESTS[request.param]
    result = result_of(store, out)
    document = read_json(result)
    put(document, path, value)
    if path.startswith("spec.tasks.0") and not path.endswith("id"):
        store.objects.delete([result_key(result.fingerprint)])
        return forge(store, document)
    file_result(store, msgspec.json.encode(document), result.fingerprint)
    return result.fingerprint


@pytest.mark.parametrize("forged", MANIFESTS, indirect=True)
@pytest.mark.usefixtures("victim")
def test_a_manifest_that_could_do_harm_is_not_used(
    forged: str, store: Store, torchyard: Command, tmp_path: Path
) -> None:
    before = picture(tmp_path)
    with pytest.raises(StoreError, match=r"can't be read|can't be used|another job"):
        store.find(forged)
    got = torchyard("store", "get", forged[:12], "--store", store.url, "-o", tmp_path / "to")
    assert got.code == StoreError.exit_code
    assert "Traceback" not in got.err
    assert picture(tmp_path) == before
    verdict = verify(store)
    assert list(verdict.broken) == [forged]
    remove_broken(store, verdict)
    assert store.find(forged) is None
    assert verify(store).is_clean


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"spec":' * 9000], ids=repr
)
def test_bytes_that_are_no_manifest(data: bytes, store: Store) -> None:
    file_result(store, data, DIGEST)
    with pytest.raises(StoreError, match="can't be read"):
        store.find(DIGEST)
    remove_broken(store, verify(store))
    assert list(store.fingerprints()) == []


def test_a_spec_with_another_task_than_its_fingerprint_says(store: Store, out: Path) -> None:
    core = task_at(BLOCK, Stage.CORE, compiler="gcc")
    payload = msgspec.structs.replace(task_at(SCOPES[Stage.PACKAGE]), inputs=(core.fingerprint,))
    package = msgspec.structs.replace(payload, fingerprint=fingerprint(payload.payload))
    result = msgspec.structs.replace(
        result_of(store, out), fingerprint=package.fingerprint, spec=JobSpec(tasks=(core, package))
    )
    assert store.publish(result)
    assert store.find(result.fingerprint) == result
    document = read_json(result)
    put(document, "spec.tasks.0.settings.compiler", "another")
    file_result(store, msgspec.json.encode(document), result.fingerprint)
    with pytest.raises(StoreError, match="another job"):
        store.find(result.fingerprint)


def test_a_log_may_be_anything(store: Store, out: Path, tmp_path: Path) -> None:
    result = result_of(store, out)
    bomb = tmp_path / "bomb"
    bomb.write_bytes(gzip.compress(bytes(64 << 20)))
    (tmp_path / "text").write_text("no gzip", encoding="utf-8")
    large = msgspec.structs.replace(result, log=Writer(store).add_file(bomb, "log.gz"))
    assert max(map(len, read_result_log(store, large))) <= 1 << 20
    wrong = msgspec.structs.replace(result, log=Writer(store).add_file(tmp_path / "text", "log.gz"))
    with pytest.raises(StoreError, match=r"the log of .* is damaged"):
        list(read_result_log(store, wrong))


@pytest.mark.parametrize("name", ["..", "../../victim", "ab", "ab/../cd", "", f"{DIGEST}\n", "\0"])
def test_no_key_is_made_of_what_is_no_digest(name: str, store: Store, tmp_path: Path) -> None:
    for key in (blob_key, result_key, claim_key, store.find, store.has):
        with pytest.raises(StoreError, match="is not a digest"):
            key(name)
    cache = LocalCache(tmp_path / "copies", 1 << 20)
    tree = Tree(files=(File(path="x", digest=name, size=1, mtime=0),))
    with pytest.raises(StoreError, match="is not a digest"):
        fetch_tree(store, tree, tmp_path / "to", cache)


def test_objects_in_places_that_are_not_theirs_are_found(store: Store, out: Path) -> None:
    result = result_of(store, out)
    data = store.objects.read(result_key(result.fingerprint))
    blob = store.objects.read(blob_key(result.tree.files[0].digest))
    assert data is not None
    assert blob is not None
    store.objects.write(f"results/00/{result.fingerprint}.json", data)
    store.objects.write("results/00/no-digest.json", data)
    store.objects.write(f"blobs/00/{result.tree.files[0].digest}", blob)
    store.objects.write("blobs/00/no-digest", blob)
    verdict = verify(store)
    assert len(verdict.broken) == len(verdict.damaged) == 2
    remove_broken(store, verdict)
    assert verify(store).is_clean
    assert store.find(result.fingerprint) == result


def _tree(store: Store, folder: Path, **made: str) -> Tree:
    """Store a tree of files; a value that begins with `->` is a link."""
    for name, text in made.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text, encoding="utf-8")
    return Writer(store).add_tree(folder)


LAID: dict[str, dict[str, str]] = {
    "a file": {"sub__file": "new"},
    "a file, deeper": {"sub__sub__file": "new"},
    "a new file": {"sub__new": "new"},
    "a link": {"sub__link": "->file"},
    "a link in place of a file": {"sub__file": "->new"},
}


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize("made", LAID.values(), ids=LAID)
@pytest.mark.parametrize("link", ["sub", "sub/sub", "sub/file"])
def test_nothing_is_laid_out_through_a_link_in_the_directory(
    made: dict[str, str], link: str, store: Store, tmp_path: Path, victim: Path
) -> None:
    tree = _tree(store, tmp_path / "made", **made)
    (tmp_path / "to" / link).parent.mkdir(parents=True)
    (tmp_path / "to" / link).symlink_to(victim / "file" if link == "sub/file" else victim)
    needs = {"/".join(name.split("__")[:count]) for name in made for count in range(1, 3)}
    if link in needs and any(name.replace("__", "/").startswith(f"{link}/") for name in made):
        with pytest.raises(HostError, match="link"):
            fetch_tree(store, tree, tmp_path / "to")
    else:
        fetch_tree(store, tree, tmp_path / "to")


@pytest.mark.usefixtures("user")
def test_an_empty_folder_is_not_made_through_a_link(
    store: Store, tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "to/sub").symlink_to(victim)
    with pytest.raises(HostError, match="link"):
        fetch_tree(store, Tree(empty=("sub/new",)), tmp_path / "to")


@pytest.mark.usefixtures("user")
def test_a_file_takes_the_place_of_a_link(store: Store, tmp_path: Path, victim: Path) -> None:
    tree = _tree(store, tmp_path / "made", file="new")
    (tmp_path / "to").mkdir()
    for name in ("file", "other"):
        (tmp_path / "to" / name).symlink_to(victim / "file")
    fetch_tree(store, tree, tmp_path / "to")
    fetch_file(store, tree.files[0], tmp_path / "to/other")
    for name in ("file", "other"):
        assert not (tmp_path / "to" / name).is_symlink()
        assert (tmp_path / "to" / name).read_text(encoding="utf-8") == "new"


def _stored(store: Store, tmp_path: Path, *trees: dict[str, str]) -> list[Result]:
    """Store results of different jobs, which are no packages."""
    results = []
    for number, made in enumerate(trees):
        folder = tmp_path / f"made{number}"
        folder.mkdir()
        _tree(store, folder, **made)
        task = task_at(f"linux-x86_64/cpu-{number}", Stage.CORE)
        results.append(add_result(store, task, folder))
    return results


TOGETHER: dict[str, tuple[dict[str, str], ...]] = {
    "a link, and a file below it": ({"sub": "->../victim"}, {"sub__file": "new"}),
    "a link, and a link below it": ({"sub": "->../victim"}, {"sub__link": "->x"}),
    "a link, and a file two below": ({"sub": "->../victim"}, {"sub__sub__file": "new"}),
    "a link deeper": ({"a__sub": "->../../victim"}, {"a__sub__file": "new"}),
    "a file, and a file below it": ({"sub": "x"}, {"sub__file": "new"}),
    "a link, and a block of that name": (
        {"linux-x86_64": "->../victim"},
        {"same": "x"},
        {"same": "y"},
    ),
}


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize("trees", TOGETHER.values(), ids=TOGETHER)
@pytest.mark.parametrize("order", [1, -1], ids=["", "reversed"])
def test_a_link_of_one_result_is_not_followed_for_another(
    trees: tuple[dict[str, str], ...],
    order: int,
    store: Store,
    tmp_path: Path,
    victim: Path,
) -> None:
    results = _stored(store, tmp_path, *trees)[::order]
    with pytest.raises(SelectionError, match="can't be in one directory"):
        fetch_all(store, results, tmp_path / "to")
    for result in results:  # and one after the other
        with suppress(TorchyardError):
            fetch_all(store, [result], tmp_path / "one")
    assert victim.exists()


def test_a_link_in_the_directory_for_a_block_is_not_followed(
    store: Store, tmp_path: Path, victim: Path
) -> None:
    results = _stored(store, tmp_path, {"same": "x"}, {"same": "y"})
    (tmp_path / "to").mkdir()
    (tmp_path / "to/linux-x86_64").symlink_to(victim)
    with pytest.raises(HostError, match="link"):
        fetch_all(store, results, tmp_path / "to")


# What gets into a store.

Change = Callable[[Path, Path], object]
"""Changes what a step made: its directory, and one outside."""


def _swap(path: Path, target: Path) -> None:
    path.rename(path.with_name(f"{path.name}.aside"))
    path.symlink_to(target)


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def _fifo(out: Path, _: Path) -> None:
    os.mkfifo(out / "fifo")


def _socket(out: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(out)
        made.bind("socket")


def _deep(out: Path, _: Path) -> None:
    os.chdir(out)
    for _number in range(400):
        Path("d").mkdir()
        os.chdir("d")


MADE: dict[str, Change] = {
    "the whole directory is a link": _swap,
    "a fifo": _fifo,
    "a socket": _socket,
    "a name that is not UTF-8": lambda out, _: (out / os.fsdecode(b"\xff")).touch(),
    "a folder that is not UTF-8": lambda out, _: (out / os.fsdecode(b"\xff")).mkdir(),
    "a target that is not UTF-8": lambda out, _: (out / "x").symlink_to(os.fsdecode(b"\xff")),
    "folders in one another": _deep,
    "a file larger than the disk": lambda out, _: os.truncate(out / "sub/file", 1 << 43),
}


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize("change", MADE.values(), ids=MADE)
def test_what_a_step_leaves_ends_in_a_sentence(
    change: Change, store: Store, out: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(out)
    try:
        change(out, victim)
    except OSError as error:
        pytest.skip(f"can't be made here: {error}")
    with pytest.raises(HostError):
        Writer(store).add_tree(out)
    assert list(store.objects.list("blobs/")) == []


SWAPPED: dict[str, Change] = {
    "a file for a link": lambda out, victim: _swap(out / "sub/file", victim / "file"),
    "its folder for a link": lambda out, victim: _swap(out / "sub", victim),
    "a file for a fifo": lambda out, _: _replace(out / "sub/file", os.mkfifo),
    "a file for a folder": lambda out, _: _replace(out / "sub/file", Path.mkdir),
    "a file is gone": lambda out, _: (out / "sub/file").unlink(),
}


@pytest.mark.usefixtures("user")
@pytest.mark.parametrize("change", SWAPPED.values(), ids=SWAPPED)
def test_what_is_swapped_after_it_was_listed_is_not_followed(
    change: Change, store: Store, out: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = UntrustedTree.walk

    def walk(tree: UntrustedTree, *, partly: bool = False) -> Iterator[TreeEntry]:
        found = list(listed(tree, partly=partly))
        change(out, victim)
        return iter(found)

    monkeypatch.setattr(UntrustedTree, "walk", walk)
    with pytest.raises(HostError):
        Writer(store).add_tree(out)
    assert list(store.objects.list("blobs/")) == []


def test_the_whole_directory_swapped_while_it_is_read_does_not_matter(
    store: Store, out: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = UntrustedTree.walk

    def walk(tree: UntrustedTree, *, partly: bool = False) -> Iterator[TreeEntry]:
        found = list(listed(tree, partly=partly))
        _swap(out, victim)
        return iter(found)

    monkeypatch.setattr(UntrustedTree, "walk", walk)
    (file,) = Writer(store).add_tree(out).files
    assert store.objects.read(blob_key(file.digest)) == b"made"


@pytest.mark.parametrize("size", [100, 9 << 20])
def test_bytes_and_digest_are_of_one_reading(
    size: int, store: Store, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = out / "sub/file"
    path.write_bytes(b"x" * size)
    head = store.objects.head

    def change(key: str) -> object:
        path.write_bytes(b"y" * size)
        return head(key)

    monkeypatch.setattr(store.objects, "head", change)
    try:
        (file,) = Writer(store).add_tree(out).files
    except BuildError:
        assert list(store.objects.list("blobs/")) == []
    else:
        assert store.objects.read(blob_key(file.digest)) == b"x" * size


def test_a_link_is_stored_as_a_link(store: Store, out: Path, victim: Path) -> None:
    (out / "link").symlink_to(victim / "file")
    (out / "folder").symlink_to(victim)
    tree = Writer(store).add_tree(out)
    assert tree.links == {"link": str(victim / "file"), "folder": str(victim)}
    assert [file.path for file in tree.files] == ["sub/file"]


def test_a_log_that_is_a_link_is_not_stored(store: Store, out: Path, victim: Path) -> None:
    (out / "log.gz").symlink_to(victim / "file")
    with pytest.raises(HostError, match="link"):
        Writer(store).add_file(out / "log.gz", "log.gz")


@pytest.mark.usefixtures("user")
def test_files_are_not_moved_into_the_cache_through_a_link(
    store: Store, out: Path, tmp_path: Path, victim: Path
) -> None:
    (out / "other").write_text("other", encoding="utf-8")
    tree = Writer(store).add_tree(out)
    _swap(out / "sub", victim)
    _swap(out / "other", victim / "file")
    cache = LocalCache(tmp_path / "copies", 1 << 30)
    cache.take(tree, out)
    assert cache.size == 0


AS_USER = """\
import os, sys
from pathlib import Path
from torchyard.errors import HostError
from torchyard.model.result import Tree
from torchyard.store.store import Store
from torchyard.store.trees import Writer, fetch_tree
base = Path(sys.argv[1])
store = Store.at(str(base / "store"))
if os.getuid() == 0:
    os.chown(base, 65534, 65534)
    os.chown(base / "store", 65534, 65534)
    os.setgroups([]), os.setgid(65534), os.setuid(65534)

def attempt(use):
    try:
        use()
    except HostError as error:
        print("refused:", error)

for number, (name, mode) in enumerate((("sub/file", 0), ("sub", 0), ("sub", 0o300), (".", 0))):
    out = base / f"out{number}"
    (out / "sub").mkdir(parents=True)
    (out / "sub/file").touch()
    (out / name).chmod(mode)
    attempt(lambda: Writer(store).add_tree(out))
to = base / "to"
to.mkdir()
(to / "sub").symlink_to(base)
(to / "closed").mkdir(0o500)
for name in ("sub/new", "closed/new"):
    attempt(lambda: fetch_tree(store, Tree(empty=(name,)), to))
"""


def test_an_ordinary_user_gets_a_sentence(tmp_path: Path) -> None:
    """Root can read and write everything, so this has to be tried as another user."""
    folder = tmp_path / "user"
    folder.mkdir()
    for above in folder.parents:
        if above.stat().st_uid == os.getuid() and not above.stat().st_mode & 0o001:
            above.chmod(above.stat().st_mode | 0o001)
    argv = [sys.executable, "-c", AS_USER, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not done.stderr
    assert done.stdout.count("refused:") == 6
    assert not (folder / "new").exists()
