"""What is done to a channel after publishing, on channels in directories."""

import json
import os
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.channel_reader import Reader, read_all
from tests.support.channels import Death, Mortal, conda, libtorch, put
from tests.support.channels import wheel as made
from tests.support.examples import examples
from tests.support.helpers import Command
from tests.support.schemas import validate

from torchyard.errors import PublishError, SelectionError, UsageError
from torchyard.index.availability import offers
from torchyard.index.conda.repodata import record_of
from torchyard.index.conda.section import CondaSection
from torchyard.index.entry import Entry, State, sort_key
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason
from torchyard.publish.channel.head import Head, Pin
from torchyard.publish.channel.layout import PartName, key_of, parse_part
from torchyard.publish.ops.pin import add_channel_pin, remove_channel_pin
from torchyard.publish.ops.prune import prune
from torchyard.publish.ops.retention import Keep, outdated
from torchyard.publish.ops.rollback import restored, rollback
from torchyard.publish.ops.yank import set_status, yank
from torchyard.publish.select import choose, parse_selection
from torchyard.store.objects import Objects

TORCH = PartName("simple", "torch")
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def moment(days: float = 0) -> str:
    return f"{NOW + timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"


def reason(why: str, days: float = 0) -> ChangeReason:
    return ChangeReason(why, moment(days))


def wheel(version: str, variant: str = "cpu", day: float = 0, project: str = "torch") -> Entry:
    """A file whose bytes are its name."""
    local = f"+{variant}" if variant else ""
    file = f"{project}-{version}{local}-cp312-cp312-manylinux_2_28_x86_64.whl"
    return Entry(
        file=file,
        version=version + local,
        variant=variant,
        sha256=sha256(file.encode()).hexdigest(),
        size=len(file),
        uploaded=moment(day),
        metadata=sha256(b"METADATA").hexdigest(),
        commit="c0ffee",
    )


def package(name: str, version: str) -> Entry:
    """A conda package whose bytes are its name."""
    file = f"{name}-{version}-h1_0.conda"
    digest = sha256(file.encode()).hexdigest()
    index = {"name": name, "version": version, "build": "h1_0", "build_number": 0}
    record = record_of(
        msgspec.json.encode(index | {"subdir": "linux-64"}), sha256=digest, md5="0" * 32, size=1
    )
    return replace(wheel(version), file=file, version=version, sha256=digest, record=record)


def add(channel: Channel, entries: Iterable[Entry], days: float = 0, part: str = "") -> Head:
    """Publish files, each in the part of its project, without any gate."""
    parts: dict[str, list[Entry]] = {}
    for entry in entries:
        parts.setdefault(part or f"simple/{entry.file.partition('-')[0]}", []).append(entry)
    for name, found in parts.items():
        for entry in found:
            key = key_of(parse_part(name), entry)
            channel.objects.create(key, entry.file.encode())
            channel.objects.create(f"{key}.metadata", b"METADATA")
            channel.objects.create(f"{key}.intoto.jsonl", b"STATEMENT")

    def edit(new: list[Entry], state: State) -> State:
        names = {(e.file, e.variant) for e in new}
        return replace(
            state,
            entries=tuple(sorted((*state.entries, *new), key=sort_key)),
            hidden=tuple(h for h in state.hidden if (h.entry.file, h.entry.variant) not in names),
        )

    edits = {name: lambda state, new=new: edit(new, state) for name, new in parts.items()}
    return channel.commit(edits, reason("publish", days))


def entries(channel: Channel, part: str = "simple/torch") -> tuple[Entry, ...]:
    return channel.state(channel.head(), part).entries


def versions(channel: Channel, part: str = "simple/torch") -> list[str]:
    return [entry.version for entry in entries(channel, part)]


def page(channel: Channel, path: str) -> str:
    data = channel.objects.read(path)
    assert data is not None
    return data.decode()


def check_pages(channel: Channel) -> None:
    """Every page is what it should be, and names only files that are there."""
    head = channel.head()
    assert channel.mend([*head.parts, ""]) == []
    folder = channel.objects.folder
    assert folder is not None
    for path in folder.rglob("index.json"):
        told = msgspec.json.decode(path.read_bytes())
        for file in told.get("files", ()):
            target = Path(os.path.normpath(path.parent / unquote(file["url"])))
            assert target.read_bytes() == file["filename"].encode()


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.at(str(tmp_path / "channel"), make=True)


NIGHTS = [f"2.14.0.dev2026110{day}" for day in range(1, 6)]


