/*
 * nvtx.c: the program's side of NVTX: loads the library that a profiler names, and lets that
 * library fill in its functions. Called by timeline.c and worker/. Invariant: the places of all
 * calls are static, because the library may look at them until the process ends; only the library
 * writes to them.
 */
#include "timeline/nvtx.h"

#include "base/text.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The number of calls of each module, plus one: NVTX numbers the calls from 1, so the place at
 * index 0 stays empty. */
static const unsigned nvtx_counts[NVTX_MODULES] = {
    [NVTX_CORE] = 16,        [NVTX_CUDA] = 9,     [NVTX_OPENCL] = 15,
    [NVTX_CUDA_RUNTIME] = 7, [NVTX_DOMAINS] = 16, [NVTX_SYNC] = 7,
};

static struct {
    pthread_mutex_t lock;       /* held while the library is loaded */
    bool tried, attached;       /* the load was tried; the library takes ranges */
    struct hvd_err why;         /* code not 0: the library cannot be used */
    struct nvtx_domain *domain; /* the domain of our ranges; NULL: the library has no domains */
    struct nvtx_place places[NVTX_MODULES][NVTX_CALLS_MAX];
    /* Tables for the profiler's library: the addresses of the places, with NULL at index 0 and at
     * the end. */
    struct nvtx_place *tables[NVTX_MODULES][NVTX_CALLS_MAX + 1];
} nvtx = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Called by the profiler's library, to get the pointers to the functions of one module. The library
 * writes its own functions to these pointers. Returns 1; 0: there is no such module. */
static int nvtx_give_module(unsigned module, struct nvtx_place ***ret_places, unsigned *ret_count)
{
    if (module >= NVTX_MODULES || !nvtx_counts[module])
        return 0;
    /* index 0 stays NULL: NVTX numbers the calls from 1 */
    for (unsigned i = 1; i < nvtx_counts[module]; i++)
        nvtx.tables[module][i] = &nvtx.places[module][i];
    if (ret_places)
        *ret_places = nvtx.tables[module];
    if (ret_count)
        *ret_count = nvtx_counts[module];
    return 1;
}

/* The library calls this function with its version, which changes nothing here. */
static void nvtx_take_version(uint32_t version)
{
    (void)version;
}

/* Called by the profiler's library, to get the table with this number (enum nvtx_export). NULL:
 * there is no such table. */
static const void *nvtx_export(uint32_t id)
{
    static const struct nvtx_calls calls = { sizeof(calls), nvtx_give_module };
    static const struct nvtx_version version = { sizeof(version), NVTX_VERSION_3, 0,
                                                 nvtx_take_version };

    if (id == NVTX_EXPORT_CALLS)
        return &calls;
    return id == NVTX_EXPORT_VERSION ? &version : NULL;
}

/* Loads the profiler's library that NVTX_VARIABLE names, at the first call in the life of the
 * process. *ret_attached is true if the library takes ranges. Later calls return the result of the
 * first one. */
int nvtx_attach(bool *ret_attached, struct hvd_err *err)
{
    const char *path = getenv(NVTX_VARIABLE);
    const struct nvtx_place *calls = nvtx.places[NVTX_DOMAINS];
    const char *why = NULL;
    char quoted[TEXT_QUOTE_MAX];
    nvtx_init_fn *init = NULL;
    void *library, *at;
    int rc = 0;

    pthread_mutex_lock(&nvtx.lock);
    if (!nvtx.tried && path && path[0]) {
        nvtx.tried = true;
        text_quote(path, strlen(path), quoted);
        library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (library) {
            at = dlsym(library, NVTX_INIT);
            memcpy(&init, &at, sizeof(init));
            if (!init)
                why = "the library has no function " NVTX_INIT;
            else if (!init(nvtx_export))
                why = "the library did not start";
        } else {
            why = dlerror(); /* the text begins with the file that could not be loaded, which often
                                is this library */
            if (why && !strncmp(why, path, strlen(path)) && !strncmp(why + strlen(path), ": ", 2))
                why += strlen(path) + 2;
            why = why ? why : "the library cannot be loaded";
        }
        if (why)
            rc = err_set(&nvtx.why, HVD_E_UNSUPPORTED,
                         NVTX_VARIABLE " names %s: %s; the profiler shows no ranges of "
                                       "hvd-elastic; correct the variable, or unset it",
                         quoted, why);
        /* A library that does not want to run, or lacks the function, is unloaded again. */
        if (why && library) {
            dlclose(library);
            memset(nvtx.places, 0, sizeof(nvtx.places));
        }
        nvtx.attached = !rc && calls[NVTX_RANGE_START].call && calls[NVTX_RANGE_END].call;
        if (nvtx.attached && calls[NVTX_DOMAIN_CREATE].call)
            nvtx.domain = ((nvtx_create_fn *)calls[NVTX_DOMAIN_CREATE].call)(NVTX_OURS);
    }
    rc = nvtx.why.code;
    if (rc)
        err_set(err, rc, "%s", nvtx.why.text);
    else
        *ret_attached = nvtx.attached;
    pthread_mutex_unlock(&nvtx.lock);
    return rc;
}

/* Begins a range in the profiler, and returns its id for nvtx_end. */
uint64_t nvtx_start(const char *text, uint64_t payload)
{
    const struct nvtx_event event = { .version = NVTX_VERSION_3,
                                      .bytes = sizeof(event),
                                      .payload_type = NVTX_UINT64,
                                      .payload = payload,
                                      .text_type = NVTX_ASCII,
                                      .text = text };

    return ((nvtx_start_fn *)nvtx.places[NVTX_DOMAINS][NVTX_RANGE_START].call)(nvtx.domain, &event);
}

/* Ends the range with the id that nvtx_start has returned. */
void nvtx_end(uint64_t id)
{
    ((nvtx_end_fn *)nvtx.places[NVTX_DOMAINS][NVTX_RANGE_END].call)(nvtx.domain, id);
}
