#include "c10/error.h"
#include "csrc/bind.h"

namespace tt::python {

PyObject* error_type = nullptr;

std::vector<double> to_vector(PyObject* object) {
  PyObject* sequence = PySequence_Fast(object, "a list of numbers is needed");
  if (sequence == nullptr) throw PythonError();
  std::vector<double> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i)
    out.push_back(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(sequence, i)));
  Py_DECREF(sequence);
  if (PyErr_Occurred()) throw PythonError();
  return out;
}

PyObject* from_vector(const std::vector<double>& values) {
  PyObject* out = PyList_New(static_cast<Py_ssize_t>(values.size()));
  for (std::size_t i = 0; out != nullptr && i < values.size(); ++i)
    PyList_SetItem(out, static_cast<Py_ssize_t>(i), PyFloat_FromDouble(values[i]));
  return out;
}

PyObject* from_string(const std::string& text) { return PyUnicode_FromString(text.c_str()); }

PyObject* guard(PyObject* (*function)(PyObject*), PyObject* args) noexcept {
  try {
    return function(args);
  } catch (const PythonError&) {
  } catch (const Error& error) {
    PyErr_SetString(error_type, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  }
  return nullptr;
}

}  // namespace tt::python

extern "C" PyObject* initModule() {
  using namespace tt::python;
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "tinytorch._C", nullptr, -1, nullptr, nullptr, nullptr, nullptr,
      nullptr};
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  error_type = PyErr_NewException("tinytorch.Error", PyExc_RuntimeError, nullptr);
  if (error_type == nullptr || PyModule_AddObjectRef(module, "Error", error_type) < 0)
    return nullptr;
  PyModule_AddFunctions(module, math_methods);
  PyModule_AddFunctions(module, config_methods);
#ifdef TT_GPU
  PyModule_AddFunctions(module, gpu_methods);
#endif
  return module;
}
