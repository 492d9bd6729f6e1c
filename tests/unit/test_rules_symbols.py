import msgspec
import pytest
from tests.support.made import EXPECTED, hits, library, package, subject_of

from torchyard.checks.compat.stable_names import stable_abi
from torchyard.checks.rules.symbols import new_strings, old_strings, parse_symbols
from torchyard.checks.subject import Subject
from torchyard.errors import DataError
from torchyard.host.files import read_data
from torchyard.package.contents import Binary, Contents
from torchyard.package.wheel.manylinux import promised_glibc

OLD = "_ZN3c104takeERKSs"
NEW = "_ZN3c104takeERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


def one(binary: Binary, *, abi: str = "cp312", platforms: tuple[str, ...] = ()) -> Subject:
    """A wheel with one library."""
    expected = msgspec.structs.replace(EXPECTED, abi=abi, platforms=platforms)
    return subject_of(package({"thing/lib/liba.so": binary}), expected)


# --------------------------------------------------------------------------------------- ceiling


@pytest.mark.parametrize(
    ("tag", "glibc"),
    [
        ("manylinux_2_28_x86_64", "2.28"),
        ("manylinux2014_aarch64", "2.17"),
        ("manylinux2010_x86_64", "2.12"),
        ("manylinux1_i686", "2.5"),
        ("musllinux_1_2_x86_64", ""),
        ("linux_x86_64", ""),
        ("macosx_11_0_arm64", ""),
        ("any", ""),
        ("", ""),
    ],
)
def test_a_platform_tag_promises_a_glibc(tag: str, glibc: str) -> None:
    assert promised_glibc(tag) == glibc


@pytest.mark.parametrize(
    ("platforms", "version", "is_above"),
    [
        (("manylinux_2_28_x86_64",), "GLIBC_2.28", False),
        (("manylinux_2_28_x86_64",), "GLIBC_2.29", True),
        (("manylinux_2_30_x86_64",), "GLIBC_2.30", False),
        (("manylinux_2_30_x86_64",), "GLIBC_2.31", True),
        (("manylinux_2_30_x86_64",), "GLIBCXX_3.4.26", True),
        (("manylinux_2_99_x86_64",), "GLIBC_2.99", False),
        (("manylinux_2_28_x86_64",), "GLIBCXX_3.4.24", False),
        (("manylinux_2_28_x86_64",), "GLIBCXX_3.4.25", True),
        (("manylinux_2_28_x86_64",), "CXXABI_1.3.13", True),
        (("manylinux_2_28_x86_64",), "CXXABI_TM_1", False),
        (("manylinux_2_28_x86_64",), "GLIBC_PRIVATE", True),
        (("manylinux_2_28_x86_64",), f"GLIBC_2.{'9' * 5000}", True),
        (("manylinux_2_28_x86_64",), "OMP_4.5", False),
        (("manylinux_2_17_x86_64", "manylinux2014_x86_64"), "GLIBC_2.17", False),
        (("manylinux2014_x86_64",), "GCC_7.0.0", True),
        (("manylinux2014_x86_64",), "CXXABI_FLOAT128", True),
        (("manylinux_2_28_x86_64", "manylinux2014_x86_64"), "GLIBC_2.18", True),
        (("manylinux1_x86_64",), "ZLIB_1.2.0", True),
        (("linux_x86_64",), "GLIBC_2.99", False),
        (("musllinux_1_2_x86_64",), "GLIBC_2.99", False),
    ],
)
def test_symbols_ceiling(platforms: tuple[str, ...], version: str, is_above: bool) -> None:
    subject = one(library(needs={version: "libx.so.6"}), platforms=platforms)
    assert bool(hits("symbols-ceiling", subject)) == is_above


def test_of_many_versions_the_highest_are_told() -> None:
    versions = ("GLIBC_2.29", "GLIBC_2.100", "GLIBC_2.34", "GLIBCXX_3.4.30", "GLIBCXX_3.4.29")
    subject = one(
        library(needs=dict.fromkeys(versions, "libx.so.6")), platforms=("manylinux_2_28_x86_64",)
    )
    [hit] = hits("symbols-ceiling", subject)
    assert hit.what.startswith("needs GLIBCXX_3.4.30, GLIBC_2.100, newer than")


def test_versions_of_a_library_that_is_in_the_package_do_not_count() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library(needs={"GLIBCXX_3.4.33": "libstdc++.so.6"})
    }
    [hit] = hits("symbols-ceiling", subject_of(package(files)))
    assert hit.what == "needs GLIBCXX_3.4.33, newer than systems with glibc 2.28 have"
    files["thing/lib/libstdc++.so.6"] = library()
    assert not hits("symbols-ceiling", subject_of(package(files)))


