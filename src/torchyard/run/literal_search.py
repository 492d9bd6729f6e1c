"""Search a text for many literals at once, at the speed of memory.

The search that a processor does with vector instructions takes few and short words. So each literal
is represented by four of its bytes, chosen so that many literals share them and ordinary lines of
logs lack them; where these are found, the literals are compared.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ahocorasick_rs import BytesAhoCorasick, MatchKind

STEM = 4
_AT_ONCE = 64
"""How many stems one vectorised search takes."""
_ORDINARY = b"""
[123/4567] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/x.cpp.o
/usr/bin/c++ -DAT_PER_OPERATOR_HEADERS -DHAVE_MALLOC_USABLE_SIZE=1 -DUSE_DISTRIBUTED -D_FILE_OFFSET
 -I/src/build/third_party/gloo -isystem /src/cmake/../third_party/eigen -Wno-error=pedantic -Werror
 -Wno-unused-parameter -Wno-missing-field-initializers -Wno-strict-overflow -fvisibility=hidden -O3
 -std=gnu++17 -fPIC -MD -MT -MF -o CMakeFiles/x -c error.cpp Exception.cpp -Xfatbin -DUSE_ERROR
-- Looking for C++ include pthread.h - found
-- Performing Test COMPILER_SUPPORTS_LONG_DOUBLE - Success
-- Found Python: /usr/bin/python3 (found version "3.12.1") found components: Interpreter
copying torch/nn/modules/container.py -> build/lib.linux-x86_64/torch/nn/modules
x.h:12:3: warning: comparison of integer expressions of different signedness [-Wsign-compare]
In file included from y.cpp:12: note: in expansion of macro; required from here
Collecting package, Downloading file, Requirement already satisfied, Installing collected packages
Linking CXX shared library lib/libtorch_cpu.so; Generating output; test/test_nn.py::TestNN PASSED
2026-01-01T00:00:00.000Z up to the and was for with this that from it is not in of std::string ated
"""
"""What most lines of logs are like: stems that occur here are avoided."""


class LiteralSearch:
    """Finds literals in bytes; each may have to be at the begin of a word."""

    def __init__(self, literals: Mapping[str, bool]) -> None:
        """Take literals, each with whether only a space or the start of a line can be before it."""
        words = {literal.encode(): first for literal, first in literals.items()}
        self._compared: dict[bytes, list[tuple[bytes, int, bool]]] = {}
        for word, stem in _stems(words).items():
            self._compared.setdefault(stem, []).append((word, word.index(stem), words[word]))
        stems = sorted(self._compared)
        self._searches = [
            BytesAhoCorasick(stems[i : i + _AT_ONCE], matchkind=MatchKind.LeftmostFirst)
            for i in range(0, len(stems), _AT_ONCE)
        ]

    def find(self, text: bytes, begin: int, end: int) -> list[int]:
        """Return where in a part of a text literals are, in ascending order."""
        part = memoryview(text)[begin:end]
        return sorted(
            {
                place
                for search in self._searches
                for _, start, _ in search.find_matches_as_indexes(part)
                for place in self._places(text, begin + start)
                if place >= begin
            }
        )

    def _places(self, text: bytes, start: int) -> Iterator[int]:
        """Yield where literals are whose stems begin here, or overlap with the one that does."""
        for place in range(start, start + STEM):
            for word, offset, first in self._compared.get(text[place : place + STEM], ()):
                at = place - offset
                if at >= 0 and text.startswith(word, at) and _may_begin(text, at, first=first):
                    yield at


def _may_begin(text: bytes, at: int, *, first: bool) -> bool:
    return not first or at == 0 or text[at - 1] in b" \t\r\n"


def _stems(words: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return four bytes of each word: rare ones, and if possible those of other words, too."""
    parts = {word: _parts(word) for word in words}
    shared = Counter(part for found in parts.values() for part in found)
    ordinary = _parts(_ORDINARY) | _parts(_ORDINARY.lower())
    score = {
        part: (part not in ordinary, not (part.isalpha() and part.islower()), count, part)
        for part, count in shared.items()
    }
    return {word: max(found, key=score.__getitem__) for word, found in parts.items()}


def _parts(word: bytes) -> set[bytes]:
    return {word[i : i + STEM] for i in range(len(word) - STEM + 1)}
