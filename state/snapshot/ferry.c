#include "state/snapshot/ferry.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>

#define PIECES_AHEAD 8 /* on their way to the host at the same time */

/* Two buffers, at the worst with a pin for each chunk. */
#define PINS_MAX (2 * LIMIT_STATE_CHUNKS)

/* Pieces on their way to the host: those from landed to next. */
struct row {
    ferry_queue_fn *queue;
    void *arg;
    uint64_t next, end;
    _Atomic uint64_t landed; /* written under the lock; all before it have */
    struct CUevent_st *events[PIECES_AHEAD];
};

struct ferry {
    const struct gpu_device *device;
    const struct cuda *cuda;
    struct CUstream_st *near, *far;
    struct CUevent_st *mark;
    struct VEC(void *) pins;
    const void *met[2];
    pthread_mutex_t lock; /* of what follows */
    struct hvd_err why;   /* what has gone wrong first; code 0: nothing */
    struct row row;
};

/* ---- life ------------------------------------------------------------------------------------ */

static int make_events(struct ferry *ferry)
{
    const unsigned flags = CUDA_EVENT_BLOCKING | CUDA_EVENT_UNTIMED;
    int code = ferry->cuda->event_create(&ferry->mark, flags);

    for (size_t i = 0; i < PIECES_AHEAD && !code; i++)
        code = ferry->cuda->event_create(&ferry->row.events[i], flags);
    return code;
}

static int make(struct ferry *ferry)
{
    const struct cuda *cuda = ferry->cuda;
    int least = 0;
    int greatest = 0;
    int code = cuda->stream_priorities(&least, &greatest);

    if (!code)
        code = cuda->stream_create(&ferry->near, CUDA_STREAM_NON_BLOCKING, greatest);
    if (!code)
        code = cuda->stream_create(&ferry->far, CUDA_STREAM_NON_BLOCKING, least);
    return code ? code : make_events(ferry);
}

int ferry_open(const struct gpu_device *device, struct ferry **ret_ferry, struct hvd_err *err)
{
    struct ferry *ferry = mem_zalloc(sizeof(*ferry));
    int rc;

    if (!ferry)
        return err_set(err, HVD_E_NOMEM, "no memory to copy from a device");
    ferry->device = device;
    ferry->cuda = device->cuda;
    pthread_mutex_init(&ferry->lock, NULL);
    rc = gpu_enter(device, err);
    if (!rc) {
        rc = cuda_judge(ferry->cuda, make(ferry), device->name, err);
        gpu_leave(device);
    }
    if (rc) {
        (void)ferry_close(ferry);
        return rc;
    }
    *ret_ferry = ferry;
    return 0;
}

static bool unpin_all(struct ferry *ferry)
{
    bool all = true;

    for (size_t i = 0; i < ferry->pins.count; i++)
        all = !ferry->cuda->unpin(ferry->pins.items[i]) && all;
    return all;
}

/* What a device that is lost answers is of no interest. */
static void take_down(struct ferry *ferry)
{
    const struct cuda *cuda = ferry->cuda;

    for (size_t i = 0; i < PIECES_AHEAD; i++)
        if (ferry->row.events[i])
            (void)cuda->event_destroy(ferry->row.events[i]);
    if (ferry->mark)
        (void)cuda->event_destroy(ferry->mark);
    if (ferry->far)
        (void)cuda->stream_destroy(ferry->far);
    if (ferry->near)
        (void)cuda->stream_destroy(ferry->near);
}

bool ferry_close(struct ferry *ferry)
{
    bool unpinned;

    if (!ferry)
        return true;
    unpinned = ferry->pins.count == 0;
    if (!gpu_enter(ferry->device, NULL)) {
        unpinned = unpin_all(ferry);
        take_down(ferry);
        gpu_leave(ferry->device);
    }
    VEC_RELEASE(&ferry->pins);
    pthread_mutex_destroy(&ferry->lock);
    mem_free(ferry);
    return unpinned;
}

