#include "bench/gpu/team.h"

#include "gpu/library.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STANDIN_SIGN     "standin_memory" /* what the stand-in of tests/ has, and no driver */
#define AFTER_FAILURE_US INT64_C(3000000)

int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void nap_us(int64_t us)
{
    struct timespec nap = { us / 1000000, us % 1000000 * 1000 };

    nanosleep(&nap, NULL);
}

/* ---- a member -------------------------------------------------------------------------------- */

void member_fail(struct member *member, const char *what, const char *why)
{
    char name[FIGURE_NAME_MAX];

    snprintf(name, sizeof(name), "rank %u failed", member->rank);
    figure_say(&member->page->figures, member->question, name, member->size, "%s: %s", what, why);
    _exit(1);
}

void member_must_cuda(struct member *member, int code, const char *what)
{
    const char *name = NULL;

    if (code == CUDA_OK)
        return;
    if (member->cuda->error_name(code, &name) || !name)
        name = "an unknown error";
    member_fail(member, what, name);
}

void member_must_nccl(struct member *member, int code, const char *what)
{
    char why[256];

    if (code == NCCL_OK || code == NCCL_IN_PROGRESS)
        return;
    snprintf(why, sizeof(why), "%s; %s", member->nccl->result_text(code),
             member->nccl->last_error(NULL));
    member_fail(member, what, why);
}

void member_gate(struct member *member)
{
    _Atomic uint32_t *arrived = &member->page->arrived;
    int64_t until_us = now_us() + TEAM_WAIT_S * INT64_C(1000000);
    uint32_t wanted = ++member->arrivals * member->size;

    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < wanted) {
        if (now_us() > until_us)
            member_fail(member, "the others", "they have not come");
        nap_us(20);
    }
}

void member_add(struct member *member, const char *name, const char *unit, double value)
{
    figure_add(&member->page->figures, member->question, name, member->size, unit, value);
}

/* Each process has a device of its own, as far as there are. */
static void open_device(struct member *member)
{
    struct hvd_err err = { .text = "" };
    int ordinal = (int)(member->rank % member->page->found.devices);
    cuda_address at = 0;

    if (gpu_device_get(ordinal, &member->device, &err) || gpu_enter(member->device, &err) ||
        (member->page->found.nccl && nccl_open(&member->nccl, &err)))
        member_fail(member, "the device", err.text);
    member->cuda = member->device->cuda;
    member_must_cuda(member,
                     member->cuda->stream_create(&member->stream, CUDA_STREAM_NON_BLOCKING, 0),
                     "a stream");
    member_must_cuda(member, member->cuda->memory_alloc(&at, MEMBER_NUMBERS * sizeof(float)),
                     "device memory");
    member->data = (float *)(uintptr_t)at;
    member_must_cuda(member,
                     member->cuda->fill(at, 0, MEMBER_NUMBERS * sizeof(float), member->stream),
                     "device memory");
    member_must_cuda(member, member->cuda->stream_sync(member->stream), "device memory");
}

static void set(const char *name, const char *value)
{
    if (setenv(name, value, 0))
        _exit(1);
}

static void be_a_host(uint32_t rank)
{
    char id[32];

    snprintf(id, sizeof(id), "bench-%u", rank);
    set("NCCL_HOSTID", id);
    set("NCCL_NET", "Socket");
    set("NCCL_SOCKET_IFNAME", "lo");
    set("NCCL_IB_DISABLE", "1");
    set("NCCL_NVLS_ENABLE", "0");
    set("NCCL_MAX_CTAS", "2");
}

NORETURN static void live(const struct team *team, uint32_t rank)
{
    struct member member = { .page = team->page,
                             .options = team->options,
                             .rank = rank,
                             .size = team->size,
                             .question = team->question };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set("NCCL_RAS_ENABLE", "0");
    set("CUDA_MODULE_LOADING", "LAZY");
    if (team->page->found.devices < team->size && !team->as_it_is)
        be_a_host(rank);
    open_device(&member);
    team->live(&member);
    _exit(0); /* what is left of NCCL could wait for who is gone */
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct team_page *team_page_create(void)
{
    struct team_page *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        perror("memory for what is measured");
        exit(1);
    }
    return page;
}

