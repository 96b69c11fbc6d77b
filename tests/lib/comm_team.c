/*
 * comm_team.c: the NCCL threads and communicators of comm_team.h, over the stand-ins.
 */
#include "tests/lib/comm_team.h"

#include "os/clock.h"
#include "tests/lib/fake_gpu.h"

#include <stdlib.h>
#include <string.h>

static void note_stuck(void *arg, const char *why)
{
    atomic_uint *stuck = arg;

    if (!why[0])
        abort();
    atomic_fetch_add(stuck, 1);
}

static int open_member(struct comm_team *team, uint32_t rank, int64_t bound_us)
{
    struct hvd_err *err = &team->err[rank];
    struct nccl_thread_options options = { .bound_us = bound_us ? bound_us : COMM_TEAM_LONG_US,
                                           .stuck = note_stuck,
                                           .arg = &team->stuck[rank] };
    int rc = gpu_device_get((int)rank, &options.device, err);

    team->devices[rank] = options.device;
    return rc ? rc : nccl_thread_open(&options, &team->threads[rank], err);
}

static bool use_old;

void comm_team_use_old(void)
{
    use_old = true;
}

int comm_team_open(struct comm_team *team, uint32_t size, int64_t bound_us)
{
    int rc;

    memset(team, 0, sizeof(*team));
    fake_gpu_use(COMM_TEAM_MAX);
    if (use_old)
        setenv("HVD_NCCL_LIBRARY", FAKE_OLD_NCCL, 1);
    rc = cuda_open(&team->cuda, &team->err[0]);
    if (rc)
        return rc;
    fake_gpu_faults(NULL);
    team->size = size;
    for (uint32_t i = 0; i < size && !rc; i++)
        rc = open_member(team, i, bound_us);
    return rc;
}

void comm_team_part(struct comm_team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        comm_free(team->comms[i]);
        team->comms[i] = NULL;
    }
    for (uint32_t i = 0; i < team->size; i++)
        if (team->threads[i])
            nccl_thread_agreed(team->threads[i], UINT64_MAX);
}

void comm_team_close(struct comm_team *team)
{
    comm_team_part(team);
    for (uint32_t i = 0; i < team->size; i++)
        nccl_thread_close(team->threads[i]);
    team->size = 0;
}

int comm_team_begin(struct comm_team *team)
{
    struct comm_spec spec = { .size = team->size };
    int rc = comm_make_id(team->threads[0], &spec.id, &team->err[0]);

    for (spec.rank = 0; spec.rank < team->size && !rc; spec.rank++)
        rc = comm_begin(team->threads[spec.rank], &spec, &team->comms[spec.rank],
                        &team->err[spec.rank]);
    return rc;
}

int comm_team_make(struct comm_team *team)
{
    int rc = comm_team_begin(team);

    for (uint32_t i = 0; i < team->size && !rc; i++)
        if (comm_await(team->comms[i], clock_now_us() + COMM_TEAM_LONG_US) != COMM_READY)
            rc = HVD_E_TIMEOUT;
    return rc;
}

void comm_team_revoke(struct comm_team *team)
{
    for (uint32_t i = 0; i < team->size; i++)
        if (team->comms[i])
            comm_revoke(team->comms[i]);
}

static void act_one(void *arg, uint32_t rank)
{
    struct comm_team *team = arg;

    team->act(team, rank);
    if (team->rc[rank])
        comm_team_revoke(team);
}

void comm_team_start(struct comm_team *team, comm_act_fn *act)
{
    team->act = act;
    threads_start(&team->acting, team->size, team->away, act_one, team);
}

bool comm_team_await_until(struct comm_team *team, int64_t until_us)
{
    return threads_await_until(&team->acting, until_us);
}

void comm_team_await(struct comm_team *team)
{
    threads_await(&team->acting);
}

void comm_team_run(struct comm_team *team, comm_act_fn *act)
{
    comm_team_start(team, act);
    comm_team_await(team);
}

/* ---- memory of the devices ------------------------------------------------------------------- */

int comm_team_put(struct comm_team *team, uint32_t rank, void *to, const void *from, size_t bytes)
{
    int code = 0;
    int rc = gpu_enter(team->devices[rank], NULL);

    if (rc)
        return rc;
    if (bytes)
        code = team->cuda->to_device((cuda_address)(uintptr_t)to, from, bytes, NULL);
    if (!code)
        code = team->cuda->stream_sync(NULL);
    gpu_leave(team->devices[rank]);
    return cuda_judge(team->cuda, code, "to the device", NULL);
}

int comm_team_get(struct comm_team *team, uint32_t rank, void *to, const void *from, size_t bytes)
{
    int code = 0;
    int rc = gpu_enter(team->devices[rank], NULL);

    if (rc)
        return rc;
    if (bytes)
        code = team->cuda->to_host(to, (cuda_address)(uintptr_t)from, bytes, NULL);
    if (!code)
        code = team->cuda->stream_sync(NULL);
    gpu_leave(team->devices[rank]);
    return cuda_judge(team->cuda, code, "to the host", NULL);
}
