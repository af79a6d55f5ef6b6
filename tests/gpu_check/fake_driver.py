"""Writes C of a CUDA driver and an NVRTC that compute nothing: every function that the plugin asks for, 0 unless told below.

FAKE_CUDA=hang: cuInit never returns; =error: it fails; else there is a GPU, memory and copies work, and every launch fails."""

import pathlib
import re

BODIES = {
    "cuInit": '(unsigned f) { while (is("hang")) pause(); return is("error") ? 999 : 0; }',
    "cuDriverGetVersion": "(int* v) { *v = 13000; return 0; }",
    "cuDeviceGetCount": "(int* n) { *n = 1; return 0; }",
    "cuDeviceGet": "(int* d, int n) { *d = 0; return 0; }",
    "cuDeviceGetName": '(char* s, int n, int d) { strncpy(s, "a GPU that lies", n); return 0; }',
    "cuDeviceGetUuid": "(char* u, int d) { memset(u, 7, 16); return 0; }",
    "cuDeviceGetPCIBusId": '(char* s, int n, int d) { strncpy(s, "0000:01:00.0", n); return 0; }',
    "cuDeviceTotalMem": "(size_t* b, int d) { *b = 1ul << 32; return 0; }",
    "cuDeviceGetAttribute": "(int* v, int a, int d) { *v = a == 75 ? 9 : a == 1 ? 1024 : a == 8 ? 49152 : a == 10 ? 32 : a == 16 ? 4 : 0; return 0; }",
    "cuDevicePrimaryCtxRetain": "(void** c, int d) { return some(c); }",
    "cuCtxGetCurrent": "(void** c) { return some(c); }",
    "cuMemGetInfo": "(size_t* f, size_t* t) { *f = *t = 1ul << 32; return 0; }",
    "cuMemAlloc": "(void** p, size_t n) { *p = calloc(n, 1); return *p ? 0 : 2; }",
    "cuMemHostAlloc": "(void** p, size_t n, unsigned f) { *p = calloc(n, 1); return *p ? 0 : 2; }",
    "cuMemcpyHtoDAsync": "(void* d, void* s, size_t n, void* q) { memcpy(d, s, n); return 0; }",
    "cuMemcpyDtoHAsync": "(void* d, void* s, size_t n, void* q) { memcpy(d, s, n); return 0; }",
    "cuStreamCreate": "(void** s, unsigned f) { return some(s); }",
    "cuStreamEndCapture": "(void* s, void** g) { return some(g); }",
    "cuGraphInstantiateWithFlags": "(void** e, void* g, unsigned long long f) { return some(e); }",
    "cuGraphLaunch": "(void* g, void* s) { return 719; }",
    "cuLaunchKernel": "(void* f) { return 719; }",
    "cuEventCreate": "(void** e, unsigned f) { return some(e); }",
    "cuModuleLoadData": "(void** m, void* image) { return some(m); }",
    "cuModuleGetFunction": "(void** f, void* m, char* name) { return some(f); }",
    "cuGetErrorName": '(int e, const char** s) { *s = e == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_UNKNOWN"; return 0; }',
    "cuGetErrorString": '(int e, const char** s) { *s = "as the rehearsal wants"; return 0; }',
    "nvrtcVersion": "(int* a, int* b) { *a = 13; *b = 0; return 0; }",
    "nvrtcGetErrorString": '(int e) { return (long)"an error"; }',
    "nvrtcGetNumSupportedArchs": "(int* n) { *n = 1; return 0; }",
    "nvrtcGetSupportedArchs": "(int* a) { *a = 90; return 0; }",
    "nvrtcCreateProgram": "(void** p) { return some(p); }",
    "nvrtcGetCUBINSize": "(void* p, size_t* n) { *n = 4; return 0; }",
    "nvrtcGetCUBIN": "(void* p, char* to) { memset(to, 1, 4); return 0; }",
    "nvrtcGetPTXSize": "(void* p, size_t* n) { *n = 4; return 0; }",
    "nvrtcGetPTX": "(void* p, char* to) { memset(to, 1, 4); return 0; }",
    "nvrtcGetProgramLogSize": "(void* p, size_t* n) { *n = 1; return 0; }",
    "nvrtcGetProgramLog": "(void* p, char* to) { *to = 0; return 0; }",
}
HEAD = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int is(const char* what) { const char* v = getenv("FAKE_CUDA"); return v && !strcmp(v, what); }
static int some(void** p) { *p = (void*)1; return 0; }
"""


def source():
    """All functions that backends/cuda opens, also by the names of later versions."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "backends" / "cuda"
    names = set(BODIES)
    for file in folder.glob("*.h"):
        names.update(re.findall(r"\b((?:cu[A-Z]|nvrtc)\w+)\b", file.read_text()))
    text = HEAD
    for name in sorted(names):
        if re.search(r"_v\d$", name):
            continue
        text += f"long {name}{BODIES.get(name, '() { return 0; }')}\n"
        for version in ("_v2", "_v3"):
            text += f'long {name}{version}() __attribute__((alias("{name}")));\n'
    return text
