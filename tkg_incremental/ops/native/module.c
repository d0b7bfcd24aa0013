/* An empty module: it exists so that the usual tools build and install the kernels, which are called by address. */
#include <Python.h>

#include "common.h"

/* The digest of the sources, from setup.py. */
EXPORT const char *sources(void) { return SOURCES; }

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&module); }
