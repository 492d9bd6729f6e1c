# level: ops
# about: calls reach the core, and its registry is full
import tinytorch as t

assert t.add([1, 2], [3, 4]) == [4, 6]
assert t.matmul([1, 2, 3, 4], [5, 6, 7, 8], 2, 2, 2) == [19, 22, 43, 50]
assert t.kernel_count() > 5, t.kernel_count()
assert t.get_num_threads() >= 1
