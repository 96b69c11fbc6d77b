#include "tests/lib/hand_crew.h"

#include "os/clock.h"
#include "os/thread.h"
#include "tests/lib/fake_gpu.h"

#include <stdlib.h>
#include <string.h>

/* ---- the crew -------------------------------------------------------------------------------- */

static void note_stuck(void *arg, const char *why)
{
    struct hand_seat *seat = arg;

    if (!why[0])
        abort();
    atomic_fetch_add(&seat->stuck, 1);
}

static int open_seat(struct hand_crew *crew, uint32_t rank, int64_t bound_us)
{
    struct hvd_err *err = &crew->err[rank];
    struct hand_options options = { .bound_us = bound_us ? bound_us : HAND_CREW_LONG_US,
                                    .stuck = note_stuck,
                                    .arg = &crew->seats[rank] };
    int rc = gpu_device_get((int)rank, &options.device, err);

    crew->devices[rank] = options.device;
    return rc ? rc : hand_open(&options, &crew->hands[rank], err);
}

static bool use_old;

void hand_crew_use_old(void)
{
    use_old = true;
}

int hand_crew_open(struct hand_crew *crew, uint32_t size, int64_t bound_us)
{
    int rc;

    memset(crew, 0, sizeof(*crew));
    pthread_mutex_init(&crew->mutex, NULL);
    if (thread_cond_init(&crew->acted))
        abort();
    fake_gpu_use(HAND_CREW_MAX);
    if (use_old)
        setenv("HVD_NCCL_LIBRARY", FAKE_OLD_NCCL, 1);
    rc = cuda_open(&crew->cuda, &crew->err[0]);
    if (rc)
        return rc;
    fake_gpu_faults(NULL);
    crew->size = size;
    for (uint32_t i = 0; i < size && !rc; i++)
        rc = open_seat(crew, i, bound_us);
    return rc;
}

void hand_crew_part(struct hand_crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        comm_free(crew->comms[i]);
        crew->comms[i] = NULL;
    }
    for (uint32_t i = 0; i < crew->size; i++)
        if (crew->hands[i])
            hand_agreed(crew->hands[i], UINT64_MAX);
}

void hand_crew_close(struct hand_crew *crew)
{
    hand_crew_part(crew);
    for (uint32_t i = 0; i < crew->size; i++)
        hand_close(crew->hands[i]);
    crew->size = 0;
}

int hand_crew_begin(struct hand_crew *crew)
{
    struct comm_spec spec = { .size = crew->size };
    int rc = comm_make_id(crew->hands[0], &spec.id, &crew->err[0]);

    for (spec.rank = 0; spec.rank < crew->size && !rc; spec.rank++)
        rc = comm_begin(crew->hands[spec.rank], &spec, &crew->comms[spec.rank],
                        &crew->err[spec.rank]);
    return rc;
}

int hand_crew_make(struct hand_crew *crew)
{
    int rc = hand_crew_begin(crew);

    for (uint32_t i = 0; i < crew->size && !rc; i++)
        if (comm_await(crew->comms[i], clock_now_us() + HAND_CREW_LONG_US) != COMM_READY)
            rc = HVD_E_TIMEOUT;
    return rc;
}

void hand_crew_revoke(struct hand_crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++)
        if (crew->comms[i])
            comm_revoke(crew->comms[i]);
}

static void *play(void *arg)
{
    struct hand_seat *seat = arg;

    seat->crew->act(seat->crew, seat->rank);
    if (seat->crew->rc[seat->rank])
        hand_crew_revoke(seat->crew);
    pthread_mutex_lock(&seat->crew->mutex);
    seat->crew->acting--;
    pthread_cond_broadcast(&seat->crew->acted);
    pthread_mutex_unlock(&seat->crew->mutex);
    return NULL;
}

void hand_crew_start(struct hand_crew *crew, hand_act_fn *act)
{
    crew->act = act;
    crew->acting = 0;
    for (uint32_t i = 0; i < crew->size; i++)
        crew->acting += !crew->away[i];
    for (uint32_t i = 0; i < crew->size; i++) {
        struct hand_seat *seat = &crew->seats[i];

        seat->crew = crew;
        seat->rank = i;
        if (!crew->away[i] && pthread_create(&seat->thread, NULL, play, seat))
            abort();
    }
}

bool hand_crew_await_until(struct hand_crew *crew, int64_t until_us)
{
    bool late = false;
    bool all;

    pthread_mutex_lock(&crew->mutex);
    while (crew->acting && !late)
        late = thread_cond_wait(&crew->acted, &crew->mutex, until_us);
    all = !crew->acting;
    pthread_mutex_unlock(&crew->mutex);
    return all;
}

void hand_crew_await(struct hand_crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++)
        if (!crew->away[i])
            pthread_join(crew->seats[i].thread, NULL);
}

void hand_crew_run(struct hand_crew *crew, hand_act_fn *act)
{
    hand_crew_start(crew, act);
    hand_crew_await(crew);
}

/* ---- memory of the devices ------------------------------------------------------------------- */

int hand_crew_alloc(struct hand_crew *crew, uint32_t rank, size_t bytes, void **ret_at)
{
    cuda_address at = 0;
    int rc = gpu_enter(crew->devices[rank], NULL);

    if (rc)
        return rc;
    rc = cuda_judge(crew->cuda, crew->cuda->memory_alloc(&at, bytes ? bytes : 1), "memory", NULL);
    gpu_leave(crew->devices[rank]);
    *ret_at = (void *)(uintptr_t)at;
    return rc;
}

void hand_crew_free(struct hand_crew *crew, uint32_t rank, void *at)
{
    if (!at || gpu_enter(crew->devices[rank], NULL))
        return;
    (void)crew->cuda->memory_free((cuda_address)(uintptr_t)at);
    gpu_leave(crew->devices[rank]);
}

int hand_crew_put(struct hand_crew *crew, uint32_t rank, void *to, const void *from, size_t bytes)
{
    int code = 0;
    int rc = gpu_enter(crew->devices[rank], NULL);

    if (rc)
        return rc;
    if (bytes)
        code = crew->cuda->to_device((cuda_address)(uintptr_t)to, from, bytes, NULL);
    if (!code)
        code = crew->cuda->stream_sync(NULL);
    gpu_leave(crew->devices[rank]);
    return cuda_judge(crew->cuda, code, "to the device", NULL);
}

int hand_crew_get(struct hand_crew *crew, uint32_t rank, void *to, const void *from, size_t bytes)
{
    int code = 0;
    int rc = gpu_enter(crew->devices[rank], NULL);

    if (rc)
        return rc;
    if (bytes)
        code = crew->cuda->to_host(to, (cuda_address)(uintptr_t)from, bytes, NULL);
    if (!code)
        code = crew->cuda->stream_sync(NULL);
    gpu_leave(crew->devices[rank]);
    return cuda_judge(crew->cuda, code, "to the host", NULL);
}
