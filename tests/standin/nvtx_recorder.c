/*
 * nvtx_recorder.c: a library that a program loads as it loads a profiler's (timeline/nvtx.h), and
 * that writes down the calls it gets: a line each, in the file PID of the folder NVTX_RECORD.
 *
 *     domain ID NAME                      start ID DOMAIN PAYLOAD TEXT        push TEXT
 *     attached VERSION                    end ID DOMAIN                       pop
 *
 * NVTX_RECORDER says how it behaves otherwise: "refuses" to run, takes "nothing", or has no
 * "domains" and gives each range the number 0.
 */
#include "timeline/nvtx.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PUSH = 9, POP = 11 }; /* calls of NVTX_CORE */

static struct {
    int fd;
    bool unnumbered;
    _Atomic uint64_t id;
} recorder = { .fd = -1 };

__attribute__((format(printf, 1, 2))) static void record(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (vdprintf(recorder.fd, format, args) < 0)
        abort();
    va_end(args);
}

static struct nvtx_domain *create_domain(const char *name)
{
    uintptr_t id = (uintptr_t)(atomic_fetch_add(&recorder.id, 1) + 1);

    record("domain %" PRIuPTR " %s\n", id, name);
    return (struct nvtx_domain *)id; /* a handle of the library's own, which nothing reads */
}

static uint64_t start_range(struct nvtx_domain *domain, const struct nvtx_event *event)
{
    uint64_t id = recorder.unnumbered ? 0 : atomic_fetch_add(&recorder.id, 1) + 1;

    if (event->version < 2 || event->bytes != sizeof(*event) || event->text_type != NVTX_ASCII)
        record("torn %u %u %d\n", event->version, event->bytes, (int)event->text_type);
    else
        record("start %" PRIu64 " %" PRIuPTR " %" PRIu64 " %s\n", id, (uintptr_t)domain,
               event->payload_type == NVTX_UINT64 ? event->payload : 0, event->text);
    return id;
}

static void end_range(struct nvtx_domain *domain, uint64_t id)
{
    record("end %" PRIu64 " %" PRIuPTR "\n", id, (uintptr_t)domain);
}

static int push_range(const char *text)
{
    record("push %s\n", text);
    return 0;
}

static int pop_range(void)
{
    record("pop\n");
    return 0;
}

/* The number of calls is compared, because a program with another table may have other calls. */
static void take_call(struct nvtx_place **places, unsigned count, unsigned at, nvtx_call_fn *call)
{
    if (at >= count || places[0] || places[count])
        abort();
    places[at]->call = call;
}

__attribute__((visibility("default"))) nvtx_init_fn InitializeInjectionNvtx2;

int InitializeInjectionNvtx2(nvtx_export_fn *export)
{
    const struct nvtx_calls *calls = export(NVTX_EXPORT_CALLS);
    const struct nvtx_version *version = export(NVTX_EXPORT_VERSION);
    const char *folder = getenv("NVTX_RECORD");
    const char *how = getenv("NVTX_RECORDER");
    struct nvtx_place **core, **domains;
    unsigned core_count, domain_count;
    char path[PATH_MAX];

    how = how ? how : "";
    if (!strcmp(how, "refuses") || !folder)
        return 0;
    if (export(0) || export(99) || !calls || calls->bytes < sizeof(*calls))
        abort();
    if (recorder.fd < 0) {
        snprintf(path, sizeof(path), "%s/%ld", folder, (long)getpid());
        recorder.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    if (recorder.fd < 0 || calls->module(NVTX_MODULES, NULL, NULL) ||
        !calls->module(NVTX_CORE, &core, &core_count) ||
        !calls->module(NVTX_DOMAINS, &domains, &domain_count))
        abort();
    record("attached %u\n", version ? version->version : 2); /* NVTX 2 has no such table */
    if (version)
        version->take_version(NVTX_VERSION_3);
    recorder.unnumbered = !strcmp(how, "domains");
    if (!strcmp(how, "nothing"))
        return 1;
    take_call(core, core_count, PUSH, (nvtx_call_fn *)push_range);
    take_call(core, core_count, POP, (nvtx_call_fn *)pop_range);
    if (!recorder.unnumbered)
        take_call(domains, domain_count, NVTX_DOMAIN_CREATE, (nvtx_call_fn *)create_domain);
    take_call(domains, domain_count, NVTX_RANGE_START, (nvtx_call_fn *)start_range);
    take_call(domains, domain_count, NVTX_RANGE_END, (nvtx_call_fn *)end_range);
    return 1;
}
