/*
 * nvtx.h: ranges for a profiler that runs beside the program, as Nsight Systems does. NVTX is the
 * interface of such profilers. A profiler that wants ranges names a library in the variable
 * NVTX_INJECTION64_PATH; that library is loaded at the first nvtx_attach, and stays. Without that
 * variable nothing is loaded, and no range costs anything.
 *
 * Nothing of NVIDIA's is needed to build or to run: what follows is the binary interface between a
 * program and such a library, which is equal in NVTX 2 and 3. tests/unit/test_nvtx.c compares it
 * with NVIDIA's own library, and with NVIDIA's header where one is installed.
 */
#ifndef TIMELINE_NVTX_H
#define TIMELINE_NVTX_H

#include "base/err.h"

#define NVTX_VARIABLE "NVTX_INJECTION64_PATH"
#define NVTX_INIT     "InitializeInjectionNvtx2" /* the function of the library that starts it */
#define NVTX_OURS     "hvd"                      /* the domain of all ranges */

/* The numbers by which a library asks for the two tables that a program gives to it. */
enum nvtx_export { NVTX_EXPORT_CALLS = 1, NVTX_EXPORT_VERSION = 3 };

/* The modules into which NVTX sorts its calls. A library puts its own function into the place of
 * each call that it wants. */
enum nvtx_module {
    NVTX_CORE = 1,
    NVTX_CUDA,
    NVTX_OPENCL,
    NVTX_CUDA_RUNTIME,
    NVTX_DOMAINS,
    NVTX_SYNC,
    NVTX_MODULES,
};
enum nvtx_domain_call { NVTX_RANGE_START = 2, NVTX_RANGE_END = 3, NVTX_DOMAIN_CREATE = 12 };
#define NVTX_CALLS_MAX 16 /* most places of one module; the first place of each module is empty */

typedef void nvtx_call_fn(void); /* a call of any type */
struct nvtx_place {
    nvtx_call_fn *call; /* NULL: the library does not take this call */
};
/* Returns 1 and the places of a module's calls, with their number; 0: there is no such module. */
typedef int nvtx_module_fn(unsigned module, struct nvtx_place ***ret_places, unsigned *ret_count);

struct nvtx_calls {
    size_t bytes; /* of this struct */
    nvtx_module_fn *module;
};

struct nvtx_version {
    size_t bytes; /* of this struct */
    uint32_t version, reserved;
    void (*take_version)(uint32_t version); /* a library may tell its own version */
};

typedef const void *nvtx_export_fn(uint32_t id);
typedef int nvtx_init_fn(nvtx_export_fn *export); /* 0: the library does not want to run */

enum { NVTX_VERSION_3 = 3, NVTX_UINT64 = 1, NVTX_ASCII = 1 };

/* The description of a range for the library. */
struct nvtx_event {
    uint16_t version, bytes; /* NVTX_VERSION_3, and the size of this struct */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved; /* payload_type is NVTX_UINT64 */
    uint64_t payload;
    int32_t text_type; /* NVTX_ASCII */
    const char *text;
};

struct nvtx_domain;
typedef struct nvtx_domain *nvtx_create_fn(const char *name);
typedef uint64_t nvtx_start_fn(struct nvtx_domain *domain, const struct nvtx_event *event);
typedef void nvtx_end_fn(struct nvtx_domain *domain, uint64_t id);

/* Loads the library that NVTX_INJECTION64_PATH names, once in the life of a process. Returns 0 and
 * *ret_attached: true: the library takes ranges; false: no library is named, or it has no use for
 * ranges. HVD_E_UNSUPPORTED: the library cannot be used; later calls return the same code. Any
 * thread may call nvtx_attach. */
int nvtx_attach(bool *ret_attached, struct hvd_err *err) MUST_CHECK;

/* Begin and end a range; called only after nvtx_attach has set *ret_attached to true. Any thread
 * may call them; a range may end on another thread than it began on, and ranges may overlap. text
 * is copied. */
uint64_t nvtx_start(const char *text, uint64_t payload);
void nvtx_end(uint64_t id);

#endif
