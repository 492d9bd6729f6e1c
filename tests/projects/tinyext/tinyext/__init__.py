"""One operator, `twice`."""

from pathlib import Path

import torch

for _library in Path(__file__).parent.glob("_C.*.so"):
    torch.ops.load_library(_library)

twice = torch.ops.tinyext.twice
