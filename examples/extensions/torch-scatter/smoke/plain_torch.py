# level: ops
# about: sum, mean, min and max, and their gradients, are those of plain torch
import torch
from torch_scatter import scatter, segment_csr

torch.manual_seed(0)
index = torch.tensor([0, 0, 1, 1, 1, 3, 3, 2, 2, 0])
names = {"sum": "sum", "mean": "mean", "min": "amin", "max": "amax"}
for ours, theirs in names.items():
    x = torch.rand(10, 3, dtype=torch.double, requires_grad=True)
    out = scatter(x, index, dim=0, dim_size=4, reduce=ours)
    empty = torch.zeros(4, 3, dtype=torch.double)
    plain = empty.scatter_reduce(0, index[:, None].expand(10, 3), x, theirs, include_self=False)
    assert torch.allclose(out, plain), ours
    given = torch.rand_like(out)
    (gradient,), (expected,) = (torch.autograd.grad(one, x, given) for one in (out, plain))
    assert torch.allclose(gradient, expected), ours
x = torch.rand(6, 2, requires_grad=True)
out = segment_csr(x, torch.tensor([0, 2, 6]), reduce="sum")
assert torch.allclose(out, torch.stack([x[:2].sum(0), x[2:].sum(0)]))
