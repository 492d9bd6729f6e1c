"""What is linked with what: of a build that CMake and ninja make, and of packages."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.helpers import Command
from tests.support.linked_project import build_linked, pack_linked
from tests.support.schemas import validate

from torchyard.insight.build_links import BuildLinks, module_of
from torchyard.insight.link_graph import (
    LinkGraph,
    LinkNode,
    chain,
    find_node,
    fold_graph,
    library_name,
    reduce_links,
)
from torchyard.insight.ninja_file import Edge
from torchyard.reports.layered import DrawnGraph, DrawnNode, draw_layers


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_linked(tmp_path_factory.mktemp("linked"))


def nodes_of(torchyard: Command, *words: object) -> dict[str, dict[str, object]]:
    done = torchyard("graph", *words, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    validate(document, "graph")
    links = document["graph"]["links"]
    nodes = document["graph"]["nodes"]
    return {name: {**node, "links": links.get(name, [])} for name, node in nodes.items()}


# ------------------------------------------------------------------------------- builds


def test_every_target_has_its_kind_origin_and_links(torchyard: Command, build: Path) -> None:
    nodes = nodes_of(torchyard, build)
    assert {
        name: (node["kind"], node["origin"], sorted(node["links"]))  # type: ignore[call-overload]
        for name, node in nodes.items()
    } == {
        "base": ("shared", "project", ["libm.so", "onlyheaders", "tinyfmt"]),
        "math": ("shared", "project", ["base", "onlyheaders", "parts"]),
        "whole": ("shared", "project", ["math", "onlyheaders"]),
        "parts": ("objects", "project", ["onlyheaders"]),
        "tool": ("program", "project", ["math", "onlyheaders"]),
        "unused": ("static", "project", ["onlyheaders"]),
        "tinyfmt": ("static", "bundled", ["onlyheaders"]),
        "onlyheaders": ("headers", "bundled", []),
        "libm.so": ("shared", "system", []),
    }
    assert nodes["math"]["file"] == "lib/libmath.so.1.2.3"
    assert nodes["math"]["bytes"] == (build / "lib/libmath.so").stat().st_size
    assert nodes["base"]["units"] == 1
    assert nodes["base"]["seconds"] != 0


def test_without_cmakes_replies_only_headers_are_not_seen(
    torchyard: Command, build: Path, tmp_path: Path
) -> None:
    (tmp_path / "build.ninja").write_bytes((build / "build.ninja").read_bytes())
    nodes = nodes_of(torchyard, tmp_path)
    assert nodes["math"]["links"] == ["parts", "base"]
    assert nodes["math"]["bytes"] == nodes["math"]["seconds"] == 0
    assert "onlyheaders" not in nodes


def test_the_report(torchyard: Command, build: Path) -> None:
    lines = [" ".join(line.split()) for line in torchyard("graph", build).out.splitlines()]
    assert lines[0].endswith("build: 9 targets and libraries")
    (line,) = [line for line in lines if line.startswith("tool ")]
    assert line.startswith("tool program ")
    assert line.endswith(" math")  # what follows from it is left out


@pytest.mark.parametrize("name", ["math", "libmath.so", "libmath.so.1", "lib/libmath.so.1.2.3"])
def test_a_target_with_its_neighbours(torchyard: Command, build: Path, name: str) -> None:
    nodes = nodes_of(torchyard, build, "--focus", name)
    assert nodes.keys() == {"math", "base", "parts", "whole", "tool", "onlyheaders"}
    assert nodes["tool"]["links"] == ["math"]


def test_an_unknown_target(torchyard: Command, build: Path) -> None:
    done = torchyard("graph", build, "--focus", "maths")
    assert done.code != 0
    assert "did you mean `math`?" in done.err


def test_why_names_the_chain_and_its_symbols(torchyard: Command, build: Path) -> None:
    done = torchyard("graph", build, "--why", "tool", "tinyfmt")
    assert done.out == (
        "tool → math → base → tinyfmt\n\n"
        "tool is linked with math: 1 symbol\n  math_answer\n\n"
        "math is linked with base: 1 symbol\n  base_answer\n\n"
        "base is linked with tinyfmt: 1 symbol\n  tiny_format\n"
    )
    done = torchyard("graph", build, "--why", "math", "parts")
    assert done.out.endswith("math is linked with parts: 1 symbol\n  part\n")


def test_what_does_not_need_the_other(torchyard: Command, build: Path) -> None:
    done = torchyard("graph", build, "--why", "base", "tool")
    assert "base does not need tool; tool needs base" in done.err


@pytest.mark.parametrize(("form", "start"), [("svg", "<svg xmlns="), ("html", "<!doctype html>")])
def test_pictures_have_all_nodes(
    torchyard: Command, build: Path, tmp_path: Path, form: str, start: str
) -> None:
    assert torchyard("graph", build, f"--{form}", tmp_path / "drawn").code == 0
    text = (tmp_path / "drawn").read_text(encoding="utf-8")
    assert text.startswith(start)
    for name in ("math", "tinyfmt", "onlyheaders", "system"):
        assert f">{name}</text>" in text
    assert "<script" not in text


def test_graphviz(torchyard: Command, build: Path, tmp_path: Path) -> None:
    assert torchyard("graph", build, "--dot", tmp_path / "links.dot").code == 0
    text = (tmp_path / "links.dot").read_text(encoding="utf-8")
    assert '"tool" -> "math";' in text
    assert '"tool" -> "base";' not in text


def test_units_of_other_generators_belong_to_what_they_are_linked_into() -> None:
    """torch's extensions are built by a ninja file that CMake has not written."""
    edges = [
        Edge(("/x/a.o",), "compile", ("/src/a.cpp",)),
        Edge(("/x/b.o",), "cuda_compile", ("/src/b.cu",)),
        Edge(("ext.so",), "link", ("/x/a.o", "/x/b.o")),
    ]
    graph = BuildLinks(edges).graph()
    assert graph.nodes.keys() == {"ext.so"}
    assert (graph.nodes["ext.so"].kind, graph.nodes["ext.so"].units) == ("shared", 2)


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("third_party/fmt/src/format.cc", "fmt"),
        ("/p/third_party/ideep/mkl-dnn/src/x.cpp", "ideep"),
        ("build/_deps/googletest-src/x.cc", "googletest"),
        ("third_party/x.c", ""),
        ("aten/src/x.cpp", ""),
    ],
)
def test_where_projects_have_the_source_of_others(path: str, module: str) -> None:
    assert module_of(path) == module


