# level: ops
# about: convolution, against the same by hand; a small network with pooling, and an RNN
import torch
from torch import nn

torch.manual_seed(7)
image, kernel = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
found = torch.conv2d(image, kernel)
patches = nn.functional.unfold(image, 3)
by_hand = (kernel.reshape(4, -1) @ patches).reshape(2, 4, 6, 6)
assert torch.allclose(found, by_hand, atol=1e-4), (found - by_hand).abs().max()

network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
assert network(image).shape == (2, 36)
with torch.autocast("cpu", dtype=torch.bfloat16):
    assert network(image).dtype == torch.bfloat16
states, last = nn.LSTM(8, 5)(torch.randn(6, 2, 8))
assert states.shape == (6, 2, 5) and last[0].shape == (1, 2, 5)
