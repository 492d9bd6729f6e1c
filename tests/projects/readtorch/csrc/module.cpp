#include <Python.h>

#include "ops/ops.h"

static PyObject* call(PyObject*, PyObject*) { return PyLong_FromLong(made()); }
static PyMethodDef methods[] = {{"made", call, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
