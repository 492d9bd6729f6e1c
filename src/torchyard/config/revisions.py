"""Configurations to compare with: other files, or older revisions of the same one."""

from torchyard.config.document import Document
from torchyard.config.load import load_yard, yard_of
from torchyard.host.files import basename, isfile
from torchyard.host.git import file_at
from torchyard.model.yard import Yard


def load_yard_of(name: str, path: str) -> Yard:
    """Read what `name` means: a file if there is one, else that git revision of `path`.

    Its origins say which of the two it was, so that old and new lines can be told apart.
    """
    if isfile(name):
        return load_yard(name, name=name)
    return yard_of(path, Document(f"{name}:{basename(path)}", file_at(name, path)))
