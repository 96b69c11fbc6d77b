/*
 * test_nvtx.c: timeline/nvtx: the library of tests/standin/nvtx_recorder.c writes down what a
 * profiler would be told. A process attaches to a library once, so each case has a child that does,
 * and the parent reads what the child left behind. The binary interface is compared with NVIDIA's
 * own library and header where these are installed; elsewhere that is printed.
 */
#include "timeline/nvtx.h"

#include "os/clock.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"
#include "timeline/timeline.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HVD_HAS_NVTX_H
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(NVTX_CORE, NVTX_CB_MODULE_CORE);
SAME(NVTX_CUDA, NVTX_CB_MODULE_CUDA);
SAME(NVTX_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(NVTX_CUDA_RUNTIME, NVTX_CB_MODULE_CUDART);
SAME(NVTX_DOMAINS, NVTX_CB_MODULE_CORE2);
SAME(NVTX_SYNC, NVTX_CB_MODULE_SYNC);
SAME(NVTX_RANGE_START, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(NVTX_RANGE_END, NVTX_CBID_CORE2_DomainRangeEnd);
SAME(NVTX_DOMAIN_CREATE, NVTX_CBID_CORE2_DomainCreateA);
SAME(NVTX_EXPORT_CALLS, NVTX_ETID_CALLBACKS);
SAME(NVTX_EXPORT_VERSION, NVTX_ETID_VERSIONINFO);
SAME(NVTX_VERSION_3, NVTX_VERSION);
SAME(NVTX_UINT64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(NVTX_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(sizeof(struct nvtx_event), sizeof(nvtxEventAttributes_t));
SAME(offsetof(struct nvtx_event, version), offsetof(nvtxEventAttributes_t, version));
SAME(offsetof(struct nvtx_event, bytes), offsetof(nvtxEventAttributes_t, size));
SAME(offsetof(struct nvtx_event, payload_type), offsetof(nvtxEventAttributes_t, payloadType));
SAME(offsetof(struct nvtx_event, payload), offsetof(nvtxEventAttributes_t, payload));
SAME(offsetof(struct nvtx_event, text_type), offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(struct nvtx_event, text), offsetof(nvtxEventAttributes_t, message));
SAME(sizeof(struct nvtx_calls), sizeof(NvtxExportTableCallbacks));
SAME(sizeof(struct nvtx_version), sizeof(NvtxExportTableVersionInfo));
#define HEADER "the same as in NVIDIA's header\n"
#else
#define HEADER "skipped: nvtx3/nvToolsExt.h is not installed here (name its folder in NVTX_HOME)\n"
#endif

enum { CHILD_OK, CHILD_NO_RANGES, CHILD_REFUSED, CHILD_NO_MEMORY, CHILD_SKIPPED };
enum { WRITERS = 4, RANGES = 200 };

typedef int child_fn(const char *folder);

/* ---- what children do ---- */

/* Writes the error, so that the parent reads it where a record would be. */
static int child_attach(const char *folder)
{
    struct hvd_err err;
    char path[256];
    bool attached = false;
    FILE *file;

    if (!nvtx_attach(&attached, &err))
        return attached ? CHILD_OK : CHILD_NO_RANGES;
    snprintf(path, sizeof(path), "%s/%ld", folder, (long)getpid());
    file = fopen(path, "w");
    if (!file || fputs(err.text, file) < 0 || fclose(file))
        abort();
    return CHILD_REFUSED;
}

static int child_shows(const char *folder)
{
    uint64_t round, allreduce;
    int rc = child_attach(folder);

    if (rc)
        return rc;
    round = nvtx_start("round 7", 0);
    allreduce = nvtx_start("allreduce", UINT64_MAX);
    nvtx_end(round); /* ranges may overlap */
    nvtx_end(allreduce);
    return child_attach(folder); /* a second worker of the process: nothing is loaded again */
}

static void *write_ranges(void *arg)
{
    (void)arg;
    for (int i = 0; i < RANGES; i++)
        nvtx_end(nvtx_start("allreduce", 4));
    return NULL;
}

static int child_many(const char *folder)
{
    pthread_t threads[WRITERS];
    int rc = child_attach(folder);

    for (size_t i = 0; i < WRITERS; i++) {
        if (pthread_create(&threads[i], NULL, write_ranges, NULL))
            abort();
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    return rc;
}

/* Through a timeline, which is on or off; `ranges` false shows nothing. */
static int child_timeline(const char *folder)
{
    const struct timeline_options options = { .process = 1,
                                              .ranges = !getenv("HVD_DISABLE_NVTX_RANGES") };
    struct timeline_file file = { .job = "j", .job_began_us = 1 };
    struct timeline *timeline;
    uint64_t range;
    char path[256];
    bool has;
    int rc = 0;

    snprintf(path, sizeof(path), "%s.json", folder);
    file.path = path;
    if (timeline_create(&options, &timeline))
        return CHILD_NO_MEMORY;
    has = timeline_has_ranges(timeline);
    range = timeline_begin_range(timeline, 12, "commit %d.%s%0*d", 3, "1", TIMELINE_RANGE_MAX, 0);
    rc = timeline_start(timeline, &file, NULL);
    timeline_end_range(timeline, range);
    timeline_free(timeline);
    range = timeline_begin_range(NULL, 0, "nothing"); /* a worker without a timeline */
    timeline_end_range(NULL, range);
    return rc ? CHILD_NO_MEMORY : has ? CHILD_OK : CHILD_NO_RANGES;
}

/* A framework of the process that has NVIDIA's library. */
static int child_beside(const char *folder)
{
    const struct nvtx_event event = { .version = 2,
                                      .bytes = sizeof(event),
                                      .payload_type = NVTX_UINT64,
                                      .payload = 5,
                                      .text_type = NVTX_ASCII,
                                      .text = "theirs" };
    const char *named = getenv("HVD_NVTX_LIBRARY");
    void *library = dlopen(named ? named : "libnvtx3interop.so.1", RTLD_NOW);
    int (*push)(const char *), (*pop)(void);
    nvtx_create_fn *create;
    nvtx_start_fn *start;
    nvtx_end_fn *end;
    uint64_t ours, theirs;
    struct nvtx_domain *domain;
    int rc = 0;

    if (!library && !named)
        library = dlopen("libnvToolsExt.so.1", RTLD_NOW); /* NVTX 2 */
    if (!library)
        return CHILD_SKIPPED;
    *(void **)&push = dlsym(library, "nvtxRangePushA");
    *(void **)&pop = dlsym(library, "nvtxRangePop");
    *(void **)&create = dlsym(library, "nvtxDomainCreateA");
    *(void **)&start = dlsym(library, "nvtxDomainRangeStartEx");
    *(void **)&end = dlsym(library, "nvtxDomainRangeEnd");
    push("step of the program");
    rc = child_attach(folder);
    if (rc)
        return rc;
    ours = nvtx_start("allreduce", 8);
    domain = create("program");
    theirs = start(domain, &event);
    pop();
    nvtx_end(ours);
    end(domain, theirs);
    return 0;
}

/* ---- cases ---- */

struct record {
    char folder[200];
    char text[64 * 1024];
    int code;
};

/* Runs a child that is given this library; how: NVTX_RECORDER. Reads what the child wrote. */
static void run_child(struct record *record, struct test *t, const char *library, const char *how,
                      child_fn *body)
{
    char path[256];
    int status = 0;
    FILE *file;
    pid_t child;

    *record = (struct record){ .code = -1 };
    snprintf(record->folder, sizeof(record->folder), "%s", test_dir(t));
    fflush(NULL);
    child = fork();
    if (child == 0) {
        setenv("NVTX_RECORD", record->folder, 1);
        setenv("NVTX_RECORDER", how, 1);
        if (library)
            setenv(NVTX_VARIABLE, library, 1);
        else
            unsetenv(NVTX_VARIABLE);
        _exit(body(record->folder));
    }
    CHECK(t, child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    record->code = WEXITSTATUS(status);
    snprintf(path, sizeof(path), "%s/%ld", record->folder, (long)child);
    file = fopen(path, "r");
    if (file) {
        record->text[fread(record->text, 1, sizeof(record->text) - 1, file)] = 0;
        fclose(file);
    }
}

/* How often the text has this line. */
static int lines(const struct record *record, const char *line)
{
    const char *at = record->text;
    int found = 0;

    while ((at = strstr(at, line))) {
        found += at == record->text || at[-1] == '\n';
        at++;
    }
    return found;
}

TEST(ranges_reach_a_profiler_with_their_bytes)
{
    static struct record record;

    run_child(&record, t, RECORDER, "", child_shows);
    CHECK_INT(t, record.code, ==, CHILD_OK);
    CHECK_TEXT(t, record.text,
               "attached 3\n"
               "domain 1 hvd\n"
               "start 2 1 0 round 7\n"
               "start 3 1 18446744073709551615 allreduce\n"
               "end 2 1\n"
               "end 3 1\n");
}

TEST(a_profiler_without_domains_gets_ranges_too)
{
    static struct record record;

    run_child(&record, t, RECORDER, "domains", child_shows);
    CHECK_INT(t, record.code, ==, CHILD_OK);
    CHECK_TEXT(t, record.text,
               "attached 3\n"
               "start 0 0 0 round 7\n"
               "start 0 0 18446744073709551615 allreduce\n"
               "end 0 0\n"
               "end 0 0\n");
}

TEST(threads_may_show_ranges_at_once)
{
    static struct record record;

    run_child(&record, t, RECORDER, "", child_many);
    CHECK_INT(t, record.code, ==, CHILD_OK);
    CHECK_INT(t, lines(&record, "start "), ==, WRITERS * RANGES);
    CHECK_INT(t, lines(&record, "end "), ==, WRITERS * RANGES);
}

TEST(without_a_profiler_nothing_is_loaded)
{
    static struct record record;

    run_child(&record, t, NULL, "", child_attach);
    CHECK_INT(t, record.code, ==, CHILD_NO_RANGES);
    run_child(&record, t, "", "", child_attach);
    CHECK_INT(t, record.code, ==, CHILD_NO_RANGES);
    CHECK_TEXT(t, record.text, "");
    run_child(&record, t, RECORDER, "nothing", child_attach);
    CHECK_INT(t, record.code, ==, CHILD_NO_RANGES);
    CHECK_TEXT(t, record.text, "attached 3\n");
}

TEST(a_profiler_that_cannot_be_used_is_named)
{
    static struct record record;

    run_child(&record, t, "/none/profiler.so", "", child_shows);
    CHECK_INT(t, record.code, ==, CHILD_REFUSED);
    CHECK_HAS(t, record.text,
              "NVTX_INJECTION64_PATH names \"/none/profiler.so\": cannot open shared ");
    CHECK_HAS(t, record.text, "No such file");
    CHECK_HAS(t, record.text,
              "; the profiler shows no ranges of hvd-elastic; correct the variable, or unset it");
    run_child(&record, t, "libpthread.so.0", "", child_shows);
    CHECK_INT(t, record.code, ==, CHILD_REFUSED);
    CHECK_TEXT(t, record.text,
               "NVTX_INJECTION64_PATH names \"libpthread.so.0\": the library has no function "
               "InitializeInjectionNvtx2; "
               "the profiler shows no ranges of hvd-elastic; correct the variable, or unset it");
    run_child(&record, t, RECORDER, "refuses", child_shows);
    CHECK_INT(t, record.code, ==, CHILD_REFUSED);
    CHECK_HAS(t, record.text, ": the library did not start; the profiler shows no ranges");
}

TEST(a_timeline_shows_ranges_whether_it_is_on_or_off)
{
    static struct record record;

    run_child(&record, t, RECORDER, "", child_timeline);
    if (record.code == CHILD_NO_MEMORY)
        return; /* torture */
    CHECK_INT(t, record.code, ==, CHILD_OK);
    CHECK_HAS(t, record.text, "start 2 1 12 commit 3.10000");
    CHECK_INT(t, (int)strlen(strstr(record.text, "commit")), ==,
              TIMELINE_RANGE_MAX + (int)strlen("\nend 2 1\n"));
    setenv("HVD_DISABLE_NVTX_RANGES", "1", 1);
    run_child(&record, t, RECORDER, "", child_timeline);
    unsetenv("HVD_DISABLE_NVTX_RANGES");
    CHECK_INT(t, record.code, ==, CHILD_NO_RANGES);
    CHECK_TEXT(t, record.text, "");
}

TEST(the_interface_is_that_of_nvidias_library)
{
    static struct record record;

    printf(HEADER);
    run_child(&record, t, RECORDER, "", child_beside);
    if (record.code == CHILD_SKIPPED) {
        printf(
            "skipped: neither libnvtx3interop.so.1 nor libnvToolsExt.so.1 is installed here; the "
            "wheels nvidia-nvtx-cu12 12.9.79 and 12.1.105 have them, HVD_NVTX_LIBRARY names one\n");
        return;
    }
    CHECK_INT(t, record.code, ==, CHILD_OK);
    CHECK(t, !strncmp(record.text, "attached ", strlen("attached "))); /* by NVTX 2, or 3 */
    CHECK_TEXT(t, strchr(record.text, '\n'),
               "\n"
               "push step of the program\n"
               "attached 3\n"
               "domain 1 hvd\n"
               "start 2 1 8 allreduce\n"
               "domain 3 program\n"
               "start 4 3 5 theirs\n"
               "pop\n"
               "end 2 1\n"
               "end 4 3\n");
}
