#include <Python.h>

#ifdef WITH_BLAS
#include <cblas.h>
#endif

static PyObject *total(PyObject *self, PyObject *list) {
    double sum = 0;
    Py_ssize_t count = PySequence_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        double value = PyFloat_AsDouble(item), one = 1;
        Py_DECREF(item);
#ifdef WITH_BLAS
        double product = 0;
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, 1, &value, 1, &one, 1, 0,
                    &product, 1);
        value = product;
#endif
        sum += value * one;
    }
    return PyErr_Occurred() ? NULL : PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {{"total", total, METH_O, "The sum of a list."}, {0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "fastsum", 0, -1, methods};

PyMODINIT_FUNC PyInit_fastsum(void) { return PyModule_Create(&module); }