def test_a_project_that_is_itself_third_party_is_no_guest() -> None:
    edges = [
        Edge(("CMakeFiles/a.dir/x.c.o",), "C_COMPILER__a_", ("/home/external/own/src/x.c",)),
        Edge(("CMakeFiles/a.dir/y.c.o",), "C_COMPILER__a_", ("/home/external/own/lib/y.c",)),
    ]
    assert BuildLinks(edges).graph().nodes["a"].origin == "project"


# ----------------------------------------------------------------------------- packages


def test_a_package_is_held_against_its_build(
    torchyard: Command, build: Path, tmp_path: Path
) -> None:
    """libbase was forgotten, and libunused is there for nothing."""
    extra = tmp_path / "libextra.so"
    extra.write_bytes((build / "lib/libwhole.so").read_bytes())
    wheel = pack_linked(
        build,
        tmp_path / "linked-1-py3-none-any.whl",
        libmath__so__1="lib/libmath.so.1.2.3",
        libextra__so=str(extra),
        tool="tool",
    )
    lines = [
        " ".join(line.split())
        for line in torchyard("graph", build, "--against", wheel).out.splitlines()
    ]
    at = lines.index("linked, not in linked-1-py3-none-any.whl used by why")
    assert lines[at + 1] == "base math nothing that the package requires brings it"
    assert lines[-1] == "libextra.so nothing in the package needs it"
    nodes = nodes_of(torchyard, wheel)
    assert nodes["libmath.so.1"]["links"] == ["libbase.so"]
    assert nodes["tool"]["links"] == ["libmath.so.1", "libc.so.6"]
    assert nodes["libbase.so"]["origin"] == "missing"
    assert nodes["libc.so.6"]["origin"] == "system"
    done = torchyard("graph", wheel, "--why", "libextra.so", "libmath.so")
    assert done.out.startswith("libextra.so → libmath.so.1\n")


