# level: ops
# about: gradients, and a step of training that makes the loss smaller
import torch
from torch import nn

x = torch.tensor([2.0, 3.0], requires_grad=True)
(x**3).sum().backward()
assert x.grad.tolist() == [12.0, 27.0], x.grad
y = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(torch.tanh, (y,))

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
inputs = torch.randn(64, 4)
target = inputs.sum(1, keepdim=True)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2, losses
