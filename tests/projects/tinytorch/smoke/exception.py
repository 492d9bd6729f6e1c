# level: ops
# about: what the core throws arrives as an error of Python
import tinytorch as t

try:
    t.add([1], [])
except t.Error as error:
    assert "the lengths differ by 1" in str(error), error
else:
    raise AssertionError("no error was raised")
