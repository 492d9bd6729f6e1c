# level: ops
# needs: gpu
# about: a GPU is found, and computes
import tinytorch as t

assert t._C.device_count() > 0
assert t._C.gpu_add([1, 2], [3, 4]) == [4, 6]
