#include <Python.h>
#include <gauge.h>

static PyObject *read_gauge(PyObject *self, PyObject *none) { return PyLong_FromLong(gauge_read()); }

static PyMethodDef methods[] = {{"read", read_gauge, METH_NOARGS, "What it shows."}, {0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_gauge", 0, -1, methods};

PyMODINIT_FUNC PyInit__gauge(void) { return PyModule_Create(&module); }
