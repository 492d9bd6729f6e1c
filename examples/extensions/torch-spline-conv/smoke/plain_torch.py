# level: ops
# about: the basis adds up to one; weighting and its gradients are those of plain torch
import torch
from torch_spline_conv import spline_basis, spline_weighting

torch.manual_seed(0)
pseudo = torch.rand(20, 2, dtype=torch.double)
size, is_open = torch.tensor([5, 5]), torch.tensor([1, 1], dtype=torch.uint8)
basis, index = spline_basis(pseudo, size, is_open, 1)
assert torch.allclose(basis.sum(1), torch.ones(20, dtype=torch.double))
x = torch.rand(20, 4, dtype=torch.double, requires_grad=True)
weight = torch.rand(25, 4, 3, dtype=torch.double, requires_grad=True)
out = spline_weighting(x, weight, basis, index)
plain = torch.einsum("es,ei,esio->eo", basis, x, weight[index])
assert torch.allclose(out, plain)
given = torch.rand_like(out)
for ours, theirs in zip(
    torch.autograd.grad(out, (x, weight), given),
    torch.autograd.grad(plain, (x, weight), given),
    strict=True,
):
    assert torch.allclose(ours, theirs)
