# level: full
# needs: numpy
# about: arrays and tensors share their memory, with the oldest and the newest numpy
import warnings

warnings.simplefilter("error")

import numpy
import torch

array = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
tensor = torch.from_numpy(array)
tensor += 1
assert array[0, 0] == 1
assert tensor.numpy() is not None and tensor.numpy().sum() == 21
assert torch.tensor(numpy.float64(2.5)).dtype == torch.float64
assert numpy.asarray(torch.ones(3, dtype=torch.int64)).tolist() == [1, 1, 1]
