#include "aten/math.h"
#include "c10/registry.h"
#include "csrc/bind.h"

namespace tt::python {
namespace {

PyObject* bind_show_config(PyObject*) { return from_string(show_config()); }
PyObject* bind_num_threads(PyObject*) { return PyLong_FromLong(get_num_threads()); }
PyObject* bind_kernel_count(PyObject*) { return PyLong_FromSize_t(kernel_count()); }

}  // namespace

PyMethodDef config_methods[] = {
    {"_show_config", guarded<bind_show_config>, METH_NOARGS, "How the library was built."},
    {"get_num_threads", guarded<bind_num_threads>, METH_NOARGS, "Threads of OpenMP."},
    {"kernel_count", guarded<bind_kernel_count>, METH_NOARGS, "Kernels in the registry."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace tt::python
