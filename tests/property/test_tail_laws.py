"""The end of a deflate stream: whatever is found of it is its end."""

import random
import zlib

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from torchyard.package.zip.parts import unpacked_end


def deflated(content: bytes, level: int = 6, strategy: int = 0) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    return packer.compress(content) + packer.flush()


def texts(seed: int, words: int) -> bytes:
    """Text of random words, so that it has many blocks, none of which is alike."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    return b" ".join(b"%x" % chance.getrandbits(chance.randrange(4, 40)) for _ in range(words))


@given(
    st.builds(texts, st.integers(0, 99), st.integers(0, 20_000)),
    st.binary(max_size=70_000),
    st.tuples(st.integers(0, 9), st.integers(0, 4)),
    st.floats(0, 1),
)
@settings(max_examples=examples(50))
@example(texts(1, 20_000), bytes(70_000), (6, 0), 0.5)
def test_what_is_found_is_the_end(
    text: bytes, noise: bytes, ways: tuple[int, int], share: float
) -> None:
    content = text + noise + text[::-1]
    packed = deflated(content, *ways)
    assert content.endswith(unpacked_end(packed[int(len(packed) * share) :]))


def test_names_at_the_end_are_found() -> None:
    names = b"".join(b"_ZN2at6symbol%dEv\0" % number for number in range(50_000))
    content = texts(5, 200_000) + names
    packed = deflated(content)
    found = unpacked_end(packed[len(packed) // 2 :])
    assert content.endswith(found)
    assert len(found) > len(names) // 2


def test_blocks_that_are_stored_stay_aligned() -> None:
    noise = random.Random(3).randbytes(300_000)  # noqa: S311 - no secret
    content = texts(7, 60_000) + noise + texts(8, 60_000)
    packed = deflated(content)
    found = unpacked_end(packed[len(packed) // 8 :])
    assert content.endswith(found)
    assert len(found) > len(noise)


def test_a_stream_that_is_cut_off_has_no_end() -> None:
    packed = deflated(texts(5, 60_000))
    assert unpacked_end(packed[len(packed) // 2 : -3]) == b""
    assert unpacked_end(b"") == b""
