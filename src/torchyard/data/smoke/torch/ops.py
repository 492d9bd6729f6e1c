# level: ops
# about: sums and products in half, single and double precision
import torch

for dtype in (torch.float16, torch.float32, torch.float64):
    left = torch.arange(1, 7, dtype=dtype).reshape(2, 3)
    right = torch.arange(1, 7, dtype=dtype).reshape(3, 2)
    assert (left + left).tolist() == [[2, 4, 6], [8, 10, 12]], dtype
    assert (left @ right).tolist() == [[22, 28], [49, 64]], dtype
    assert left.sum().item() == 21, dtype
    assert left.mean(0).tolist() == [2.5, 3.5, 4.5], dtype
torch.manual_seed(7)
wide = torch.randn(301, 301, dtype=torch.float64)
exact = wide @ wide
close = (wide.float() @ wide.float()).double()
assert torch.allclose(close, exact, rtol=1e-3, atol=1e-3), (close - exact).abs().max()
