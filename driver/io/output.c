/*
 * output.c: cuts the output of workers into lines, adds labels, and writes the lines on a thread.
 * loop.c calls it from the driver's thread. A line of one worker is never mixed with a line of
 * another, and the lines of a worker keep their order. The mutex covers the pieces that wait for
 * the thread; the thread does not hold it while it writes, so a terminal that is not read stops
 * only the thread.
 */
#include "driver/io/output.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text_show.h"
#include "base/time.h"
#include "base/vec.h"
#include "driver/io/output_file.h"
#include "os/clock.h"
#include "os/log_time.h"
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

#define LABEL_MAX   (LIMIT_HOST_NAME_BYTES + 40)
#define BATCH_BYTES (64 * 1024) /* so many bytes of lines are given to the thread at once */
#define PIECE_BYTES (64 * 1024) /* a piece with so many bytes takes no more */
/* While a write waits for a slow reader, the thread checks after each such time whether it has to
 * end. */
#define STOP_CHECK_MS 100
#define ERASE_LINE    "\x1b[K" /* erases from the cursor to the end of the line */

/* ---- the thread that writes ------------------------------------------------------------------ */

/* A piece of output that waits for the thread that writes. */
struct piece {
    struct list chain;
    int fd;           /* where the bytes go; not used if `path` is not NULL */
    char *path;       /* the path of a worker's file; NULL: the bytes go to `fd` */
    struct buf bytes; /* more bytes for the same path or fd are appended, up to PIECE_BYTES */
};

/* Where output goes: standard output, standard error, or the files of workers. */
enum sink { SINK_OUT, SINK_ERR, SINK_FILE, SINK_COUNT };

struct output_writer {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a piece waits, or the thread must end */
    int err_fd;
    struct output_files files; /* only the thread that writes uses them */
    struct list waiting;       /* pieces, the oldest first */
    size_t waiting_bytes;      /* the bytes of all pieces in `waiting` */
    uint64_t dropped_bytes;    /* bytes dropped since the thread took the last piece */
    int64_t stop_at_us;        /* when the thread must end; TIME_NEVER: it need not end */
    bool warned[SINK_COUNT];   /* a warning about a failed write was logged */
};

/* Writes one piece of output to its file or descriptor. Of failures only the first one of each sink
 * (standard output, standard error, the files) is logged. `number`: the errno of a failure; 0: no
 * failure. */
static void write_piece(struct output_writer *writer, const struct piece *piece)
{
    enum sink sink = piece->path ? SINK_FILE : piece->fd == writer->err_fd ? SINK_ERR : SINK_OUT;
    static const char *const names[] = { "standard output", "standard error" };
    const char *bytes = piece->bytes.data;
    size_t length = piece->bytes.length;
    int fd = piece->fd;
    int number = 0;

    if (piece->path && output_file_open(&writer->files, piece->path, length, &fd))
        return; /* output_file_open has logged why; these bytes are in no file */
    while (length > 0 && !number) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
        ssize_t written;
        bool late;

        /* Waits for a slow reader, but not longer than output_free allows. */
        pthread_mutex_lock(&writer->mutex);
        late = clock_now_us() >= writer->stop_at_us;
        pthread_mutex_unlock(&writer->mutex);
        /* the descriptor takes no bytes yet: tries again, or gives this piece up if it is too late
         */
        if (poll(&poll_fd, 1, late ? 0 : STOP_CHECK_MS) == 0) {
            number = late ? ETIMEDOUT : 0;
            continue;
        }
        /* After POLLOUT a write of PIPE_BUF bytes does not block. */
        written = write(fd, bytes, length < PIPE_BUF ? length : PIPE_BUF);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            number = errno;
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    if (piece->path)
        close(fd);
    if (!number || writer->warned[sink])
        return;
    writer->warned[sink] = true;
    log_warning(WORKER,
                "%s: this output cannot be written: %s; the driver leaves out later output that "
                "does not fit into its memory",
                piece->path ? piece->path : names[sink],
                number == ETIMEDOUT ? "the reader of the output does not read" : strerror(number));
}

/* The function of the thread: writes one piece after the other until output_free, and logs how many
 * bytes were dropped. */
