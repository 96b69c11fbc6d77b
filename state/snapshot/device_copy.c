/*
 * device_copy.c: streams, events and pinned memory of the CUDA driver, for commits and restores.
 *
 * Called by copy.c (to and from the snapshot), slot.c (on the device) and worker/copier.c (waits).
 * Invariant: at most PIECES_AHEAD pieces are on their way, so an event is free again when its piece
 * has landed (arrived in host memory); a piece counts as landed only when all earlier pieces have
 * landed.
 */
#include "state/snapshot/device_copy.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdatomic.h>

#define PIECES_AHEAD 8 /* number of pieces that are copied to the host at the same time */

#define BUFFERS_MAX  3 /* buffers of a snapshot */

/* each buffer has at most one pinned range for each chunk */
#define PINS_MAX (BUFFERS_MAX * LIMIT_STATE_CHUNKS)

/* Pieces [landed, next) are being copied to the host. */
struct piece_queue {
    device_copy_queue_fn *queue; /* queues the copies of one piece, with `arg` */
    void *arg;
    uint64_t next, end;      /* the next piece to queue, and the piece after the last */
    _Atomic uint64_t landed; /* the first piece that has not landed; written under the lock */
    struct CUevent_st *events[PIECES_AHEAD]; /* event i % PIECES_AHEAD: piece i has landed */
};

struct device_copy {
    const struct gpu_device *device;
    const struct cuda *cuda;
    /* the streams for copies within and to the device, and to the host */
    struct CUstream_st *urgent, *background;
    struct CUevent_st *mark;      /* an event that marks work which other work waits for */
    struct VEC(void *) pins;      /* the addresses of the memory that was pinned */
    const void *met[BUFFERS_MAX]; /* the buffers that device_copy_meets has noted */
    pthread_mutex_t lock;         /* protects the fields below */
    struct hvd_err why; /* the first error since the last device_copy_settle; code 0: none */
    struct piece_queue pieces;
};

/* Makes the two streams and the events for copies from and to this device. The urgent stream has
 * the highest priority that the device knows, the background stream the lowest. */
int device_copy_open(const struct gpu_device *device, struct device_copy **ret_device_copy,
                     struct hvd_err *err)
{
    const unsigned flags = CUDA_EVENT_BLOCKING | CUDA_EVENT_UNTIMED;
    const struct cuda *cuda = device->cuda;
    struct device_copy *self = mem_zalloc(sizeof(*self));
    int least = 0;
    int greatest = 0;
    int rc;

    if (!self)
        return err_set(err, HVD_E_NOMEM, "no memory to copy from a GPU; free memory on this host");
    self->device = device;
    self->cuda = cuda;
    pthread_mutex_init(&self->lock, NULL);
    rc = gpu_enter(device, err);
    if (!rc) {
        int code = cuda->stream_priorities(&least, &greatest);

        if (!code)
            code = cuda->stream_create(&self->urgent, CUDA_STREAM_NON_BLOCKING, greatest);
        if (!code)
            code = cuda->stream_create(&self->background, CUDA_STREAM_NON_BLOCKING, least);
        if (!code)
            code = cuda->event_create(&self->mark, flags);
        for (size_t i = 0; i < PIECES_AHEAD && !code; i++)
            code = cuda->event_create(&self->pieces.events[i], flags);
        rc = cuda_judge(cuda, code, device->name, err);
        gpu_leave(device);
    }
    if (rc) {
        (void)device_copy_close(self);
        return rc;
    }
    *ret_device_copy = self;
    return 0;
}

/* Frees everything and unpins the memory. false: some memory could not be unpinned, so the device
 * may still write to that memory, and the caller must not unmap it. */
