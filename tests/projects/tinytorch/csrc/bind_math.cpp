#include "aten/math.h"

#include "c10/registry.h"
#include "csrc/bind.h"

namespace tt::python {
namespace {

PyObject* bind_add(PyObject* args) {
  PyObject *left, *right;
  if (!PyArg_ParseTuple(args, "OO", &left, &right)) throw PythonError();
  return from_vector(add(to_vector(left), to_vector(right)));
}

PyObject* bind_matmul(PyObject* args) {
  PyObject *left, *right;
  int rows, inner, columns;
  if (!PyArg_ParseTuple(args, "OOiii", &left, &right, &rows, &inner, &columns))
    throw PythonError();
  return from_vector(matmul(to_vector(left), to_vector(right), rows, inner, columns));
}

PyObject* bind_apply(PyObject* args) {
  const char* name;
  double x;
  if (!PyArg_ParseTuple(args, "sd", &name, &x)) throw PythonError();
  return PyFloat_FromDouble(find_kernel(name)(x));
}

}  // namespace

PyMethodDef math_methods[] = {
    {"add", guarded<bind_add>, METH_VARARGS, "Add two lists of numbers."},
    {"matmul", guarded<bind_matmul>, METH_VARARGS, "Multiply: left, right, rows, inner, columns."},
    {"apply", guarded<bind_apply>, METH_VARARGS, "Call a kernel by its name."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace tt::python