static void *output_writer_thread(void *arg)
{
    struct output_writer *writer = arg;

    pthread_mutex_lock(&writer->mutex);
    for (;;) {
        struct piece *piece;
        uint64_t dropped;

        while (list_empty(&writer->waiting) && writer->stop_at_us == TIME_NEVER)
            pthread_cond_wait(&writer->changed, &writer->mutex);
        if (list_empty(&writer->waiting)) /* the thread must end, and all pieces are written */
            break;
        piece = CONTAINER_OF(writer->waiting.next, struct piece, chain);
        list_remove(&piece->chain);
        writer->waiting_bytes -= piece->bytes.length;
        dropped = writer->dropped_bytes;
        writer->dropped_bytes = 0;
        pthread_mutex_unlock(&writer->mutex);
        if (dropped)
            log_warning(WORKER,
                        "%" PRIu64 " bytes of the workers' output were left out, because the "
                        "reader of the output is slower than the workers; read it faster",
                        dropped);
        write_piece(writer, piece);
        buf_release(&piece->bytes);
        mem_free(piece->path);
        mem_free(piece);
        pthread_mutex_lock(&writer->mutex);
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

/* Frees the writer, whose thread has ended or was not started. No piece is left. */
static void output_free_writer(struct output_writer *writer)
{
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->mutex);
    mem_free(writer);
}

/* Copies bytes of output, which the thread writes later: to the worker's file `path`, or to fd if
 * path is NULL. The bytes are appended to the newest piece if that one goes to the same place, so
 * that few writes are needed. If too many bytes wait, the new bytes are dropped and counted. */
static void output_writer_put(struct output_writer *writer, int fd, const char *path,
                              const char *bytes, size_t length)
{
    struct piece *piece = NULL;
    bool same = false, room;

    /* All pieces that wait may have LIMIT_OUTPUT_WAITING_BYTES together. */
    pthread_mutex_lock(&writer->mutex);
    room = writer->waiting_bytes + length <= LIMIT_OUTPUT_WAITING_BYTES;
    if (room && !list_empty(&writer->waiting)) {
        piece = CONTAINER_OF(writer->waiting.prev, struct piece, chain);
        same =
            path ? piece->path && strcmp(piece->path, path) == 0 : !piece->path && piece->fd == fd;
        same = same && piece->bytes.length < PIECE_BYTES;
    }
    /* The last piece is for another path or descriptor, or has no room. */
    if (room && !same && (piece = mem_zalloc(sizeof(*piece)))) {
        piece->fd = fd;
        buf_init(&piece->bytes, LIMIT_OUTPUT_WAITING_BYTES);
        if (path && !(piece->path = mem_strdup(path))) {
            mem_free(piece);
            piece = NULL;
        } else {
            list_append(&writer->waiting, &piece->chain);
        }
    }
    if (piece && !buf_append(&piece->bytes, bytes, length))
        writer->waiting_bytes += length;
    else
        writer->dropped_bytes += length;
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
}

/* ---- lines and labels ----------------------------------------------------------------------- */

struct worker_output {
    uint64_t incarnation;
    uint32_t rank; /* OUTPUT_NO_RANK: no rank is known */
    uint32_t slot;
    char host[LIMIT_HOST_NAME_BYTES + 1]; /* "": output_name was not called yet */
    char label[LABEL_MAX];                /* "[RANK HOST:SLOT] "; "": output_name was not called */
    struct buf line[STREAM_COUNT];        /* the beginning of a line whose end has not come yet */
    bool returned[STREAM_COUNT];          /* the last line ended with a carriage return */
};

struct output {
    const struct output_config *config;
    struct output_writer *writer;
    struct VEC(struct worker_output *) workers; /* sorted by incarnation */
    bool terminal[STREAM_COUNT]; /* the stream is a terminal, so text_show escapes the output */
    bool returned[STREAM_COUNT]; /* the last line of any worker ended with a carriage return */
    /* The lines of one call of output_take: `screen` is for standard output or error, `file` for
     * the worker's file. */
    struct buf screen;
    struct buf file;
};

/* Checks that the folder of --output-filename can be used, and makes it if it does not exist. */
int output_check(const char *folder, struct hvd_err *err)
{
    struct stat st;

    /* The folder is checked before the job begins, so that no output is lost later because the
     * folder cannot be used. */
    if (mkdir(folder, 0700) && errno != EEXIST)
        return err_set(
            err, errno == ENOENT ? HVD_E_NOTFOUND : HVD_E_DENIED,
            "--output-filename %s: cannot be made: %s; give a folder that this user may make",
            folder, strerror(errno));
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(err, HVD_E_INVAL,
                       "--output-filename %s: it is not a folder; name a folder, or a path that "
                       "does not exist",
                       folder);
    if (access(folder, W_OK | X_OK))
        return err_set(err, HVD_E_DENIED,
                       "--output-filename %s: cannot be written: %s; give a folder in which this "
                       "user may write",
                       folder, strerror(errno));
    return 0;
}

/* Begins the output of workers, and starts the thread that writes it. Nothing is left after a
 * failure. */
int output_create(const struct output_config *config, struct output **ret_output,
                  struct hvd_err *err)
{
    struct output_writer *writer;
    struct output *output;
    int rc = config->folder ? output_check(config->folder, err) : 0;

    if (rc)
        return rc;
    output = mem_zalloc(sizeof(*output));
    if (!output)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the output of workers; free memory on this host");
    output->config = config;
    output->terminal[STREAM_STDOUT] = isatty(config->out_fd);
    output->terminal[STREAM_STDERR] = isatty(config->err_fd);
    /* On a terminal an escaped byte takes four bytes. */
    buf_init(&output->screen, BATCH_BYTES + 4 * LIMIT_OUTPUT_LINE_BYTES + LABEL_MAX + 64);
    buf_init(&output->file, BATCH_BYTES + LIMIT_OUTPUT_LINE_BYTES + 64);
    writer = output->writer = mem_zalloc(sizeof(*writer));
    if (!writer) {
        mem_free(output);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the output of workers; free memory on this host");
    }
    list_init(&writer->waiting);
    writer->err_fd = config->err_fd;
    writer->files =
        (struct output_files){ .folder = config->folder, .limit_bytes = config->limit_bytes };
    writer->stop_at_us = TIME_NEVER;
    pthread_mutex_init(&writer->mutex, NULL);
    pthread_cond_init(&writer->changed, NULL);
    if (thread_start(&writer->thread, 0, output_writer_thread, writer)) {
        output_free_writer(writer);
        mem_free(output);
        return err_set(err, HVD_E_LIMIT,
                       "no thread can be started for the output of workers; raise ulimit -u");
    }
    *ret_output = output;
    return 0;
}

/* For VEC_PLACE: the workers are sorted by their incarnations. */
static uint64_t incarnation_of(const void *item)
{
    return (*(struct worker_output *const *)item)->incarnation;
}

/* Returns the entry of a worker; NULL: there is none. */
static struct worker_output *output_find_worker(const struct output *output, uint64_t incarnation)
{
    size_t at = VEC_PLACE(&output->workers, incarnation_of, incarnation);

    if (at < output->workers.count && output->workers.items[at]->incarnation == incarnation)
        return output->workers.items[at];
    return NULL;
}

/* Returns the worker's entry, and adds an entry if there is none. NULL: no memory is left; then the
 * output of the worker is lost, but the job goes on. */
static struct worker_output *find_or_add_worker(struct output *output, uint64_t incarnation)
{
    struct worker_output *worker = output_find_worker(output, incarnation);
    size_t at = VEC_PLACE(&output->workers, incarnation_of, incarnation);

    if (worker)
        return worker;
    worker = mem_zalloc(sizeof(*worker));
    if (!worker || VEC_RESERVE(&output->workers, 1, LIMIT_INCARNATIONS)) {
        mem_free(worker);
        return NULL;
    }
    worker->incarnation = incarnation;
    worker->rank = OUTPUT_NO_RANK;
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&worker->line[i], LIMIT_OUTPUT_LINE_BYTES);
    /* Incarnations rise, so the new entry is nearly always the last. */
    memmove(&output->workers.items[at + 1], &output->workers.items[at],
            (output->workers.count - at) * sizeof(*output->workers.items));
    output->workers.items[at] = worker;
    output->workers.count++;
    return worker;
}