bool device_copy_close(struct device_copy *self)
{
    const struct cuda *cuda;
    bool unpinned;

    if (!self)
        return true;
    cuda = self->cuda;
    unpinned = self->pins.count == 0;
    if (!gpu_enter(self->device, NULL)) {
        unpinned = true;
        for (size_t i = 0; i < self->pins.count; i++)
            unpinned = !cuda->unpin(self->pins.items[i]) && unpinned;
        /* If the device is lost, these calls return errors, which change nothing here. */
        for (size_t i = 0; i < PIECES_AHEAD; i++)
            if (self->pieces.events[i])
                (void)cuda->event_destroy(self->pieces.events[i]);
        if (self->mark)
            (void)cuda->event_destroy(self->mark);
        if (self->background)
            (void)cuda->stream_destroy(self->background);
        if (self->urgent)
            (void)cuda->stream_destroy(self->urgent);
        gpu_leave(self->device);
    }
    VEC_RELEASE(&self->pins);
    pthread_mutex_destroy(&self->lock);
    mem_free(self);
    return unpinned;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Notes an error of the driver, if it is the first one. Returns the code of this error; 0: the call
 * has not failed. The lock is held. */
static int keep_error(struct device_copy *self, int code, const char *what)
{
    struct hvd_err err;
    int rc = cuda_judge(self->cuda, code, what, &err);

    if (rc)
        rc = err_prefix(&err, rc, "%s", self->device->name);
    if (rc && !self->why.code)
        self->why = err;
    return rc;
}

/* Does the same as keep_error, for callers that do not hold the lock. */
static int lock_and_keep_error(struct device_copy *self, int code, const char *what)
{
    int rc;

    if (!code)
        return 0;
    pthread_mutex_lock(&self->lock);
    rc = keep_error(self, code, what);
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Makes the device the current one of this thread, until gpu_leave. Returns the driver's code. */
static int enter_device(struct device_copy *self)
{
    return self->cuda->context_push(self->device->context);
}

/* Turns a code of the driver into an error that names the device; 0: the call has not failed. */
static int judge_order(struct device_copy *self, int code, const char *what, struct hvd_err *err)
{
    int rc = cuda_judge(self->cuda, code, what, err);

    return rc ? err_prefix(err, rc, "%s", self->device->name) : 0;
}

/* ---- the order of copies and other work ---- */

/* Makes later work of the stream `later`, and later copies to the host, wait for the work that is
 * in the stream `earlier` now. */
static int device_copy_order_streams(struct device_copy *self, struct CUstream_st *earlier,
                                     struct CUstream_st *later, const char *what,
                                     struct hvd_err *err)
{
    const struct cuda *cuda = self->cuda;
    int code = enter_device(self);

    if (!code) {
        code = cuda->event_record(self->mark, earlier);
        if (!code)
            code = cuda->stream_wait(later, self->mark, 0);
        if (!code)
            code = cuda->stream_wait(self->background, self->mark, 0);
        gpu_leave(self->device);
    }
    return judge_order(self, code, what, err);
}

/* Makes later copies wait for the work that is in the program's stream now. */
int device_copy_after(struct device_copy *self, struct CUstream_st *stream, struct hvd_err *err)
{
    return device_copy_order_streams(self, stream, self->urgent, "waiting for the program's stream",
                                     err);
}

/* Makes later work of the program's stream wait for the copies that are queued now. */
int device_copy_before(struct device_copy *self, struct CUstream_st *stream, struct hvd_err *err)
{
    return device_copy_order_streams(self, self->urgent, stream, "making the program's stream wait",
                                     err);
}

/* Waits for the work that the last device_copy_after or device_copy_before has marked with
 * self->mark. */
int device_copy_await(struct device_copy *self, struct hvd_err *err)
{
    int code = enter_device(self);

    if (!code) {
        code = self->cuda->event_sync(self->mark);
        gpu_leave(self->device);
    }
    return judge_order(self, code, "the work that was queued before the copy", err);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Queues a copy within the device, in the urgent stream. */
int device_copy_move(struct device_copy *self, cuda_address to, cuda_address from, uint64_t bytes)
{
    int code = enter_device(self);

    if (!code) {
        code = self->cuda->on_device(to, from, bytes, self->urgent);
        gpu_leave(self->device);
    }
    return lock_and_keep_error(self, code, "a copy on the device");
}

/* Queues a copy from the host to the device, in the urgent stream. */
int device_copy_to_device(struct device_copy *self, cuda_address to, const void *from,
                          uint64_t bytes)
{
    int code = enter_device(self);

    if (!code) {
        code = self->cuda->to_device(to, from, bytes, self->urgent);
        gpu_leave(self->device);
    }
    return lock_and_keep_error(self, code, "a copy to the device");
}

/* Queues a copy of a part of a piece to the host. Only the function that device_copy_begin was
 * given may call this: there the lock is held, and the device is entered. */
int device_copy_to_host(struct device_copy *self, void *to, cuda_address from, uint64_t bytes)
{
    int code = self->cuda->to_host(to, from, bytes, self->background);

    return keep_error(self, code, "a copy to the host");
}

/* Queues the copies of the next piece, if there is one. The lock is held. */
static int queue_next(struct device_copy *self)
{
    struct piece_queue *pieces = &self->pieces;
    int rc;

    if (pieces->next == pieces->end)
        return 0;
    rc = pieces->queue(pieces->arg, pieces->next);
    if (!rc)
        rc = keep_error(
            self,
            self->cuda->event_record(pieces->events[pieces->next % PIECES_AHEAD], self->background),
            "an event after a copy to the host");
    pieces->next++;
    return rc;
}

/* Begins to copy the pieces [first, end) to the host: queues the first ones. Each later piece is
 * queued when an earlier one has landed (device_copy_landed). */
int device_copy_begin(struct device_copy *self, uint64_t first, uint64_t end,
                      device_copy_queue_fn *queue, void *arg)
{
    struct piece_queue *pieces = &self->pieces;
    int rc;

    pthread_mutex_lock(&self->lock);
    pieces->queue = queue;
    pieces->arg = arg;
    pieces->next = first;
    pieces->end = end;
    atomic_store(&pieces->landed, first);
    rc = keep_error(self, enter_device(self), "entering the GPU's context");
    if (!rc) {
        for (size_t i = 0; i < PIECES_AHEAD && !rc; i++)
            rc = queue_next(self);
        gpu_leave(self->device);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Waits until this piece has landed in host memory, and queues a further piece for each one that
 * has landed. */
int device_copy_landed(struct device_copy *self, uint64_t piece)
{
    struct piece_queue *pieces = &self->pieces;
    uint64_t landed;
    int rc;

    if (atomic_load(&pieces->landed) > piece)
        return 0;
    pthread_mutex_lock(&self->lock);
    rc = keep_error(self, enter_device(self), "entering the GPU's context");
    if (!rc) {
        landed = atomic_load(&pieces->landed);
        /* an error of an earlier piece ends the wait: no later piece will land */
        rc = self->why.code;
        while (!rc && landed <= piece) {
            rc = keep_error(self, self->cuda->event_sync(pieces->events[landed % PIECES_AHEAD]),
                            "a copy to the host");
            if (!rc) {
                atomic_store(&pieces->landed, ++landed);
                rc = queue_next(self);
            }
        }
        gpu_leave(self->device);
    }
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Waits until no copy is in progress. Returns 0, or the first error since the last call, which is
 * forgotten then. */
int device_copy_settle(struct device_copy *self, struct hvd_err *err)
{
    int rc;

    pthread_mutex_lock(&self->lock);
    rc = keep_error(self, enter_device(self), "entering the GPU's context");
    if (!rc) {
        (void)keep_error(self, self->cuda->stream_sync(self->background), "copies to the host");
        (void)keep_error(self, self->cuda->stream_sync(self->urgent), "copies on the device");
        gpu_leave(self->device);
    }
    rc = self->why.code;
    if (rc && err)
        *err = self->why;
    self->why.code = 0;
    pthread_mutex_unlock(&self->lock);
    return rc;
}

/* Allocates memory of the device. */
int device_copy_alloc(struct device_copy *self, uint64_t bytes, cuda_address *ret_at,
                      struct hvd_err *err)
{
    int code = enter_device(self);

    if (!code) {
        code = self->cuda->memory_alloc(ret_at, bytes);
        gpu_leave(self->device);
    }
    return judge_order(self, code, "memory for a copy of the state", err);
}

/* Frees memory of the device. If the device cannot be used any more, nothing is freed. */
void device_copy_free(struct device_copy *self, cuda_address at)
{
    if (!at || enter_device(self))
        return;
    (void)self->cuda->memory_free(at);
    gpu_leave(self->device);
}

/* Notes a buffer of the snapshot; there are three at most. true: the buffer is new, and the caller
 * must pin it. */
bool device_copy_meets(struct device_copy *self, const void *buffer)
{
    for (size_t i = 0; i < ARRAY_SIZE(self->met); i++) {
        if (self->met[i] == buffer)
            return false;
        if (!self->met[i]) {
            self->met[i] = buffer;
            return true;
        }
    }
    return false;
}

/* Pins memory of the host, before the first copy from or to it, until device_copy_close. A failure
 * is not reported, because copies of memory that is not pinned are only slower. */
void device_copy_pin(struct device_copy *self, void *at, uint64_t bytes)
{
    if (VEC_RESERVE(&self->pins, 1, PINS_MAX) || enter_device(self))
        return;
    if (!self->cuda->pin(at, bytes, 0))
        self->pins.items[self->pins.count++] = at;
    gpu_leave(self->device);
}