@pytest.fixture(scope="module")
def nightly_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publish five nightlies of two projects in two variants, the last of today."""
    folder = tmp_path_factory.mktemp("nightly")
    channel = Channel.at(str(folder), make=True)
    for day, version in enumerate(NIGHTS, start=-4):
        files = [
            wheel(version, variant, day, project)
            for project in ("torch", "vision")
            for variant in ("cpu", "cu130")
        ]
        add(channel, files, day)
    return folder


@pytest.fixture
def nightly(nightly_files: Path, tmp_path: Path) -> Channel:
    """Give the test a copy of the nightlies that it may change."""
    return Channel.at(str(shutil.copytree(nightly_files, tmp_path / "channel")))


# Selecting


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("torch", 10),
        ("Torch", 10),
        ("torch==2.14.0.dev20261101", 2),
        ("torch==2.14.0.dev20261101+cpu", 1),
        ("torch==2.14.0.dev2026110*", 10),
        ("torch==2.14.0.dev2026110[12]", 4),
        ("torch==2.14.0.dev*+cu130", 5),
        ("torch>=2.14.0.dev20261104", 4),
        ("torch>2.13,<2.14.0.dev20261102", 2),
        ("*==2.14.0.dev20261105", 4),
        ("?orch", 10),
    ],
)
def test_selectors_are_requirements(nightly: Channel, selector: str, found: int) -> None:
    assert len(choose(nightly, nightly.head(), parse_selection([selector]))) == found


@pytest.mark.parametrize("name", ["my-tool", "My_Tool", "my_*", "MY.to?l"])
def test_names_are_the_same_however_they_are_written(
    channel: Channel, torchyard: Command, name: str
) -> None:
    put(channel, made("my-tool", "1.0"), made("my-tool", "2.0"), made("other", "1.0"))
    assert len(choose(channel, channel.head(), parse_selection([name]))) == 2
    args = ("channel", "prune", channel.url, "--keep", "1", "--project", name, "--json")
    (hidden,) = json.loads(torchyard(*args).out)["hidden"]
    assert (hidden["part"], hidden["release"]) == ("simple/my-tool", "1.0")


def test_nobody_asks_for_longer_than_a_hundred_years(channel: Channel, torchyard: Command) -> None:
    put(channel, made("torch"))
    assert (
        torchyard("channel", "prune", channel.url, "--keep", "1", "--grace", "999999999 d").code
        == 0
    )
    assert (
        torchyard("channel", "prune", channel.url, "--keep-days", "99999999").code
        == UsageError.exit_code
    )


def test_selections_narrow_by_variant_and_file(nightly: Channel) -> None:
    head = nightly.head()
    assert len(choose(nightly, head, parse_selection(["torch"], ["cu*"]))) == 5
    assert len(choose(nightly, head, parse_selection(["torch"], [], ["*1105+cpu-cp312*"]))) == 1


@pytest.mark.parametrize(
    ("selection", "hint"),
    [
        (["torhc"], "did you mean `torch`?"),
        (["torch==2.14.0.dev20261106"], "did you mean `2.14.0.dev2026110"),
        (["torch", "vison"], "did you mean `vision`?"),
        (["torch==1.0"], "known here: 2.14.0.dev20261101, "),
    ],
)
def test_selecting_nothing_is_an_error(nightly: Channel, selection: list[str], hint: str) -> None:
    with pytest.raises(SelectionError) as caught:
        choose(nightly, nightly.head(), parse_selection(selection))
    assert hint in (caught.value.diagnostics[0].hint or "")


def test_an_unknown_variant_is_an_error(nightly: Channel) -> None:
    with pytest.raises(SelectionError) as caught:
        choose(nightly, nightly.head(), parse_selection(["torch"], ["cu13"]))
    assert caught.value.diagnostics[0].hint == "did you mean `cu130`?"


@pytest.mark.parametrize("text", ["", "==1.0", "torch=1.0", "torch>=", "torch==1.0;x", "to rch"])
def test_selectors_that_nobody_can_read(text: str) -> None:
    with pytest.raises(UsageError):
        parse_selection([text])


def test_conda_packages_are_chosen_by_their_own_names(channel: Channel) -> None:
    conda, odd = package("libtorch-linalg", "1.0"), package("odd", "2024_07")
    add(channel, [conda, odd], part="conda/linux-64")
    head = channel.head()
    (found,) = choose(channel, head, parse_selection(["libtorch-linalg==1.0"]))
    assert found == ("conda/linux-64", conda)
    assert choose(channel, head, parse_selection(["odd==2024_07"]))[0].entry == odd
    with pytest.raises(SelectionError):
        choose(channel, head, parse_selection(["libtorch"]))


# Taking back


def test_yanked_files_are_marked_with_the_reason(nightly: Channel) -> None:
    selection = parse_selection(["torch==2.14.0.dev20261105"], ["cu130"])
    _, changed = yank(nightly, selection, 'wrong "sums"', reason("yank"))
    assert [one.entry.version for one in changed] == ["2.14.0.dev20261105+cu130"]
    html = page(nightly, "cu130/torch/index.html")
    assert html.count("data-yanked=") == 1
    assert 'data-yanked="wrong &quot;sums&quot;"' in html
    assert "data-yanked" not in page(nightly, "cpu/torch/index.html")
    newest = {one.variant: one.version for one in nightly.head().parts["simple/torch"].offers}
    assert newest["cu130"].startswith(NIGHTS[3])
    check_pages(nightly)


def test_yanking_again_changes_nothing(nightly: Channel) -> None:
    selection = parse_selection(["torch==2.14.0.dev20261105"])
    first, _ = yank(nightly, selection, "", reason("yank"))
    again, changed = yank(nightly, selection, "", reason("yank"))
    assert (again.generation, changed) == (first.generation, [])


@given(st.sets(st.integers(0, 9)), st.text(max_size=5))
@settings(max_examples=examples(10), deadline=None)
def test_undoing_a_yank_gives_the_same_entries(chosen: set[int], note: str) -> None:
    with TemporaryDirectory() as folder:
        channel = Channel.at(folder, make=True)
        add(channel, [wheel(f"1.{minor}") for minor in range(10)])
        before = entries(channel)
        selection = parse_selection([f"torch==1.{minor}" for minor in chosen] or ["torch"])
        _, yanked = yank(channel, selection, note, reason("yank"))
        assert {e.version for e in entries(channel) if e.yanked == note} == {
            one.entry.version for one in yanked
        }
        yank(channel, selection, None, reason("undo"))
        assert entries(channel) == before


def test_projects_have_a_status(nightly: Channel) -> None:
    set_status(nightly, "torch", "quarantined", "somebody got in", reason("status"))
    told = msgspec.json.decode(page(nightly, "simple/torch/index.json"))
    assert told["project-status"] == {"status": "quarantined", "reason": "somebody got in"}
    assert told["files"] == []
    set_status(nightly, "torch", "active", "", reason("status"))
    assert len(msgspec.json.decode(page(nightly, "simple/torch/index.json"))["files"]) == 10
    with pytest.raises(SelectionError, match="no project `toch`"):
        set_status(nightly, "toch", "active", "", reason("status"))


# Going back


def test_rollback_shows_what_was_there_before_the_last_change(nightly: Channel) -> None:
    shown = versions(nightly)
    head = add(nightly, [wheel("2.14.0"), wheel("2.14.0", "cu130")])
    after, changes = rollback(nightly, None, reason("rollback"))
    assert {what: len(files) for what, files in changes.items()} == {"hidden": 2}
    assert versions(nightly) == shown
    assert after.generation == head.generation + 1
    assert "2.14.0+cpu" not in page(nightly, "cpu/torch/index.html")
    hidden = nightly.state(after, "simple/torch").hidden
    assert sorted(one.entry.version for one in hidden) == ["2.14.0+cpu", "2.14.0+cu130"]
    check_pages(nightly)


def test_rollback_of_a_rollback_and_publishing_afterwards(nightly: Channel) -> None:
    add(nightly, [wheel("2.14.0")])
    rollback(nightly, None, reason("rollback"))
    rollback(nightly, None, reason("rollback"))
    assert "2.14.0+cpu" in versions(nightly)
    rollback(nightly, None, reason("rollback"))
    add(nightly, [wheel("2.14.0"), wheel("2.14.1")])
    assert {"2.14.0+cpu", "2.14.1+cpu"} < set(versions(nightly))
    check_pages(nightly)


def test_rollback_takes_a_yank_back(nightly: Channel) -> None:
    yank(nightly, parse_selection(["torch"]), "bad", reason("yank"))
    _, changes = rollback(nightly, None, reason("rollback"))
    assert {what: len(files) for what, files in changes.items()} == {"offered": 10}
    assert "data-yanked" not in page(nightly, "simple/torch/index.html")


def test_rollback_to_the_beginning_hides_everything(nightly: Channel) -> None:
    head, *_ = rollback(nightly, 0, reason("rollback"))
    assert versions(nightly) == []
    assert len(nightly.state(head, "simple/torch").hidden) == 10
    check_pages(nightly)


def test_rollback_keeps_pins_and_status(nightly: Channel) -> None:
    to = nightly.head().generation
    add(nightly, [wheel("2.14.0")])
    set_status(nightly, "torch", "deprecated", "", reason("status"))
    add_channel_pin(
        nightly, parse_selection(["torch==2.14.0.dev20261101"]), "old", "", reason("pin")
    )
    head, *_ = rollback(nightly, to, reason("rollback"))
    assert list(head.pins) == ["old"]
    state = nightly.state(head, "simple/torch")
    assert (state.status, len(state.entries)) == ("deprecated", 10)


def test_rollback_of_a_last_change_that_is_not_about_files_is_refused(nightly: Channel) -> None:
    add_channel_pin(
        nightly, parse_selection(["torch==2.14.0.dev20261101"]), "old", "", reason("pin it")
    )
    before = nightly.head()
    with pytest.raises(PublishError, match="neither showed nor hid files: pin it"):
        rollback(nightly, None, reason("rollback"))
    assert nightly.head() == before


@pytest.mark.parametrize("generation", [-1, 5, 6])
def test_rollback_only_to_what_was(nightly: Channel, generation: int) -> None:
    with pytest.raises(SelectionError, match="can't go back"):
        rollback(nightly, generation, reason("rollback"))


def test_rollback_refuses_what_has_been_deleted(nightly: Channel) -> None:
    to = nightly.head().generation
    prune(nightly, Keep(versions=3, projects=("torch",)), reason("prune"))
    state = nightly.state(nightly.head(), "simple/torch")
    gone = state.hidden[0].entry
    with pytest.raises(PublishError, match=f"`{gone.file.replace('+', '.')}` of simple/torch"):
        restored(TORCH, replace(state, hidden=state.hidden[1:]), (gone,), moment())
    with pytest.raises(PublishError):
        restored(TORCH, replace(state, pending_deletion=(key_of(TORCH, gone),)), (gone,), moment())
    rollback(nightly, to, reason("rollback"))
    assert len(entries(nightly)) == 10


def test_rollback_does_not_take_back_unseen_changes(nightly: Channel) -> None:
    other = Channel.at(nightly.url)
    head = nightly.head()

    class Slow(Channel):
        def state_at(self, digest: str) -> State:
            if other.head().generation == head.generation:
                add(other, [wheel("2.14.0")])
            return super().state_at(digest)

    with pytest.raises(PublishError, match="meanwhile: publish"):
        rollback(Slow.at(nightly.url), None, reason("rollback"))
    assert "2.14.0+cpu" in versions(nightly)


_steps = st.lists(
    st.tuples(
        st.sampled_from(["publish", "yank", "undo", "rollback", "prune"]),
        st.integers(0, 5),
        st.sampled_from(["cpu", "cu130", ""]),
    ),
    min_size=1,
    max_size=8,
)


@given(_steps)
@settings(max_examples=examples(15), deadline=None)
def test_going_back_shows_what_each_generation_showed(steps: list[tuple[str, int, str]]) -> None:
    with TemporaryDirectory() as folder:
        channel = Channel.at(folder, make=True)
        seen: dict[int, tuple[Entry, ...]] = {0: ()}
        for step, number, variant in steps:
            _do(channel, step, number, variant)
            seen[channel.head().generation] = entries(channel)
            check_pages(channel)
        last = channel.head().generation
        for generation in sorted(seen, reverse=True):
            if generation < last:
                rollback(channel, generation, reason("rollback"))
                assert entries(channel) == seen[generation]
                check_pages(channel)


def _do(channel: Channel, step: str, number: int, variant: str) -> None:
    shown = entries(channel)
    new = wheel(f"1.{number}", variant)
    match step:
        case "publish" if new not in shown and replace(new, yanked="bad") not in shown:
            add(channel, [new])
        case "yank" if shown:
            yank(channel, parse_selection(["torch"]), "bad", reason("yank"))
        case "undo" if shown:
            yank(channel, parse_selection(["torch"]), None, reason("undo"))
        case "rollback" if channel.head().generation:
            rollback(channel, None, reason("rollback"))
        case "prune":
            prune(channel, Keep(versions=number or 1), reason("prune"))
        case _:
            pass


# Keeping it small


def test_prune_hides_first_and_deletes_after_the_grace_period(nightly: Channel) -> None:
    done = prune(nightly, Keep(versions=3), reason("prune"))
    assert (len(done.hidden), done.deleted) == (8, [])
    assert sorted(set(versions(nightly))) == sorted(
        f"{night}+{variant}" for night in NIGHTS[2:] for variant in ("cpu", "cu130")
    )
    key = key_of(TORCH, wheel(NIGHTS[0]))
    assert nightly.objects.head(key) is not None
    assert prune(nightly, Keep(versions=3), reason("prune", 6)).deleted == []
    later = prune(nightly, Keep(versions=3), reason("prune", 8))
    assert (later.hidden, len(later.deleted)) == ([], 8)
    assert later.freed == sum(one.entry.size for one in done.hidden)
    assert nightly.objects.head(key) is None
    assert nightly.objects.head(f"{key}.metadata") is None
    assert nightly.objects.head(f"{key}.intoto.jsonl") is None
    state = nightly.state(nightly.head(), "simple/torch")
    assert (state.hidden, state.pending_deletion) == ((), ())
    check_pages(nightly)


def test_prune_trims_the_log_to_what_can_be_taken_back(nightly: Channel) -> None:
    prune(nightly, Keep(versions=3), reason("prune"))
    hid = nightly.head().generation
    add(nightly, [wheel("2.15.0")], 1)
    done = prune(nightly, Keep(), reason("prune", 8))
    head = nightly.head()
    assert head.log[0].generation == hid + 1
    assert done.states > 0
    folder = nightly.objects.folder
    assert folder is not None
    left = {path.name.partition(".")[0] for path in folder.rglob("states/*/*.zst")}
    logged = {digest for c in head.log for pair in c.parts.values() for digest in pair}
    assert left == {part.state for part in head.parts.values()} | logged
    rollback(nightly, hid, reason("rollback", 8))
    with pytest.raises(SelectionError):
        rollback(nightly, hid - 1, reason("rollback", 8))
    check_pages(nightly)


def test_prune_by_days_keeps_the_newest_version(nightly: Channel) -> None:
    prune(nightly, Keep(since=moment(-1.5)), reason("prune"))
    assert {version.partition("+")[0] for version in versions(nightly)} == set(NIGHTS[3:])
    prune(nightly, Keep(since=moment(30)), reason("prune"))
    assert {version.partition("+")[0] for version in versions(nightly)} == {NIGHTS[4]}


def test_what_was_taken_back_is_no_reason_to_hide_what_is_good(nightly: Channel) -> None:
    for night in NIGHTS[3:]:
        yank(nightly, parse_selection([f"torch=={night}"]), "broken", reason("yank"))
    prune(nightly, Keep(versions=1, projects=("torch",)), reason("prune"))
    assert sorted({version.partition("+")[0] for version in versions(nightly)}) == NIGHTS[2:]
    yank(nightly, parse_selection(["torch"]), "all of them", reason("yank"))
    prune(nightly, Keep(versions=1, projects=("torch",)), reason("prune"))
    assert {version.partition("+")[0] for version in versions(nightly)} == {NIGHTS[4]}


def test_prune_takes_only_the_projects_that_are_meant(nightly: Channel) -> None:
    prune(nightly, Keep(versions=1, projects=("vis*",)), reason("prune"))
    assert (len(versions(nightly)), len(versions(nightly, "simple/vision"))) == (10, 2)


def test_what_needs_others_is_hidden_first(nightly: Channel) -> None:
    prune(nightly, Keep(versions=1), reason("prune"))
    assert list(nightly.head().log[-1].parts) == ["simple/vision", "simple/torch"]


def test_a_dry_run_changes_nothing(nightly: Channel) -> None:
    prune(nightly, Keep(versions=4), reason("prune"))
    before = nightly.head()
    done = prune(nightly, Keep(versions=3), reason("prune", 8), dry_run=True)
    assert (len(done.hidden), len(done.deleted)) == (4, 4)
    assert nightly.head() == before


def test_prune_keeps_what_was_shown_within_the_grace_period(nightly: Channel) -> None:
    """A clock that was slow when files were hidden does not shorten the time to go back."""
    prune(nightly, Keep(versions=3), reason("prune", -30))
    done = prune(nightly, Keep(), reason("prune", 1))
    assert (done.deleted, done.left) == ([], 8)
    rollback(nightly, 5, reason("rollback", 1))
    assert len(versions(nightly)) == 10


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["cpu", "cu130", ""])), unique=True),
    st.integers(0, 6),
    st.sets(st.integers(0, 12)),
)
def test_prune_hides_neither_pins_nor_the_newest(
    files: list[tuple[int, str]], count: int, pinned: set[int]
) -> None:
    found = [wheel(f"1.{minor}", variant) for minor, variant in files]
    pins = [Pin(projects={"torch": tuple(f"1.{minor}" for minor in pinned)}, at=moment())]
    gone = {sort_key(entry) for entry in outdated(TORCH, found, Keep(versions=count), pins)}
    minors = sorted({minor for minor, _ in files})
    stay = {*minors[-count:], *pinned} if count else set(minors)
    assert gone == {sort_key(wheel(f"1.{m}", v)) for m, v in files if m not in stay}


def _doom(channel: Channel, days: float) -> str:
    """Leave what a prune leaves that is killed before it deletes anything."""
    prune(channel, Keep(versions=3, projects=("torch",)), reason("prune"))

    class KilledError(Exception):
        """Nobody catches it."""

    class Mortal(Objects):
        def delete(self, keys: Iterable[str]) -> None:
            raise KilledError

    with pytest.raises(KilledError):
        prune(Channel(Mortal(channel.url)), Keep(), reason("prune", days))
    (doomed, *_) = channel.state(channel.head(), "simple/torch").pending_deletion
    return doomed


def test_a_killed_prune_is_gone_on_with_later(nightly: Channel) -> None:
    doomed = _doom(nightly, 8)
    now = f"{datetime.now(tz=UTC):%Y-%m-%dT%H:%M:%SZ}"
    busy = prune(nightly, Keep(grace=timedelta()), ChangeReason("prune", now))
    assert (busy.deleted, nightly.objects.head(doomed) is None) == ([], False)
    later = f"{datetime.now(tz=UTC) + timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}"
    done = prune(nightly, Keep(), ChangeReason("prune", later))
    assert doomed in done.deleted
    state = nightly.state(nightly.head(), "simple/torch")
    assert (state.hidden, state.pending_deletion, nightly.objects.head(doomed)) == ((), (), None)
    check_pages(nightly)


def test_nothing_is_deleted_that_a_page_named_until_just_now(nightly: Channel) -> None:
    path = "cpu/torch/index.html"
    before = page(nightly, path).encode()
    prune(nightly, Keep(versions=3, projects=("torch",)), reason("prune"))
    nightly.objects.write(path, before)
    done = prune(nightly, Keep(), reason("prune", 8))
    assert (done.mended, done.deleted, done.left) == ((path,), [], 4)
    assert len(prune(nightly, Keep(), reason("prune", 9)).deleted) == 4


class Watched(Objects):
    """Objects of a channel whose pages are read whenever one was deleted."""

    def delete(self, keys: Iterable[str]) -> None:
        super().delete(keys)
        read_all(Reader(self.read), Channel(self).head())


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_prune_killed_anywhere_breaks_nothing(tmp_path: Path, *, after: bool) -> None:
    operation = 0
    while True:
        operation += 1
        channel = Channel.at(str(tmp_path / str(operation)), make=True)
        add(channel, [wheel(night, "cpu") for night in NIGHTS[:3]], -20)
        prune(channel, Keep(versions=2), reason("prune", -10))
        add(channel, [wheel(NIGHTS[3], "cpu")], -9)
        try:
            mortal = Channel(Mortal(channel.url, operation, after=after))
            prune(mortal, Keep(versions=2), reason("prune"))
        except Death:
            read_all(Reader(channel.objects.read), channel.head())
            for days in (30, 31):
                late = datetime.now(tz=UTC) + timedelta(days=days)
                when = ChangeReason("prune", f"{late:%Y-%m-%dT%H:%M:%SZ}")
                prune(Channel(Watched(channel.url)), Keep(versions=2), when)
            state = channel.state(channel.head(), "simple/torch")
            assert state.pending_deletion == ()
            assert [entry.version for entry in state.entries] == [f"{n}+cpu" for n in NIGHTS[2:4]]
            assert channel.objects.head(key_of(TORCH, wheel(NIGHTS[0]))) is None
            check_pages(channel)
            continue
        break
    assert operation > 20


def test_of_two_who_take_over_one_deletes(nightly: Channel) -> None:
    doomed = _doom(nightly, 8)
    later = f"{datetime.now(tz=UTC) + timedelta(hours=3):%Y-%m-%dT%H:%M:%SZ}"
    rival: list[list[str]] = []

    class Late(Channel):
        def commit(self, *args: object, **kwargs: object) -> Head:
            if not rival:
                rival.append([])
                rival[0] += prune(
                    Channel.at(self.url), Keep(), ChangeReason("prune", later)
                ).deleted
            return super().commit(*args, **kwargs)  # type: ignore[arg-type]

    done = prune(Late.at(nightly.url), Keep(), ChangeReason("prune", later))
    assert doomed in rival[0]
    assert done.deleted == []


def test_a_version_pinned_meanwhile_is_not_hidden(nightly: Channel) -> None:
    selection = parse_selection([f"torch=={NIGHTS[0]}"])

    class Late(Channel):
        def state_at(self, digest: str) -> State:
            other = Channel.at(self.url)
            if len(self.looked) == 3 and not other.head().pins:
                add_channel_pin(other, selection, "kept", "", reason("pin"))
            self.looked.append(digest)
            return super().state_at(digest)

        looked: list[str] = []  # noqa: RUF012 - one object

    prune(Late.at(nightly.url), Keep(versions=1), reason("prune"))
    assert f"{NIGHTS[0]}+cpu" in versions(nightly)
    assert len(versions(nightly)) == 4


def test_orphans_are_removed_when_they_are_old(nightly: Channel) -> None:
    lost = wheel("9.9")
    stray = wheel("1.0", project="unknown")
    for entry in (lost, stray):
        nightly.objects.create(key_of(TORCH, entry), b"half a publish")
    nightly.objects.create("states/ab/abcd.json.zst", b"never led to")
    folder = nightly.objects.folder
    assert folder is not None
    (folder / "packages/x.whl#1").write_bytes(b"torn")
    (folder / "notes#old").write_bytes(b"somebody's own")
    now = datetime.now(tz=UTC)
    young = prune(nightly, Keep(), ChangeReason("prune", f"{now:%Y-%m-%dT%H:%M:%SZ}"), orphans=True)
    assert young.orphans.parts == {}
    later = f"{now + timedelta(days=8):%Y-%m-%dT%H:%M:%SZ}"
    done = prune(nightly, Keep(), ChangeReason("prune", later), orphans=True)
    assert done.deleted == [key_of(TORCH, lost)]
    assert nightly.objects.head(key_of(TORCH, lost)) is None
    assert nightly.objects.head("states/ab/abcd.json.zst") is None
    assert nightly.objects.head(key_of(TORCH, stray)) is not None
    assert not (folder / "packages/x.whl#1").exists()
    assert (folder / "notes#old").exists()
    assert len(versions(nightly)) == 10
    check_pages(nightly)


@pytest.mark.parametrize(
    ("key", "goes"),
    [
        ("packages/ab/cd/torch-9-py3-none-any.whl", True),
        ("packages/ab/cd/torch-9.tar.gz", True),
        ("packages/ab/cd/libtorch-shared-with-deps-9.zip", True),
        ("packages/ab/cd/libother-9.zip", False),
        ("packages/ab/cd/other-9-py3-none-any.whl", False),
        ("conda/linux-64/torch-9-0.conda", True),
        ("conda/win-64/torch-9-0.conda", False),
        (CondaSection().upload_key("conda/linux-64/torch-9-0.conda", "ab" * 32), True),
        ("pins/kept.json", False),
    ],
)
def test_only_what_somebody_could_publish_again_is_an_orphan(
    channel: Channel, key: str, *, goes: bool
) -> None:
    put(channel, made("torch"), conda("torch", "1.0"), libtorch("1.0", "cpu"))
    channel.objects.create(key, b"left")
    later = f"{datetime.now(tz=UTC) + timedelta(days=8):%Y-%m-%dT%H:%M:%SZ}"
    done = prune(channel, Keep(), ChangeReason("prune", later), orphans=True)
    assert done.deleted == ([key] if goes else [])
    assert (channel.objects.head(key) is None) is goes
    read_all(Reader(channel.objects.read), channel.head())


def test_offers_of_conda_packages_are_those_of_all_that_is_there(channel: Channel) -> None:
    """Only those of names that change are made anew."""
    part = "conda/linux-64"

    def look() -> list[tuple[str, str]]:
        head = channel.head()
        found = head.parts[part].offers
        assert found == offers(part, channel.state(head, part).entries)
        return [(offer.name, offer.version) for offer in found]

    add(channel, [package("b", "1.0"), package("b-c", "1.0")], part=part)
    add(channel, [package("a", "1.0"), package("b", "1.1")], part=part)
    assert look() == [("a", "1.0"), ("b", "1.1"), ("b-c", "1.0")]
    add(channel, [package("b", "1.2")], part=part)
    assert look() == [("a", "1.0"), ("b", "1.2"), ("b-c", "1.0")]
    yank(channel, parse_selection(["b==1.2"]), "", reason("yank"))
    assert look() == [("a", "1.0"), ("b", "1.1"), ("b-c", "1.0")]
    yank(channel, parse_selection(["a==1.0"]), "", reason("yank"))
    assert look() == [("b", "1.1"), ("b-c", "1.0")]
    rollback(channel, 3, reason("rollback"))
    assert look() == [("a", "1.0"), ("b", "1.2"), ("b-c", "1.0")]


def test_old_shards_are_removed(channel: Channel) -> None:
    add(channel, [package("some", "1.0"), package("other", "1.0")], part="conda/linux-64")
    add(channel, [package("some", "2.0")], part="conda/linux-64")
    shards = [meta.key for meta in channel.objects.list("conda/linux-64/shards/")]
    assert len(shards) == 3
    later = f"{datetime.now(tz=UTC) + timedelta(days=8):%Y-%m-%dT%H:%M:%SZ}"
    prune(channel, Keep(grace=timedelta(days=300)), ChangeReason("prune", later), orphans=True)
    assert len(list(channel.objects.list("conda/linux-64/shards/"))) == 3
    prune(channel, Keep(), ChangeReason("prune", later), orphans=True)
    assert len(list(channel.objects.list("conda/linux-64/shards/"))) == 2
    yank(channel, parse_selection(["some==2.0"]), "", reason("yank"))
    state = channel.state(channel.head(), "conda/linux-64")
    for digest in state.shards.values():
        assert channel.objects.head(f"conda/linux-64/shards/{digest}.msgpack.zst") is not None


# Pins


def test_a_pin_tells_exactly_which_files(nightly: Channel) -> None:
    selection = parse_selection([f"*=={NIGHTS[2]}"])
    told = add_channel_pin(nightly, selection, "2026-11-03", "before the change", reason("pin"))
    assert len(told.files) == 4
    text = page(nightly, "pins/2026-11-03/cu130.txt")
    torch = wheel(NIGHTS[2], "cu130")
    assert f"torch=={NIGHTS[2]}+cu130 \\\n    --hash=sha256:{torch.sha256}\n" in text
    assert "+cpu" not in text
    shown = msgspec.json.decode(page(nightly, "pins/2026-11-03.json"))
    assert {file["commit"] for file in shown["files"]} == {"c0ffee"}
    for file in shown["files"]:
        assert "+" not in file["url"], "S3 takes a plus for a blank"
        assert nightly.objects.head(unquote(file["url"]).removeprefix("../")) is not None
    prune(nightly, Keep(versions=1), reason("prune"))
    assert {v.partition("+")[0] for v in versions(nightly)} == {NIGHTS[2], NIGHTS[4]}


def test_files_of_a_pin_are_not_deleted_when_they_are_hidden(nightly: Channel) -> None:
    told = add_channel_pin(
        nightly, parse_selection([f"torch=={NIGHTS[2]}"]), "kept", "", reason("pin")
    )
    rollback(nightly, 0, reason("rollback"))
    done = prune(nightly, Keep(), reason("prune", 8))
    assert len(done.deleted) == 18
    for file in told.files:
        assert nightly.objects.head(unquote(file.url).removeprefix("../")) is not None
    remove_channel_pin(nightly, "kept", reason("unpin", 8))
    assert len(prune(nightly, Keep(), reason("prune", 8)).deleted) == 2


def test_a_pin_keeps_its_meaning(nightly: Channel) -> None:
    selection = parse_selection([f"torch=={NIGHTS[2]}"])
    first = add_channel_pin(nightly, selection, "kept", "", reason("pin"))
    again = add_channel_pin(nightly, selection, "kept", "", reason("pin", 1))
    assert again == first
    with pytest.raises(PublishError, match=f"already, of torch=={NIGHTS[2]}"):
        add_channel_pin(
            nightly, parse_selection([f"torch=={NIGHTS[1]}"]), "kept", "", reason("pin")
        )
    with pytest.raises(UsageError):
        add_channel_pin(nightly, selection, "../up", "", reason("pin"))


def test_pins_can_be_let_go(nightly: Channel, torchyard: Command) -> None:
    add_channel_pin(nightly, parse_selection([f"torch=={NIGHTS[2]}"]), "kept", "", reason("pin"))
    gone = torchyard("channel", "pin", nightly.url, "--remove", "kept", "--json")
    validate(json.loads(gone.out), "channel-pin")
    assert json.loads(gone.out)["generation"] == nightly.head().generation
    assert nightly.head().pins == {}
    assert list(nightly.objects.list("pins/")) == []
    with pytest.raises(SelectionError, match="no pin `kept`"):
        remove_channel_pin(nightly, "kept", reason("unpin"))
