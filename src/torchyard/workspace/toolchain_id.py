"""Identify the toolchain of this machine for a configuration."""

import msgspec

from torchyard.errors import ConfigError
from torchyard.host.machine import platform_name
from torchyard.model.config import Config
from torchyard.model.lock import conda_head, conda_locks
from torchyard.model.toolchain import CondaToolchain


def with_toolchain_id(config: Config, file: str) -> Config:
    """Return a config with the identities of its compilers, for fingerprints.

    A config without [toolchain] is returned unchanged, as are all on systems without builds, and
    those with conda environments, whose lock says what they are. In a container of the root's
    image, jobs run without a root.
    """
    here = config.tables.platforms.get(platform_name())
    if config.toolchain is None or here is None or not here.built:
        return config
    if config.toolchain.conda is not None:
        _refuse_unlocked(config, config.toolchain.conda)
        return config
    from pathlib import Path

    from torchyard.compute.registry import platform_for
    from torchyard.host.files import absolute
    from torchyard.toolchain.digests import DIGESTS, Digests
    from torchyard.toolchain.identity import identify, identify_in_root
    from torchyard.toolchain.root_image import find_root, own_image
    from torchyard.workspace.locations import home_directory, work_directory

    included = [rule.pattern for rule in config.matrix.include]
    computes = {*config.matrix.values[1], *(c for rule in included for c in rule.compute)}
    variants = {*config.matrix.values[2], *(v for rule in included for v in rule.variant)}
    image = own_image(config.toolchain.root)
    if config.toolchain.root is not None and not image:
        is_ours = config.project.recipe.compiling not in config.steps
        base, work = Path(absolute(file)).parent, Path(work_directory(file))
        toolchain = identify_in_root(
            config.toolchain,
            find_root(config.toolchain.root, base, work),
            computes=computes if is_ours else (),
            variants=variants if is_ours else (),
        )
        return msgspec.structs.replace(config, toolchain=toolchain)
    toolchain = identify(
        msgspec.structs.replace(config.toolchain, root=None),
        computes={name: platform_for(name) for name in computes},
        variants=variants,
        tables=config.tables,
        digests=Digests(Path(home_directory(file), DIGESTS)),
    )
    if image:
        toolchain = msgspec.structs.replace(toolchain, parts={**toolchain.parts, "root": image})
    return msgspec.structs.replace(config, toolchain=toolchain)


def _refuse_unlocked(config: Config, conda: CondaToolchain) -> None:
    """Refuse a file whose conda environments are not locked as it asks for them."""
    head = conda_head(conda)
    for name in conda_locks(config.matrix):
        if not config.lock.conda.get(name, "").startswith(head):
            msg = f"the conda environments of {name} are not locked as [toolchain] asks for them"
            raise ConfigError(msg, hint="run `torchyard lock`")
