"""Channels: what is published stays, and pages are what the head says, whoever died meanwhile."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from tests.support.channel_reader import Reader, assert_right, read_all
from tests.support.channels import (
    LATER,
    Death,
    Mortal,
    adding,
    conda,
    libtorch,
    put,
    wheel,
    without,
)

from torchyard.errors import SelectionError, StoreError
from torchyard.host.zstd import compress
from torchyard.index.entry import WHOLE, State
from torchyard.index.simple.write import serial_of
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import HEAD, Head, state_key
from torchyard.publish.ops.prune import prune
from torchyard.publish.ops.retention import Keep
from torchyard.publish.ops.yank import yank
from torchyard.publish.select import parse_selection
from torchyard.store.objects import NO_HEADERS, Headers, Objects

HELPER = wheel("helper")
CPU = wheel("torch", "1.0", "cpu", ["helper"])
CU130 = wheel("torch", "1.0", "cu130", ["helper"])
NEWER = wheel("torch", "1.1", "cu130", ["helper"])


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel.at(str(tmp_path / "channel"), make=True)


def reader_of(channel: Channel) -> Reader:
    return Reader(channel.objects.read)


def keys(channel: Channel) -> set[str]:
    return {found.key for found in channel.objects.list("")}


def test_files_appear_in_their_views(channel: Channel) -> None:
    head = put(channel, HELPER, CPU, CU130)
    assert head.variants == ("cpu", "cu130")
    reader = reader_of(channel)
    assert reader.project("cpu", "torch") == {CPU.entry.file}
    assert reader.project("cu130", "torch") == {CU130.entry.file}
    assert reader.project(WHOLE, "torch") == {CPU.entry.file, CU130.entry.file}
    assert all(reader.projects(view) == {"helper", "torch"} for view in ("cpu", "cu130", WHOLE))
    assert_right(channel)


def test_a_new_variant_has_the_files_of_all_variants(channel: Channel) -> None:
    put(channel, HELPER, CPU)
    assert reader_of(channel).project("cu130", "helper") == set()
    put(channel, CU130)
    assert reader_of(channel).project("cu130", "helper") == {HELPER.entry.file}
    assert_right(channel)


def test_files_of_all_variants_come_before_those_that_need_them(channel: Channel) -> None:
    put(channel, HELPER, CPU)
    writer = Mortal(channel.url, 10_000)
    put(Channel(writer), CU130)
    pages = [key for key in writer.written if key.startswith("cu130/")]
    assert [page.rpartition("/")[0] for page in pages[::2]] == [
        "cu130/helper",
        "cu130/torch",
        "cu130",
    ]


def test_a_view_without_files_keeps_its_pages(channel: Channel) -> None:
    put(channel, HELPER, CPU, CU130)
    channel.commit({CU130.part: without(CU130.entry.file)}, LATER)
    assert reader_of(channel).projects("cu130") == {"helper"}
    assert channel.objects.read("cu130/torch/index.html") is not None
    put(channel, wheel("late"))  # it fits every variant, also one that has nothing else now
    assert reader_of(channel).project("cu130", "late") == {wheel("late").entry.file}
    put(channel, NEWER)
    assert_right(channel)


def test_serials_tell_what_changed_a_page_last(channel: Channel) -> None:
    put(channel, HELPER)
    put(channel, CPU, CU130)
    head = put(channel, NEWER)
    assert head.generation == 3
    serials = {
        page: serial_of(channel.objects.read(f"{page}/index.json"))
        for page in ("cpu/torch", "cu130/torch", "simple/torch", "cu130/helper", "cpu", "simple")
    }
    assert serials == {
        "cpu/torch": 2,
        "cu130/torch": 3,
        "simple/torch": 3,
        "cu130/helper": 2,
        "cpu": 2,
        "simple": 2,
    }


def test_nothing_to_do_changes_nothing(channel: Channel) -> None:
    put(channel, HELPER, CPU)
    before = channel.objects.read(HEAD), keys(channel)
    put(channel, HELPER, CPU)
    channel.commit({CPU.part: without("never there")}, LATER)
    assert (channel.objects.read(HEAD), keys(channel)) == before


def test_who_has_nothing_to_do_mends_pages(channel: Channel) -> None:
    put(channel, HELPER, CPU)
    channel.objects.delete(["cpu/torch/index.html", "cpu/index.json"])
    channel.objects.write("simple/helper/index.json", b"rubbish")
    put(channel, HELPER, CPU)
    assert_right(channel)


def test_mending_tells_what_it_wrote(channel: Channel) -> None:
    put(channel, HELPER, CPU)
    assert channel.mend([CPU.part, ""]) == []
    channel.objects.delete(["cpu/torch/index.html"])
    assert channel.mend([CPU.part, HELPER.part, ""]) == ["cpu/torch/index.html"]


def test_an_edit_has_no_say_in_pages(channel: Channel) -> None:
    """An old state, taken as it was, brings no old page back, and forgets no view."""
    put(channel, CPU)
    old = channel.state(channel.head(), CPU.part)
    put(channel, CU130)
    head = channel.commit({CPU.part: lambda _: old}, ChangeReason("back", LATER.at))
    assert reader_of(channel).project("cu130", "torch") == set()
    assert serial_of(channel.objects.read("cu130/torch/index.html")) == head.generation
    assert_right(channel)


def test_a_change_is_logged_once_though_its_answer_was_lost(channel: Channel) -> None:
    """Somebody publishes on top before we ask whether our own swap worked."""
    put(channel, CPU)

    class Forgetful(Objects):
        forgot = False

        def swap(
            self, key: str, data: bytes, tag: str | None, headers: Headers = NO_HEADERS
        ) -> bool:
            done = super().swap(key, data, tag, headers)
            if key != HEAD or self.forgot:
                return done
            self.forgot = True
            put(channel, HELPER)
            return False

    counted = 0

    def edit(state: State) -> State:
        nonlocal counted
        counted += 1
        return adding(wheel("torch", f"{counted}.5", "cpu").entry)(state)

    made = wheel("torch", "1.5", "cpu")
    channel.objects.create(made.key, made.data)
    channel.objects.create(f"{made.key}.metadata", made.metadata)
    Channel(Forgetful(channel.url)).commit({CPU.part: edit}, LATER)
    assert [change.generation for change in channel.head().log] == [1, 2, 3]
    assert counted == 1
    assert_right(channel)


def test_a_part_of_no_known_sort(channel: Channel) -> None:
    with pytest.raises(StoreError, match="of an unknown kind"):
        channel.commit({"toys/torch": adding(CPU.entry)}, LATER)
    assert keys(channel) == set()


def test_a_head_of_a_newer_version(channel: Channel) -> None:
    put(channel, CPU)
    text = channel.objects.read(HEAD)
    assert text is not None
    channel.objects.write(HEAD, text.replace(b'"generation":1', b'"version":2,"generation":1'))
    with pytest.raises(StoreError, match=r"can't be read.*2"):
        put(channel, HELPER)


def test_a_damaged_state_is_not_believed(channel: Channel) -> None:
    digest = put(channel, CPU).parts[CPU.part].state
    good = channel.objects.read(state_key(digest))
    assert good is not None
    for bad in (b"", good[:-5], good[:40] + bytes(len(good) - 40), compress(b"{}")):
        channel.objects.write(state_key(digest), bad)
        with pytest.raises(StoreError, match="does not match its name"):
            put(Channel(channel.objects), NEWER)
    channel.objects.delete([state_key(digest)])
    with pytest.raises(StoreError, match="has lost the state"):
        put(Channel(channel.objects), NEWER)
    channel.objects.write(state_key(digest), good)
    put(channel, NEWER)
    assert_right(channel)


def test_web_servers_can_tell_pages_apart(tmp_path: Path) -> None:
    """They go by the second in which a file was written, and its size."""
    channel = Channel.at(tmp_path.as_uri(), make=True)
    seen: set[int] = set()
    for _ in range(3):
        put(channel, wheel("demo", f"{len(seen)}.0"))
        seen.add(int((tmp_path / "simple/demo/index.html").stat().st_mtime))
    assert len(seen) == 3


def test_an_address_of_a_directory_is_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "50% off, + more"
    put(Channel.at(folder.as_uri(), make=True), wheel("demo"))
    assert_right(Channel.at(str(folder)))
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_there_is_no_channel(channel: Channel) -> None:
    with pytest.raises(SelectionError, match="no channel at"):
        Channel.at(channel.url)
    put(channel, CPU)
    assert Channel.at(channel.url).head().generation == 1


def test_an_edit_that_fails_leaves_everything(channel: Channel) -> None:
    put(channel, CPU)
    before = keys(channel)

    def refuse(_state: State) -> State:
        msg = "as planned"
        raise StoreError(msg)

    edits: dict[str, Edit] = {HELPER.part: adding(HELPER.entry), CPU.part: refuse}
    with pytest.raises(StoreError, match="as planned"):
        channel.commit(edits, LATER)
    assert keys(channel) == before


def test_every_death_is_mended_by_a_second_try(channel: Channel) -> None:
    """First and later publishes, of a new variant too, killed before and after each operation."""
    deaths = 0
    first = [HELPER, CPU, conda("torch"), libtorch("1.0", "cpu")]
    second = [wheel("other"), CU130, conda("torch", "1.1"), libtorch("1.0", "cu130")]
    for number, wheels in enumerate((first, second, [NEWER])):
        for step in range(1, 1000):
            objects = Mortal(channel.url, step, after=bool(step % 2))
            try:
                put(Channel(objects), *wheels)
            except Death:
                deaths += 1
                reader = reader_of(channel)
                read_all(reader, channel.head())
            else:
                break
        assert channel.head().generation == number + 1
        assert_right(channel)
    assert deaths > 60


def test_who_comes_after_a_death_finishes_what_its_own_pages_need(channel: Channel) -> None:
    """A new dependency, and a package that needs it; their publisher dies before any page."""
    put(channel, CPU)
    fresh = wheel("fresh")
    needing = wheel("torch", "2.0", "cpu", ["fresh"])
    for dead in range(1, 100):
        objects = Mortal(channel.url, dead)
        with pytest.raises(Death):
            put(Channel(objects), fresh, needing)
        if objects.written[-1:] == [HEAD]:
            break
    assert reader_of(channel).project("cpu", "fresh") == set()
    put(channel, wheel("torch", "2.1", "cpu", ["fresh"]))
    assert reader_of(channel).project("cpu", "torch") >= {needing.entry.file}
    assert reader_of(channel).project("cpu", "fresh") == {fresh.entry.file}
    put(channel, fresh, needing)
    assert_right(channel)


def test_lists_of_projects_wait_for_pages_that_a_dead_writer_owes(channel: Channel) -> None:
    put(channel, CPU)
    for dead in range(1, 100):
        objects = Mortal(channel.url, dead)
        with pytest.raises(Death):
            put(Channel(objects), HELPER)
        if objects.written[-1:] == [HEAD]:
            break
    put(channel, wheel("third", "1.0", "cpu"))
    assert reader_of(channel).projects("cpu") == {"helper", "third", "torch"}
    assert_right(channel)


def test_the_head_remembers_so_many_changes(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchyard.publish.channel.draft.HISTORY", 3)
    for number in range(5):
        put(channel, wheel("torch", f"1.{number}", "cpu"))
    assert [change.generation for change in channel.head().log] == [3, 4, 5]


def test_an_amendment_is_a_change_of_its_own(channel: Channel) -> None:
    put(channel, CPU)
    head = channel.commit({}, LATER, lambda head: msgspec.structs.replace(head, name="nightly"))
    assert (head.name, head.generation) == ("nightly", 2)
    assert head.parts == channel.head().parts
    assert isinstance(channel.head(), Head)


def test_a_state_that_a_dead_writer_left_is_not_relied_upon(tmp_path: Path) -> None:
    """Somebody deletes what nothing leads to, while another tries again what came to nothing."""
    long_after = ChangeReason("prune", "2099-01-01T00:00:00Z")
    everything = parse_selection(["torch"])
    for at in range(1, 1000):
        channel = Channel.at(str(tmp_path / str(at)), make=True)
        put(channel, CPU)
        dead = Mortal(channel.url, 4)
        with pytest.raises(Death):
            yank(Channel(dead), everything, "broken", LATER)
        assert dead.written[0].startswith("states/")

        def again(url: str = channel.url) -> None:
            yank(Channel.at(url), everything, "broken", LATER)

        objects = Mortal(channel.url, at, then=again)
        prune(Channel(objects), Keep(grace=timedelta(0)), long_after, orphans=True)
        assert_right(Channel(channel.objects))
        if channel.head().generation == 1:
            break
    assert at > 5
