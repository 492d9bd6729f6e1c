# level: ops
# about: products with sparse matrices, and their gradients, are those of plain torch
import torch
from torch_sparse import SparseTensor, spmm

torch.manual_seed(0)
dense = (torch.rand(6, 7) > 0.5) * torch.rand(6, 7)
row, col = dense.nonzero().t()
value = dense[row, col].clone().requires_grad_()
right = torch.rand(7, 2, requires_grad=True)
out = SparseTensor(row=row, col=col, value=value, sparse_sizes=(6, 7)) @ right
plain = torch.zeros(6, 7).index_put((row, col), value) @ right
assert torch.allclose(out, plain)
given = torch.rand_like(out)
for ours, theirs in zip(
    torch.autograd.grad(out, (value, right), given),
    torch.autograd.grad(plain, (value, right), given),
    strict=True,
):
    assert torch.allclose(ours, theirs)
assert torch.allclose(spmm(torch.stack([row, col]), value, 6, 7, right), plain)