# ------------------------------------------------------------------------------------------- ABI


@pytest.mark.parametrize(
    ("name", "is_old"),
    [
        (OLD, True),
        ("_ZN3c101SC2ERKSsPSt3mapISsiSt4lessISsESaISt4pairIS1_iEEE", True),
        ("_ZN3c101lERSt4listIiSaIiEE", True),
        ("_ZN3c102fnESt8functionIFviSsEE", True),
        ("_ZN3c103arrERA10_iSs", True),
        ("_ZN3c104tmplILi17EEEvSt6vectorISsSaISsEE", True),
        (NEW, False),
        ("_ZN3c101lERNSt7__cxx114listIiSaIiEEE", False),
        ("_ZN3c107ClassSs1fEi", False),
        ("_ZN3c105plainESt6vectorIiSaIiEEPKc", False),
        ("_ZNSs6appendEPKc", False),
        ("_ZNSt6vectorISsSaISsEED1Ev", False),
        ("ClassSs", False),
        (f"_ZN3c10{'9' * 5000}takeERKSs", False),
    ],
)
def test_the_old_string_is_seen_in_names(name: str, is_old: bool) -> None:
    assert old_strings(f"main\0{name}\0end\0".encode()) == ([name.encode()] if is_old else [])


def test_the_new_string_is_seen_in_names_outside_of_std() -> None:
    assert new_strings(f"{NEW}\0".encode())
    assert not new_strings(b"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev\0")


def two(first: Binary, second: Binary, **texts: bytes) -> Contents:
    return package(
        {"thing/lib/liba.so": first, "thing/lib/libb.so": second},
        texts={f"thing/share/cmake/{name}Config.cmake": text for name, text in texts.items()},
    )


def test_symbols_abi() -> None:
    new, old = library(exports=[NEW]), library(exports=["c_function", OLD])
    assert not hits("symbols-abi", subject_of(two(new, new)))
    assert not hits("symbols-abi", subject_of(two(old, old)))
    assert not hits("symbols-abi", subject_of(two(new, old)))  # neither calls the other
    promise = {"Thing": b"-D_GLIBCXX_USE_CXX11_ABI=1"}
    [hit] = hits("symbols-abi", subject_of(two(new, old, **promise)))
    assert hit.member == "thing/lib/libb.so"
    assert "uses 1 functions with the old std::string, though the new one is promised" in hit.what
    [hit] = hits("symbols-abi", subject_of(two(new, library(imports=[OLD]), **promise)))
    assert "uses 1 functions with the old std::string" in hit.what


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        ("_ZGTtNSt11logic_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", 0),
        ("_ZZNKSt8__detail9_ExecutorIPKcSaIS2_ESsE10_M_is_wordEcE3__s", 1),
        ("_ZN9__gnu_cxx12__to_xstringISscEET_PFiPT0_mPKS2_P13__va_list_tagEmS5_z", 1),
    ],
)
def test_symbols_abi_leaves_functions_of_the_standard_library_alone(
    name: str, promised: int
) -> None:
    """As torch 2.5.1, faiss 1.8.0 and triton 3.1.0 have them."""
    flag = b"-D_GLIBCXX_USE_CXX11_ABI=%d" % promised
    plain = library(exports=[name])
    assert not hits("symbols-abi", subject_of(two(plain, plain, Thing=flag)))


def test_symbols_abi_is_that_of_the_cmake_files() -> None:
    new, old = library(exports=[NEW]), library(exports=[OLD])
    flag = b'set(FLAGS "-D_GLIBCXX_USE_CXX11_ABI=%d")'
    assert not hits("symbols-abi", subject_of(two(new, new, Thing=flag % 1)))
    assert len(hits("symbols-abi", subject_of(two(old, old, Thing=flag % 1)))) == 2
    assert not hits("symbols-abi", subject_of(two(old, old, Thing=flag % 0)))
    assert len(hits("symbols-abi", subject_of(two(new, new, Thing=flag % 0)))) == 2


def test_symbols_abi_leaves_nvidias_libraries_alone() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library(exports=[NEW]),
        "thing/lib/libcudnn.so.9": library(exports=[OLD]),
    }
    texts = {"thing/share/cmake/ThingConfig.cmake": b"-D_GLIBCXX_USE_CXX11_ABI=1"}
    assert not hits("symbols-abi", subject_of(package(files, texts=texts)))


