# level: full
# needs: compiler headers
# timeout: 300
# about: torch.compile makes, compiles and runs a kernel
import torch


@torch.compile(fullgraph=True)
def function(x, y):
    return torch.sin(x) * y + x.sum()


x, y = torch.randn(64), torch.randn(64)
assert torch.allclose(function(x, y), torch.sin(x) * y + x.sum(), atol=1e-5)
