"""From a yard to one that knows the toolchain of this machine."""

import msgspec

from torchyard.model.yard import Yard


def identified(yard: Yard, file: str) -> Yard:
    """Find out what a yard compiles with: every fingerprint depends on it.

    A yard that says nothing of a toolchain is as it is, on every machine.
    """
    if yard.toolchain is None:
        return yard
    from pathlib import Path

    from torchyard.cli.places import home_of
    from torchyard.config.tables import load_tables
    from torchyard.toolchain.digests import DIGESTS, Digests
    from torchyard.toolchain.identity import identify

    included = [rule.pattern for rule in yard.matrix.include]
    computes = {*yard.matrix.values[1], *(c for rule in included for c in rule.compute)}
    variants = {*yard.matrix.values[2], *(v for rule in included for v in rule.variant)}
    toolchain = identify(
        yard.toolchain,
        computes=computes,
        variants=variants,
        tables=load_tables(),
        digests=Digests(Path(home_of(file), DIGESTS)),
    )
    return msgspec.structs.replace(yard, toolchain=toolchain)
