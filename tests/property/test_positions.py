"""The scanner finds exactly what tomllib finds, where it stands."""

import tomllib
from collections.abc import Iterable

from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.helpers import toml_text

from torchyard.config.positions import locate

scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=8),
)
keys = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True),
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=4),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)

HANDMADE = '''\
# a comment with "quotes" and [brackets]
plain = 1 # another
dotted . "quo.ted" = { x = [1, 2, # inside
  3, ], y = {} }
date = 1979-05-27 07:32:00-08:00
float = -1.5e+3
text = """
many "lines" ""with"" \\""" quotes"""""
raw = \'\'\'it's
'raw\'\'\'\'
[table.sub]
a.b.c = true
[[array]]
x = 'one'
[[array]]
[array.inner]
y = "two\\\\"
[[array.deep]]
z = 3
[[array.deep]]
z = 4
'''


def paths(value: object, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], object]:
    found = {path: value} if path else {}
    items: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found |= paths(item, (*path, key))
    return found


@given(st.dictionaries(keys, values, max_size=4).map(toml_text))
@example(HANDMADE)
@example(HANDMADE.replace("\n", "\r\n"))
def test_same_paths_and_values_as_tomllib(text: str) -> None:
    expected = paths(tomllib.loads(text))
    places = locate(text)
    named = {path: value for path, value in expected.items() if path in places}
    missing = expected.keys() - named.keys()
    # Only a super-table that a header merely passes through, as [a.b] does a, has no place.
    assert all(isinstance(expected[path], dict) for path in missing)
    assert places.keys() <= expected.keys()
    for path, place in places.items():
        start, end = place.value
        if (place.key != place.value and place.key is not None) or isinstance(path[-1], int):
            written = text[start:end]
            if not isinstance(expected[path], dict | list) or written[:1] in "[{":
                assert tomllib.loads(f"v = {written}")["v"] == expected[path]