/* A LAUNCH is sent to this worker: it starts with this rank, until output_name names another one.
 */
void output_rank(struct output *output, uint64_t incarnation, uint32_t rank)
{
    struct worker_output *worker = find_or_add_worker(output, incarnation);

    if (worker)
        worker->rank = rank;
}

/* Sets the label of a worker's lines, "[RANK HOST:SLOT] ". `rank` OUTPUT_NO_RANK: the worker is in
 * no round now, and keeps the rank that it had. */
void output_name(struct output *output, uint64_t incarnation, uint32_t rank, const char *host,
                 uint32_t slot)
{
    struct worker_output *worker = find_or_add_worker(output, incarnation);
    char rank_text[16] = "-";

    if (!worker)
        return;
    if (rank != OUTPUT_NO_RANK)
        worker->rank = rank;
    worker->slot = slot;
    snprintf(worker->host, sizeof(worker->host), "%s", host);
    if (worker->rank != OUTPUT_NO_RANK)
        snprintf(rank_text, sizeof(rank_text), "%" PRIu32, worker->rank);
    snprintf(worker->label, sizeof(worker->label), "[%s %s:%" PRIu32 "] ", rank_text, worker->host,
             slot);
}

/* true: the lines of this worker have a label already. */
bool output_knows(const struct output *output, uint64_t incarnation)
{
    const struct worker_output *worker = output_find_worker(output, incarnation);

    return worker && *worker->label;
}

