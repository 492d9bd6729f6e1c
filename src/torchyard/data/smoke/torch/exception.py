# level: ops
# about: what C++ throws in one library arrives as an error of Python (pytorch/pytorch#57744)
import torch

try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError as error:
    assert "shapes cannot be multiplied" in str(error), error
else:
    raise AssertionError("no error was raised")
try:
    torch.ones(2)[5]
except IndexError as error:
    assert "out of bounds" in str(error), error
else:
    raise AssertionError("no error was raised")
try:
    torch.linalg.inv(torch.zeros(2, 2))
except torch.linalg.LinAlgError as error:
    assert "singular" in str(error), error
else:
    raise AssertionError("no error was raised")