const struct gpu_device *ferry_device(const struct ferry *ferry)
{
    return ferry->device;
}

/* ---- what has gone wrong --------------------------------------------------------------------- */

/* The lock is held. */
static int note(struct ferry *ferry, int code, const char *what)
{
    struct hvd_err err;
    int rc = cuda_judge(ferry->cuda, code, what, &err);

    if (rc)
        rc = err_prefix(&err, rc, "%s", ferry->device->name);
    if (rc && !ferry->why.code)
        ferry->why = err;
    return rc;
}

static int note_locking(struct ferry *ferry, int code, const char *what)
{
    int rc = 0;

    if (code) {
        pthread_mutex_lock(&ferry->lock);
        rc = note(ferry, code, what);
        pthread_mutex_unlock(&ferry->lock);
    }
    return rc;
}

static int enter(struct ferry *ferry)
{
    return ferry->cuda->context_push(ferry->device->context);
}

static void leave(struct ferry *ferry)
{
    gpu_leave(ferry->device);
}

static int judge(struct ferry *ferry, int code, const char *what, struct hvd_err *err)
{
    int rc = cuda_judge(ferry->cuda, code, what, err);

    return rc ? err_prefix(err, rc, "%s", ferry->device->name) : 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

int ferry_after(struct ferry *ferry, struct CUstream_st *stream, struct hvd_err *err)
{
    const struct cuda *cuda = ferry->cuda;
    int code = enter(ferry);

    if (!code) {
        code = cuda->event_record(ferry->mark, stream);
        if (!code)
            code = cuda->stream_wait(ferry->near, ferry->mark, 0);
        if (!code)
            code = cuda->stream_wait(ferry->far, ferry->mark, 0);
        leave(ferry);
    }
    return judge(ferry, code, "waiting for the program's stream", err);
}

int ferry_before(struct ferry *ferry, struct CUstream_st *stream, struct hvd_err *err)
{
    const struct cuda *cuda = ferry->cuda;
    int code = enter(ferry);

    if (!code) {
        code = cuda->event_record(ferry->mark, ferry->near);
        if (!code)
            code = cuda->stream_wait(stream, ferry->mark, 0);
        if (!code)
            code = cuda->stream_wait(ferry->far, ferry->mark, 0);
        leave(ferry);
    }
    return judge(ferry, code, "letting the program's stream wait", err);
}

int ferry_await(struct ferry *ferry, struct hvd_err *err)
{
    int code = enter(ferry);

    if (!code) {
        code = ferry->cuda->event_sync(ferry->mark);
        leave(ferry);
    }
    return judge(ferry, code, "what was queued before the copy", err);
}

/* ---- copies ---------------------------------------------------------------------------------- */

int ferry_move(struct ferry *ferry, cuda_address to, cuda_address from, uint64_t bytes)
{
    int code = enter(ferry);

    if (!code) {
        code = ferry->cuda->on_device(to, from, bytes, ferry->near);
        leave(ferry);
    }
    return note_locking(ferry, code, "a copy on the device");
}

int ferry_to_device(struct ferry *ferry, cuda_address to, const void *from, uint64_t bytes)
{
    int code = enter(ferry);

    if (!code) {
        code = ferry->cuda->to_device(to, from, bytes, ferry->near);
        leave(ferry);
    }
    return note_locking(ferry, code, "a copy to the device");
}

/* By queue, so the lock is held and the device entered. */
int ferry_to_host(struct ferry *ferry, void *to, cuda_address from, uint64_t bytes)
{
    int code = ferry->cuda->to_host(to, from, bytes, ferry->far);

    return note(ferry, code, "a copy to the host");
}

/* The lock is held. */
static int queue_next(struct ferry *ferry)
{
    struct row *row = &ferry->row;
    int rc;

    if (row->next == row->end)
        return 0;
    rc = row->queue(row->arg, row->next);
    if (!rc)
        rc = note(ferry,
                  ferry->cuda->event_record(row->events[row->next % PIECES_AHEAD], ferry->far),
                  "an event after a copy to the host");
    row->next++;
    return rc;
}

/* The lock is held. */
static int land(struct ferry *ferry, uint64_t piece)
{
    struct row *row = &ferry->row;
    uint64_t landed = atomic_load(&row->landed);
    int rc = ferry->why.code;

    while (!rc && landed <= piece) {
        rc = note(ferry, ferry->cuda->event_sync(row->events[landed % PIECES_AHEAD]),
                  "a copy to the host");
        if (!rc) {
            atomic_store(&row->landed, ++landed);
            rc = queue_next(ferry);
        }
    }
    return rc;
}

int ferry_begin(struct ferry *ferry, uint64_t first, uint64_t end, ferry_queue_fn *queue, void *arg)
{
    struct row *row = &ferry->row;
    int rc;

    pthread_mutex_lock(&ferry->lock);
    row->queue = queue;
    row->arg = arg;
    row->next = first;
    row->end = end;
    atomic_store(&row->landed, first);
    rc = note(ferry, enter(ferry), "entering it");
    if (!rc) {
        for (size_t i = 0; i < PIECES_AHEAD && !rc; i++)
            rc = queue_next(ferry);
        leave(ferry);
    }
    pthread_mutex_unlock(&ferry->lock);
    return rc;
}

int ferry_landed(struct ferry *ferry, uint64_t piece)
{
    int rc;

    if (atomic_load(&ferry->row.landed) > piece)
        return 0;
    pthread_mutex_lock(&ferry->lock);
    rc = note(ferry, enter(ferry), "entering it");
    if (!rc) {
        rc = land(ferry, piece);
        leave(ferry);
    }
    pthread_mutex_unlock(&ferry->lock);
    return rc;
}

int ferry_settle(struct ferry *ferry, struct hvd_err *err)
{
    int rc;

    pthread_mutex_lock(&ferry->lock);
    rc = note(ferry, enter(ferry), "entering it");
    if (!rc) {
        (void)note(ferry, ferry->cuda->stream_sync(ferry->far), "copies to the host");
        (void)note(ferry, ferry->cuda->stream_sync(ferry->near), "copies on the device");
        leave(ferry);
    }
    rc = ferry->why.code;
    if (rc && err)
        *err = ferry->why;
    ferry->why.code = 0;
    pthread_mutex_unlock(&ferry->lock);
    return rc;
}

/* ---- memory ---------------------------------------------------------------------------------- */

int ferry_alloc(struct ferry *ferry, uint64_t bytes, cuda_address *ret_at, struct hvd_err *err)
{
    int code = enter(ferry);

    if (!code) {
        code = ferry->cuda->memory_alloc(ret_at, bytes);
        leave(ferry);
    }
    return judge(ferry, code, "memory for a copy of the state", err);
}

void ferry_free(struct ferry *ferry, cuda_address at)
{
    if (!at || enter(ferry))
        return;
    (void)ferry->cuda->memory_free(at);
    leave(ferry);
}

bool ferry_meets(struct ferry *ferry, const void *buffer)
{
    for (size_t i = 0; i < ARRAY_SIZE(ferry->met); i++) {
        if (ferry->met[i] == buffer)
            return false;
        if (!ferry->met[i]) {
            ferry->met[i] = buffer;
            return true;
        }
    }
    return false;
}

void ferry_pin(struct ferry *ferry, void *at, uint64_t bytes)
{
    if (VEC_RESERVE(&ferry->pins, 1, PINS_MAX) || enter(ferry))
        return;
    if (!ferry->cuda->pin(at, bytes, 0))
        ferry->pins.items[ferry->pins.count++] = at;
    leave(ferry);
}
