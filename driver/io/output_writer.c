#include "driver/io/output_writer.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (64 * 1024)
#define LOOK_MS     100 /* how often a write that cannot go on looks whether it has to */

struct piece {
    struct list chain;
    int fd;
    char *path;       /* NULL: fd */
    struct buf bytes; /* what follows to the same place is added, up to PIECE_BYTES */
};

/* Where what is printed goes. */
enum sink { SINK_OUT, SINK_ERR, SINK_FILE, SINK_COUNT };

struct output_writer {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int err_fd;
    struct list waiting;
    size_t waiting_bytes;
    uint64_t dropped_bytes;  /* since the last that was taken */
    int64_t stop_at_us;      /* when waiting ends; TIME_NEVER: it is not stopping */
    bool warned[SINK_COUNT]; /* that it cannot be written: once, it will not be the last */
};

static void piece_free(struct piece *piece)
{
    buf_release(&piece->bytes);
    mem_free(piece->path);
    mem_free(piece);
}

static bool is_late(struct output_writer *writer)
{
    bool late;

    pthread_mutex_lock(&writer->mutex);
    late = clock_now_us() >= writer->stop_at_us;
    pthread_mutex_unlock(&writer->mutex);
    return late;
}

/* Whoever reads the other end may take his time; but the driver may have to end. 0, or the errno;
 * ETIMEDOUT when there is no more time. */
static int write_all(struct output_writer *writer, int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
        size_t part = length < PIPE_BUF ? length : PIPE_BUF; /* does not block after POLLOUT */
        bool late = is_late(writer);
        ssize_t written;

        if (poll(&poll_fd, 1, late ? 0 : LOOK_MS) == 0) {
            if (late)
                return ETIMEDOUT;
            continue;
        }
        written = write(fd, bytes, part);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

static void warn(struct output_writer *writer, enum sink sink, const char *place, int number)
{
    if (writer->warned[sink])
        return;
    writer->warned[sink] = true;
    log_warning(WORKER, "%s: cannot be written: %s, what does not fit is left out", place,
                number == ETIMEDOUT ? "nobody reads it" : strerror(number));
}

/* Makes the folders above a file: all but the first were named by us. */
static void make_folders(const char *path)
{
    char part[LIMIT_PATH_BYTES];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        mkdir(part, 0777); /* a failure shows when the file is opened */
    }
}

static void write_to_file(struct output_writer *writer, const struct piece *piece)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    int fd = open(piece->path, flags, 0666);
    int number = 0;

    if (fd < 0 && errno == ENOENT) {
        make_folders(piece->path);
        fd = open(piece->path, flags, 0666);
    }
    number = fd < 0 ? errno : write_all(writer, fd, piece->bytes.data, piece->bytes.length);
    if (number)
        warn(writer, SINK_FILE, piece->path, number);
    if (fd >= 0)
        close(fd);
}

static void write_to_screen(struct output_writer *writer, const struct piece *piece)
{
    bool is_err = piece->fd == writer->err_fd;
    int number = write_all(writer, piece->fd, piece->bytes.data, piece->bytes.length);

    if (number)
        warn(writer, is_err ? SINK_ERR : SINK_OUT, is_err ? "standard error" : "standard output",
             number);
}

static struct piece *take(struct output_writer *writer, uint64_t *ret_dropped)
{
    struct piece *piece = NULL;

    pthread_mutex_lock(&writer->mutex);
    while (list_empty(&writer->waiting) && writer->stop_at_us == TIME_NEVER)
        pthread_cond_wait(&writer->changed, &writer->mutex);
    if (!list_empty(&writer->waiting)) {
        piece = CONTAINER_OF(writer->waiting.next, struct piece, chain);
        list_remove(&piece->chain);
        writer->waiting_bytes -= piece->bytes.length;
    }
    *ret_dropped = writer->dropped_bytes;
    writer->dropped_bytes = 0;
    pthread_mutex_unlock(&writer->mutex);
    return piece;
}

static void *run(void *arg)
{
    struct output_writer *writer = arg;
    struct piece *piece;
    uint64_t dropped;

    while ((piece = take(writer, &dropped))) {
        if (dropped)
            log_warning(WORKER,
                        "%" PRIu64 " bytes of output were left out: whoever reads it is slower "
                        "than the workers",
                        dropped);
        if (piece->path)
            write_to_file(writer, piece);
        else
            write_to_screen(writer, piece);
        piece_free(piece);
    }
    return NULL;
}

int output_writer_start(int err_fd, struct output_writer **ret_writer, struct hvd_err *err)
{
    struct output_writer *writer = mem_zalloc(sizeof(*writer));

    if (!writer)
        return err_set(err, HVD_E_NOMEM, "no memory for the output of workers");
    list_init(&writer->waiting);
    writer->err_fd = err_fd;
    writer->stop_at_us = TIME_NEVER;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
    if (thread_start(&writer->thread, 0, run, writer)) {
        pthread_cond_destroy(&writer->changed);
        pthread_mutex_destroy(&writer->mutex);
        mem_free(writer);
        return err_set(err, HVD_E_LIMIT, "no further thread can be made; see ulimit -u");
    }
    *ret_writer = writer;
    return 0;
}

static struct piece *make_piece(int fd, const char *path)
{
    struct piece *piece = mem_zalloc(sizeof(*piece));

    if (!piece)
        return NULL;
    piece->fd = fd;
    buf_init(&piece->bytes, LIMIT_OUTPUT_WAITING_BYTES);
    if (path) {
        piece->path = mem_strdup(path);
        if (!piece->path) {
            mem_free(piece);
            return NULL;
        }
    }
    return piece;
}

static bool goes_to(const struct piece *piece, int fd, const char *path)
{
    return path ? piece->path && strcmp(piece->path, path) == 0 : !piece->path && piece->fd == fd;
}

/* The last one, if it goes to the same place and is not long yet; or a new one; NULL: no memory. */
static struct piece *place_for(struct output_writer *writer, int fd, const char *path)
{
    struct piece *piece;

    if (!list_empty(&writer->waiting)) {
        piece = CONTAINER_OF(writer->waiting.prev, struct piece, chain);
        if (goes_to(piece, fd, path) && piece->bytes.length < PIECE_BYTES)
            return piece;
    }
    piece = make_piece(fd, path);
    if (piece)
        list_append(&writer->waiting, &piece->chain);
    return piece;
}

static bool add(struct output_writer *writer, int fd, const char *path, const char *bytes,
                size_t length)
{
    struct piece *piece;

    if (writer->waiting_bytes + length > LIMIT_OUTPUT_WAITING_BYTES)
        return false;
    piece = place_for(writer, fd, path);
    return piece && !buf_append(&piece->bytes, bytes, length);
}

void output_writer_put(struct output_writer *writer, int fd, const char *path, const char *bytes,
                       size_t length)
{
    pthread_mutex_lock(&writer->mutex);
    if (add(writer, fd, path, bytes, length))
        writer->waiting_bytes += length;
    else
        writer->dropped_bytes += length;
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

void output_writer_stop(struct output_writer *writer)
{
    if (!writer)
        return;
    pthread_mutex_lock(&writer->mutex);
    writer->stop_at_us = time_add(clock_now_us(), LIMIT_OUTPUT_LINGER_US);
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    mem_free(writer);
}