/* Gives the lines that are collected in `screen` and `file` to the thread that writes: `screen` for
 * the driver's standard output or error, `file` for the file of this worker. */
static void output_hand_over(struct output *output, const struct worker_output *worker, int stream)
{
    int fd = stream == STREAM_STDOUT ? output->config->out_fd : output->config->err_fd;
    char path[LIMIT_HOST_NAME_BYTES + 48];

    if (output->screen.length)
        output_writer_put(output->writer, fd, NULL, output->screen.data, output->screen.length);
    buf_clear(&output->screen);
    if (!output->file.length)
        return;
    snprintf(path, sizeof(path), "%s/%" PRIu32 "/%" PRIu64 ".%s", worker->host, worker->slot,
             worker->incarnation, stream == STREAM_STDOUT ? "out" : "err");
    output_writer_put(output->writer, -1 /* the path counts */, path, output->file.data,
                      output->file.length);
    buf_clear(&output->file);
}

/* Adds a whole line of a worker to `screen` (for the driver's standard output or error), with its
 * label, and to `file` (for the worker's file), unchanged. `end`: the character that ended the
 * line, a newline or a carriage return. Without memory the line is lost, and training goes on. */
static void output_put_line(struct output *output, struct worker_output *worker, int stream,
                            const char *text, size_t length, char end)
{
    const bool terminal = output->terminal[stream];
    size_t before = output->screen.length;
    char stamp[TIME_STAMP_MAX];
    int rc = 0;

    /* A line that ended with a carriage return is still on the terminal. It is erased, because its
     * end would be visible after a shorter line. */
    if (terminal && output->returned[stream])
        rc = buf_append_text(&output->screen, ERASE_LINE);
    /* A newline right after a carriage return belongs to the same line, whose label is printed
     * already. */
    if (!worker->returned[stream] || length || end != '\n') {
        if (!rc && output->config->timestamps)
            rc = buf_printf(&output->screen, "%s ", log_time_text(clock_wall_us(), stamp));
        if (!rc)
            rc = buf_append_text(&output->screen, worker->label);
    }
    if (!rc)
        rc = terminal ? text_show(&output->screen, text, length, true /* colours pass */)
                      : buf_append(&output->screen, text, length);
    if (rc || buf_append(&output->screen, &end, 1))
        output->screen.length = before;
    if (output->config->folder && *worker->host) {
        before = output->file.length;
        if (buf_append(&output->file, text, length) || buf_append(&output->file, &end, 1))
            output->file.length = before;
    }
    worker->returned[stream] = output->returned[stream] = end == '\r';
    if (output->screen.length > BATCH_BYTES)
        output_hand_over(output, worker, stream);
}

/* Prints the line whose beginning was kept, with `end` as its last character. */
static void output_flush_line(struct output *output, struct worker_output *worker, int stream,
                              char end)
{
    struct buf *line = &worker->line[stream];

    output_put_line(output, worker, stream, buf_text(line), line->length, end);
    buf_clear(line);
}

