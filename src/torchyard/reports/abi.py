"""The ABI class of an extension, in documents and in words."""

from torchyard.checks.compat.abi import ApiNeed, ApiUse, MeasuredAbi
from torchyard.checks.compat.stable_names import newest_release, show_release
from torchyard.model.abi import AbiClass
from torchyard.reports.document import JsonDocument


class ApiDocument(JsonDocument, kw_only=True):
    """What is used of an API; `floor` is the oldest release that has it, if it is known.

    `symbol` of `member` is the newest function that is used, or the first that is not stable.
    """

    use: ApiUse
    floor: str | None
    member: str
    symbol: str


class AbiDocument(JsonDocument, kw_only=True):
    """The ABI class of an extension, and what it needs of Python and of torch."""

    name: AbiClass
    python: ApiDocument
    torch: ApiDocument


def abi_document(abi: MeasuredAbi) -> AbiDocument:
    return AbiDocument(name=abi.name, python=_api(abi.python), torch=_api(abi.torch))


def _api(need: ApiNeed) -> ApiDocument:
    return ApiDocument(
        use=need.use,
        floor=show_release(need.floor) if need.floor else None,
        member=need.member,
        symbol=need.symbol,
    )


def abi_words(abi: AbiDocument) -> str:
    """Return a class, and what it fits: `both: Python 3.10 or newer, torch 2.11 or newer`."""
    return f"{abi.name}: {python_words(abi.python)}, {torch_words(abi.torch)}"


def python_words(need: ApiDocument) -> str:
    """Return the Pythons that an extension fits."""
    if need.use is ApiUse.FULL:
        return "one Python"
    return f"Python {need.floor} or newer" if need.floor else "any Python"


def torch_words(need: ApiDocument) -> str:
    """Return the torch releases that an extension fits, as far as its functions are stable."""
    if need.use is ApiUse.FULL:
        return "no stable torch"
    if need.use is ApiUse.STABLE and need.floor is None:
        return f"torch after {show_release(newest_release())}"
    return f"torch {need.floor} or newer" if need.floor else "any torch"
