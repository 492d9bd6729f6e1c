#include <Python.h>

int small();

static PyObject* call(PyObject*, PyObject*) { return PyLong_FromLong(small()); }

static PyMethodDef methods[] = {{"small", call, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