def test_only_a_build_is_held_against_a_package(
    torchyard: Command, build: Path, tmp_path: Path
) -> None:
    wheel = pack_linked(build, tmp_path / "linked-1-py3-none-any.whl")
    done = torchyard("graph", wheel, "--against", wheel)
    assert (done.code, "only a build can be compared with one" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/libx.so.1.2", "libx.so"),
        ("libgomp-a34b3233.so.1", "libgomp.so"),
        ("libx.1.2.dylib", "libx.dylib"),
        ("x.cpython-313-x86_64-linux-gnu.so", "x.so"),
    ],
)
def test_names_without_versions(path: str, name: str) -> None:
    assert library_name(path) == name


# ------------------------------------------------------------------------------- graphs


def made(links: Mapping[str, Sequence[str]]) -> LinkGraph:
    names = dict.fromkeys((*links, *(one for needed in links.values() for one in needed)))
    nodes = {name: LinkNode(name, "shared", "project") for name in names}
    return LinkGraph(nodes, {name: tuple(links.get(name, ())) for name in names})


def test_many_are_drawn_as_one() -> None:
    nodes = [
        LinkNode("own", "shared", "project", units=3),
        LinkNode("dnnl", "static", "bundled", "ideep", units=10, seconds=5),
        LinkNode("dnnl_cpu", "objects", "bundled", "ideep", units=20, seconds=7),
        *(LinkNode(f"test{n}", "program", "project") for n in range(3)),
        *(LinkNode(f"lib{n}.so", "shared", "system") for n in range(4)),
    ]
    links: dict[str, tuple[str, ...]] = {node.name: () for node in nodes}
    links |= {"own": ("dnnl", "lib0.so", "lib1.so"), "dnnl": ("dnnl_cpu",), "test1": ("own",)}
    graph = fold_graph(LinkGraph({node.name: node for node in nodes}, links))
    assert graph.links == {
        "own": ("ideep", "system"),
        "ideep": (),
        "programs": ("own",),
        "system": (),
    }
    folded = graph.nodes["ideep"]
    assert (folded.units, folded.seconds) == (30, 12)
    assert folded.members == ("dnnl", "dnnl_cpu")


LINKS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=8
)


@given(LINKS)
def test_what_is_left_out_still_follows(links: dict[str, list[str]]) -> None:
    graph = made(links)
    reduced = reduce_links(graph)
    for user, needed in graph.links.items():
        for one in needed:
            assert one == user or chain(reduced, user, one)


@given(LINKS, st.sampled_from([200, 366, 1200]))
def test_a_picture_has_all_lines_and_no_node_over_another(
    links: dict[str, list[str]], width: int
) -> None:
    graph = made(links)
    nodes = {name: DrawnNode(name, "own", (name, "x"), name) for name in graph.nodes}
    edges = {user: set(needed) - {user} for user, needed in graph.links.items()}
    picture = draw_layers(DrawnGraph(nodes, edges), width, "t", "d")
    assert len(picture.lines) == sum(map(len, edges.values()))
    places = [shape.rect for shape in picture.shapes]
    for place in places:
        assert place.x >= 0
        assert place.x + place.width <= width + 1
        for other in places:
            beside = other.x + other.width <= place.x or place.x + place.width <= other.x
            apart = other.y + other.height <= place.y or place.y + place.height <= other.y
            assert other is place or beside or apart


def test_lines_go_past_the_nodes_in_between() -> None:
    """a needs c by itself: its line must not look as if b were on the way."""
    graph = made({"a": ["b", "c"], "b": ["c"], "d": ["b"]})
    nodes = {name: DrawnNode(name, "own", (name,), name) for name in graph.nodes}
    edges = {user: set(needed) for user, needed in graph.links.items()}
    picture = draw_layers(DrawnGraph(nodes, edges), 1200, "t", "d")
    middle = next(shape.rect for shape in picture.shapes if shape.title == "b")
    bends = [float(x) for line in picture.lines for x in re.findall(r" (\d+) [\d.]+V", line.path)]
    assert len(bends) == 1
    assert not middle.x <= bends[0] <= middle.x + middle.width


def test_a_chain_is_as_short_as_can_be() -> None:
    graph = made({"a": ["b", "c"], "b": ["d"], "c": ["e"], "d": ["e"]})
    assert chain(graph, "a", "e") == ["a", "c", "e"]
    assert chain(graph, "e", "a") == []
    assert find_node(graph, "a").name == "a"
