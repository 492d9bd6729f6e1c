#include "cuda/gpu_math.h"

#include "csrc/bind.h"

namespace tt::python {
namespace {

PyObject* bind_device_count(PyObject*) { return PyLong_FromLong(gpu::device_count()); }
PyObject* bind_linalg_backend(PyObject*) { return from_string(gpu::linalg_backend()); }

PyObject* bind_gpu_add(PyObject* args) {
  PyObject *left, *right;
  if (!PyArg_ParseTuple(args, "OO", &left, &right)) throw PythonError();
  return from_vector(gpu::add(to_vector(left), to_vector(right)));
}

}  // namespace

PyMethodDef gpu_methods[] = {
    {"device_count", guarded<bind_device_count>, METH_NOARGS, "GPUs that can be used."},
    {"linalg_backend", guarded<bind_linalg_backend>, METH_NOARGS, "What libtt_linalg uses."},
    {"gpu_add", guarded<bind_gpu_add>, METH_VARARGS, "Add two lists of numbers on the GPU."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace tt::python