def test_a_bundled_libstdcxx_may_have_both_strings() -> None:
    files: dict[str, Binary | str] = {
        "thing/lib/liba.so": library(exports=[NEW]),
        "thing.libs/libstdc++-5d72f927.so.6.0.33": library(exports=[OLD, NEW]),
    }
    texts = {"thing/share/cmake/ThingConfig.cmake": b"-D_GLIBCXX_USE_CXX11_ABI=1"}
    assert not hits("symbols-abi", subject_of(package(files, texts=texts)))
    files["thing.libs/libother.so"] = library(exports=[OLD])
    assert len(hits("symbols-abi", subject_of(package(files, texts=texts)))) == 1


# --------------------------------------------------------------------------------------- exports


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("symbols-forbidden", "_ZSt4cout"),
        ("symbols-forbidden", "__cxa_throw"),
        ("symbols-leaked", "_ZNSs6appendEPKc"),
        (
            "symbols-leaked",
            "_ZNSt10filesystem7__cxx1128recursive_directory_iterator3popERSt10error_code",
        ),
        ("symbols-leaked", "_ZNSt10filesystem10remove_allERKNS_7__cxx114pathE"),
        ("symbols-leaked", "_ZN6google8protobuf7Message5ClearEv"),
        (
            "symbols-leaked",
            "_ZN6google8protobuf5Arena18CreateMaybeMessageINS0_3AnyEJEEEPT_PS1_",
        ),
    ],
)
def test_symbols_forbidden_and_symbols_leaked(rule: str, name: str) -> None:
    [hit] = hits(rule, one(library(exports=["first", name, "last"])))
    assert "shows 1 functions of" in hit.what
    assert name in hit.what
    assert not hits(rule, one(library(exports=["first", f"my{name}", f"{name}$"])))
    assert not hits(rule, one(library(imports=[name])))
    for own in ("libstdc++.so.6", "libstdc++-5d72f927.so.6.0.33"):
        assert not hits(rule, subject_of(package({f"thing/{own}": library(exports=[name])})))
    by_soname = package({"thing/libcxx.so": library(exports=[name], soname="libstdc++.so.6")})
    assert not hits(rule, subject_of(by_soname))
    assert hits(rule, subject_of(package({"thing/libstdc++fake.so": library(exports=[name])})))


@pytest.mark.parametrize(
    "name",
    [
        "_ZNSt10filesystem7__cxx114pathD1Ev",
        "_ZNSt10filesystem7__cxx1128recursive_directory_iteratorC1ERKNS0_4pathE",
        "_ZN10onnx_torch10GraphProtoC1EPN6google8protobuf5ArenaEb",
        "_ZN6google8protobuf5Arena18CreateMaybeMessageIN10onnx_torch9TypeProtoEJEEEPT_PS1_",
        "_ZN6google8protobuf5Arena13CopyConstructIN5arrow6flight8protocol8LocationEEEPvPS1_PKv",
        "_ZN6google8protobuf5Arena16DefaultConstructI9NodeProtoEEPvPS1_",
        "_ZN6google8protobuf8internal8byteswapILi4EEEvPv",
    ],
)
def test_what_every_compiler_leaves_behind_is_no_leak(name: str) -> None:
    assert not hits("symbols-leaked", one(library(exports=[name])))


def test_a_bad_table_of_symbols_is_refused() -> None:
    text = read_data("symbols.toml")
    with pytest.raises(DataError, match="bad pattern for protobuf"):
        parse_symbols(text.replace("_ZNK?6google8protobuf", "_ZNK?(6google8protobuf"))


# ----------------------------------------------------------------------------------------- flags


@pytest.mark.parametrize(
    ("rule", "binary"),
    [
        ("symbols-stack", library(executable_stack=True)),
        ("symbols-textrel", library(text_relocations=True)),
        ("symbols-hash", library(gnu_hash=False)),
        ("symbols-build-id", library(build_id="")),
    ],
)
def test_flags(rule: str, binary: Binary) -> None:
    assert not hits(rule, one(library()))
    [hit] = hits(rule, one(binary))
    assert hit.member == "thing/lib/liba.so"
    [hit] = hits(rule, subject_of(two(binary, binary)))
    assert hit.what.endswith("so does 1 other")


# ---------------------------------------------------------------------------------------- Python