/* Takes a piece of a worker's output: whole lines are printed, the rest waits for its end.
 * dropped_bytes: how much output the agent has left out before this piece, because too much
 * waited. */
void output_take(struct output *output, uint64_t incarnation, const struct msg_output *chunk)
{
    struct worker_output *worker = find_or_add_worker(output, incarnation);
    const char *at = (const char *)chunk->data.at;
    size_t left = chunk->data.length;
    int stream = (int)chunk->stream;
    struct buf *line;
    char text[96];

    if (!worker || chunk->stream >= STREAM_COUNT)
        return;
    line = &worker->line[stream];
    if (chunk->dropped_bytes) {
        int length =
            snprintf(text, sizeof(text),
                     "... %" PRIu64
                     " bytes of this worker's output were left out: too much waited to be written",
                     chunk->dropped_bytes);

        if (line->length)
            output_flush_line(output, worker, stream, '\n');
        output_put_line(output, worker, stream, text, (size_t)length, '\n');
    }
    while (left > 0) {
        /* A progress bar ends its lines with carriage returns. Each of these lines is shown at
         * once. */
        const char *newline = memchr(at, '\n', left);
        const char *carriage_return = memchr(at, '\r', newline ? (size_t)(newline - at) : left);
        const char *end = carriage_return ? carriage_return : newline;
        size_t part = end ? (size_t)(end - at) : left;

        left -= part + (end ? 1 : 0);
        if (end && !line->length && part <= LIMIT_OUTPUT_LINE_BYTES) {
            /* The line is complete, so no copy is kept. */
            output_put_line(output, worker, stream, at, part, *end);
            at = end + 1;
            continue;
        }
        /* The beginning of a line is kept until its end comes. A line that is too long is cut into
         * several. Without memory the bytes are lost. */
        while (part > 0) {
            size_t room = LIMIT_OUTPUT_LINE_BYTES - line->length;
            size_t taken = part < room ? part : room;

            if (buf_append(line, at, taken))
                taken = part; /* no memory: the rest of the line is lost */
            at += taken;
            part -= taken;
            if (line->length == LIMIT_OUTPUT_LINE_BYTES)
                output_flush_line(output, worker, stream, '\n');
        }
        if (end) {
            output_flush_line(output, worker, stream, *end);
            at = end + 1;
        }
    }
    output_hand_over(output, worker, stream);
}

/* Prints the unfinished lines of the worker, and frees its entry. A newline ends the unfinished
 * lines. */
static void release_worker(struct output *output, struct worker_output *worker)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (worker->line[stream].length)
            output_flush_line(output, worker, stream, '\n');
        output_hand_over(output, worker, stream);
        buf_release(&worker->line[stream]);
    }
    mem_free(worker);
}

/* The worker has ended: no more output of it comes. */
void output_end(struct output *output, uint64_t incarnation)
{
    size_t at = VEC_PLACE(&output->workers, incarnation_of, incarnation);
    struct worker_output *worker = output_find_worker(output, incarnation);

    if (!worker)
        return;
    release_worker(output, worker);
    output->workers.count--;
    memmove(&output->workers.items[at], &output->workers.items[at + 1],
            (output->workers.count - at) * sizeof(*output->workers.items));
}

/* Prints what is left, and ends the thread. A reader that does not read makes this wait for at most
 * LIMIT_OUTPUT_LINGER_US. */
void output_free(struct output *output)
{
    struct output_writer *writer;

    if (!output)
        return;
    writer = output->writer;
    for (size_t i = 0; i < output->workers.count; i++)
        release_worker(output, output->workers.items[i]);
    VEC_RELEASE(&output->workers);
    /* Waits until all pieces are written, at most LIMIT_OUTPUT_LINGER_US. */
    pthread_mutex_lock(&writer->mutex);
    writer->stop_at_us = time_add(clock_now_us(), LIMIT_OUTPUT_LINGER_US);
    pthread_cond_signal(&writer->changed);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
    output_free_writer(writer);
    buf_release(&output->screen);
    buf_release(&output->file);
    mem_free(output);
}