static bool is_standin(void)
{
    static const struct library_call sign = { STANDIN_SIGN, 0, false };
    static const struct library_spec spec = { "CUDA", "libcuda.so.1", "HVD_CUDA_LIBRARY", &sign,
                                              1 };
    void *at = NULL;

    return !library_find(&spec, false, &at, NULL);
}

NORETURN static void look(struct team_found *found)
{
    const struct cuda *cuda = NULL;
    const struct nccl *nccl = NULL;
    const struct gpu_device *device = NULL;
    struct hvd_err err = { .text = "" };
    int count = 0;

    if (!cuda_open(&cuda, &err) && !gpu_device_get(0, &device, &err) &&
        !cuda->device_count(&count)) {
        found->cuda_version = cuda->driver_version;
        memcpy(found->device, device->name, sizeof(found->device));
        found->standin = is_standin();
        found->nccl = !nccl_open(&nccl, &err);
        if (found->nccl)
            found->nccl_version = nccl->version;
    }
    snprintf(found->why, sizeof(found->why), "%s", err.text);
    found->devices = (uint32_t)count;
    _exit(0);
}

void team_look(struct team_page *page)
{
    pid_t pid = fork();

    if (pid == 0)
        look(&page->found);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (!page->found.devices && !page->found.why[0])
        snprintf(page->found.why, sizeof(page->found.why), "the driver has ended the process");
}

/* How one of them has ended; false: it has not, yet. */
static bool has_ended(struct team *team, uint32_t rank, int *ret_status)
{
    if (team->pids[rank] > 0 && waitpid(team->pids[rank], ret_status, WNOHANG) == 0)
        return false;
    team->pids[rank] = 0;
    return true;
}

static void kill_late(struct team *team, const char *name, int seconds)
{
    uint32_t late = 0;

    for (uint32_t rank = 0; rank < team->size; rank++) {
        if (team->pids[rank] <= 0)
            continue;
        kill(team->pids[rank], SIGKILL);
        waitpid(team->pids[rank], NULL, 0);
        team->pids[rank] = 0;
        late++;
    }
    figure_say(&team->page->figures, team->question, name, team->size,
               "%u of %u had not ended after %d s, and were killed", late, team->size, seconds);
}

static bool await_ends(struct team *team, const char *name, int seconds, const pid_t *struck)
{
    int64_t until_us = now_us() + seconds * INT64_C(1000000);
    uint32_t ended = 0;
    bool well = true;

    while (ended < team->size) {
        ended = 0;
        for (uint32_t rank = 0; rank < team->size; rank++) {
            int status = 0;
            bool was_there = team->pids[rank] > 0;

            if (!has_ended(team, rank, &status))
                continue;
            ended++;
            if (was_there && status && struck[rank] != -1 && well) {
                well = false; /* the others wait for it, and it will not come */
                until_us = now_us() + AFTER_FAILURE_US;
            }
        }
        if (ended < team->size && now_us() > until_us) {
            kill_late(team, name, seconds);
            return false;
        }
        nap_us(1000);
    }
    return well;
}

bool team_run(struct team *team, const char *name, int seconds, team_strike_fn *strike)
{
    pid_t struck[TEAM_MAX] = { 0 };

    atomic_store(&team->page->arrived, 0);
    atomic_store(&team->page->at_work, 0);
    atomic_store(&team->page->enough, 0);
    atomic_store(&team->page->struck_us, 0);
    fflush(NULL);
    for (uint32_t rank = 0; rank < team->size; rank++) {
        team->pids[rank] = fork();
        if (team->pids[rank] == 0)
            live(team, rank);
        if (team->pids[rank] < 0)
            perror("a process");
    }
    if (strike) {
        strike(team);
        struck[team->size - 1] = -1; /* it is always the last one */
    }
    return await_ends(team, name, seconds, struck);
}
