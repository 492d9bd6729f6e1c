"""Tar archives of any members."""

import io
import tarfile


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def tar_of(*members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return a tar archive; what is given without bytes has none."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for one in members:
            info, content = one if isinstance(one, tuple) else (one, b"")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()
