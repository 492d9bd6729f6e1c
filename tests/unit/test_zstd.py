"""Large texts that are unpacked into memory that is taken once."""

import pytest

from torchyard.host import zstd
from torchyard.host.zstd import ZstdError, compress, decompress_text

TEXT = b"".join(b"%d: some text\n" % number for number in range(40_000))


@pytest.mark.parametrize("text", [b"", b"x", TEXT, TEXT[: 128 << 10], TEXT[: (128 << 10) + 1]])
def test_what_was_compressed_comes_back(text: bytes) -> None:
    assert decompress_text(compress(text, zstd.LEVEL)) == text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no frame at all",
        compress(TEXT)[:-9],
        compress(TEXT)[:2000],
        b"".join([compress(b"")[:6], compress(TEXT)]),
    ],
)
def test_what_is_torn_is_an_error(data: bytes) -> None:
    with pytest.raises(ZstdError):
        decompress_text(data)


def test_a_text_of_another_size_than_it_says_is_not_read_to_its_end() -> None:
    """Somebody else's frame may say anything."""
    packed = bytearray(compress(TEXT))
    assert packed[4] == 0xA0, "a size of four bytes, at the sixth"
    for size in (len(TEXT) - 1, len(TEXT) + 1, 10):
        packed[5:9] = size.to_bytes(4, "little")
        with pytest.raises(ZstdError):
            decompress_text(bytes(packed))


def test_a_text_that_is_too_large_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd, "LARGEST_TEXT", len(TEXT) - 1)
    with pytest.raises(ZstdError, match="exceeds the limit of"):
        decompress_text(compress(TEXT))