def module(*imports: str, abi: str, python: str = "cp310", name: str = "_C.so") -> Subject:
    expected = msgspec.structs.replace(EXPECTED, abi=abi, python=python)
    binary = library(imports=("malloc", *imports), exports=["PyInit__C"])
    return subject_of(package({f"thing/{name}": binary}), expected)


def test_the_stable_abi_is_known_with_its_versions() -> None:
    names = stable_abi()
    assert names["PyArg_ParseTuple"] == (3, 2)
    assert names["PyType_FromMetaclass"] == (3, 12)
    assert "PyList_GET_ITEM" not in names
    assert len(names) > 900


def test_symbols_python_in_the_stable_abi() -> None:
    assert not hits("symbols-python", module("PyArg_ParseTuple", "_Py_Dealloc", abi="abi3"))
    assert not hits("symbols-python", module("_PyObject_GetState", abi="cp310"))
    for subject in (
        module("_PyObject_GetState", abi="abi3"),
        module("_PyObject_GetState", abi="cp310", name="_C.abi3.so"),
    ):
        [hit] = hits("symbols-python", subject)
        assert hit.what == "uses _PyObject_GetState, not in the stable ABI of Python 3.10"
    assert not hits("symbols-python", module("PyType_FromMetaclass", abi="abi3", python="cp312"))
    assert hits("symbols-python", module("PyType_FromMetaclass", abi="abi3", python="cp310"))


def test_functions_that_another_library_may_define() -> None:
    """As those of shiboken, which begin like Python's."""
    expected = msgspec.structs.replace(EXPECTED, abi="abi3", python="cp310")
    user = library("libother.so.1", runpath="$ORIGIN/../other", imports=["PyMethod_New"])
    contents = package({"thing/_C.abi3.so": user}, requires=["other"])
    alone = subject_of(contents, expected)
    assert not hits("symbols-python", alone)
    [hit] = hits("symbols-python-unsure", alone)
    assert hit.what.endswith("stable ABI of Python 3.10, unless `libother.so.1` has it")
    for names, rules in (
        (["PyMethod_New"], []),
        (["OtherMethod_New"], ["symbols-python"]),
    ):
        brought: dict[str, Binary | str] = {"other/libother.so.1": library(exports=names)}
        other = package(brought, name="other-1.0-py3-none-any.whl")
        together = subject_of(contents, expected, others=(other,))
        both = ("symbols-python", "symbols-python-unsure")
        assert [rule for rule in both if hits(rule, together)] == rules


@pytest.mark.parametrize("needed", ["libc.so.6", "libtorch_python.so", "libcudart.so.13"])
def test_what_is_known_defines_no_functions_of_python(needed: str) -> None:
    expected = msgspec.structs.replace(EXPECTED, abi="abi3", python="cp310")
    user = library(needed, imports=["_PyObject_GetState"])
    subject = subject_of(package({"thing/_C.abi3.so": user}, requires=["torch"]), expected)
    assert hits("symbols-python", subject)
    assert not hits("symbols-python-unsure", subject)


def test_symbols_python_free_threaded() -> None:
    free, locked = ("_Py_DecRefShared", "_Py_Dealloc"), ("_Py_Dealloc", "PyList_New")
    assert not hits("symbols-python", module(*free, abi="cp313t", python="cp313"))
    assert not hits("symbols-python", module(*locked, abi="cp313", python="cp313"))
    [hit] = hits("symbols-python", module(*free, abi="cp313", python="cp313"))
    assert "_Py_DecRefShared, which only a free-threaded Python has" in hit.what
    [hit] = hits("symbols-python", module(*locked, abi="cp313t", python="cp313"))
    assert "as for a Python with a lock, but is for cp313t" in hit.what


def test_symbols_python_debug() -> None:
    [hit] = hits("symbols-python", module("_Py_NegativeRefcount", abi="cp312"))
    assert "only a debug build" in hit.what


def test_symbols_python_without_libpython() -> None:
    [hit] = hits("symbols-python", one(library("libpython3.12.so.1.0")))
    assert hit.what == "needs `libpython3.12.so.1.0`, which a wheel must not"


def test_symbols_python_core() -> None:
    binary = library(imports=["PyList_New"])
    for name in ("libtorch_python.so", "libpyside6.abi3.so.6.9", "_C.so", "program"):
        assert not hits("symbols-python-core", subject_of(package({f"thing/{name}": binary})))
    [hit] = hits("symbols-python-core", one(binary))
    assert hit.what == "uses 1 functions of Python: PyList_New …"
    assert not hits("symbols-python-core", one(library(imports=["MyPyList", "PYTHON"])))
