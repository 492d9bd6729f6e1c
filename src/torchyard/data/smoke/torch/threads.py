# level: ops
# about: more than one thread computes
import os
import sys

import torch

if len(os.sched_getaffinity(0)) > 1:
    assert torch.get_num_threads() > 1, torch.__config__.parallel_info()
torch.set_num_threads(2)
assert torch.get_num_threads() == 2, torch.get_num_threads()
before = len(os.listdir("/proc/self/task"))
values = torch.rand(4_000_000).exp().sum()
after = len(os.listdir("/proc/self/task"))
assert values.isfinite()
if after <= before:
    sys.exit(f"no thread was started: {torch.__config__.parallel_info()}")
