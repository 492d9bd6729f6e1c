# level: ops
# needs: gpu
# timeout: 60
# about: a GPU is found, computes, and throws errors that arrive
import os

import torch

device = os.environ["TORCHYARD_SMOKE_DEVICE"]
accelerator = getattr(torch, device)
assert accelerator.is_available(), "there is a GPU here, and torch finds none"
left = torch.randn(64, 64, device=device)
for dtype in (torch.float16, torch.float32):
    found = (left.to(dtype) @ left.to(dtype)).float().cpu()
    assert torch.allclose(found, left.cpu() @ left.cpu(), atol=0.5), dtype
torch.linalg.svd(left)
convolved = torch.nn.Conv2d(3, 4, 3).to(device)(torch.randn(1, 3, 8, 8, device=device))
convolved.sum().backward()
try:
    left @ torch.ones(3, 3, device=device)
except RuntimeError as error:
    assert "shapes cannot be multiplied" in str(error), error
else:
    raise AssertionError("no error was raised")
accelerator.synchronize()
print(f"note: computed on {accelerator.get_device_name()}, of {accelerator.device_count()} visible")
