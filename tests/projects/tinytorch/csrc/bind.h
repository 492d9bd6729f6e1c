#pragma once
#include <Python.h>

#include <string>
#include <vector>

#include "tt_configured.h"

namespace tt::python {

// tinytorch.Error, once the module is made.
extern PyObject* error_type;

// A Python error is set already; it only has to reach the interpreter.
struct PythonError {};

std::vector<double> to_vector(PyObject* object);
PyObject* from_vector(const std::vector<double>& values);
PyObject* from_string(const std::string& text);

// Run a function; turn what it throws into a Python error.
PyObject* guard(PyObject* (*function)(PyObject*), PyObject* args) noexcept;

template <PyObject* (*function)(PyObject*)>
PyObject* guarded(PyObject*, PyObject* args) {
  return guard(function, args);
}

extern PyMethodDef math_methods[];
extern PyMethodDef config_methods[];
#ifdef TT_GPU
extern PyMethodDef gpu_methods[];
#endif

}  // namespace tt::python
