# level: ops
# about: linear algebra: SVD, solving, eigenvalues
import torch

torch.manual_seed(7)
for dtype, limit in ((torch.float32, 1e-4), (torch.float64, 1e-10)):
    matrix = torch.randn(40, 30, dtype=dtype)
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.allclose(u @ torch.diag(s) @ v, matrix, atol=limit), dtype
    square = matrix.T @ matrix + torch.eye(30, dtype=dtype)
    right = torch.randn(30, 2, dtype=dtype)
    solved = torch.linalg.solve(square, right)
    assert torch.allclose(square @ solved, right, atol=limit * 10), dtype
    values = torch.linalg.eigvalsh(square)
    assert torch.allclose(values.sum(), square.trace(), rtol=limit), dtype
