#include "driver/io/output.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "driver/io/output_writer.h"
#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LABEL_MAX   (LIMIT_HOST_NAME_BYTES + 40)
#define BATCH_BYTES (64 * 1024)

struct worker_output {
    uint64_t incarnation;
    uint32_t rank;
    uint32_t slot;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    char label[LABEL_MAX];
    struct buf line[STREAM_COUNT]; /* without its end yet */
    bool returned[STREAM_COUNT];   /* the last line ended with a carriage return */
};

struct output {
    const struct output_config *config;
    struct output_writer *writer;
    struct VEC(struct worker_output *) workers; /* by incarnation */
    struct buf screen; /* lines of one chunk, on their way to the writer together */
    struct buf file;
};

int output_check(const char *folder, struct hvd_err *err)
{
    struct stat st;

    if (mkdir(folder, 0777) && errno != EEXIST)
        return err_set(err, errno == ENOENT ? HVD_E_NOTFOUND : HVD_E_DENIED,
                       "--output-filename %s: cannot be made: %s", folder, strerror(errno));
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(err, HVD_E_INVAL,
                       "--output-filename %s: is no folder; name one, or what is not there yet",
                       folder);
    if (access(folder, W_OK | X_OK))
        return err_set(err, HVD_E_DENIED, "--output-filename %s: cannot be written: %s", folder,
                       strerror(errno));
    return 0;
}

int output_create(const struct output_config *config, struct output **ret_output,
                  struct hvd_err *err)
{
    struct output *output;
    int rc = config->folder ? output_check(config->folder, err) : 0;

    if (rc)
        return rc;
    output = mem_zalloc(sizeof(*output));
    if (!output)
        return err_set(err, HVD_E_NOMEM, "no memory for the output of workers");
    output->config = config;
    buf_init(&output->screen, BATCH_BYTES + LIMIT_OUTPUT_LINE_BYTES + LABEL_MAX + 64);
    buf_init(&output->file, BATCH_BYTES + LIMIT_OUTPUT_LINE_BYTES + 64);
    rc = output_writer_start(config->err_fd, &output->writer, err);
    if (rc) {
        mem_free(output);
        return rc;
    }
    *ret_output = output;
    return 0;
}

/* Where it stands, or would. */
static size_t place_of(const struct output *output, uint64_t incarnation)
{
    size_t low = 0;
    size_t high = output->workers.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (output->workers.items[middle]->incarnation < incarnation)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct worker_output *find(const struct output *output, uint64_t incarnation)
{
    size_t at = place_of(output, incarnation);

    if (at < output->workers.count && output->workers.items[at]->incarnation == incarnation)
        return output->workers.items[at];
    return NULL;
}

static struct worker_output *add(struct output *output, uint64_t incarnation)
{
    size_t at = place_of(output, incarnation);
    struct worker_output *worker = mem_zalloc(sizeof(*worker));

    if (!worker || VEC_RESERVE(&output->workers, 1, LIMIT_INCARNATIONS)) {
        mem_free(worker);
        return NULL;
    }
    worker->incarnation = incarnation;
    worker->rank = OUTPUT_NO_RANK;
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&worker->line[i], LIMIT_OUTPUT_LINE_BYTES);
    memmove(&output->workers.items[at + 1], &output->workers.items[at],
            (output->workers.count - at) * sizeof(*output->workers.items));
    output->workers.items[at] = worker;
    output->workers.count++;
    return worker;
}

static struct worker_output *find_or_add(struct output *output, uint64_t incarnation)
{
    struct worker_output *worker = find(output, incarnation);

    return worker ? worker : add(output, incarnation);
}

static void write_label(struct worker_output *worker)
{
    char rank[16] = "-";

    if (worker->rank != OUTPUT_NO_RANK)
        snprintf(rank, sizeof(rank), "%" PRIu32, worker->rank);
    snprintf(worker->label, sizeof(worker->label), "[%s %s:%" PRIu32 "] ", rank, worker->host,
             worker->slot);
}

void output_rank(struct output *output, uint64_t incarnation, uint32_t rank)
{
    struct worker_output *worker = find_or_add(output, incarnation);

    if (worker)
        worker->rank = rank;
}

void output_name(struct output *output, uint64_t incarnation, uint32_t rank, const char *host,
                 uint32_t slot)
{
    struct worker_output *worker = find_or_add(output, incarnation);

    if (!worker)
        return; /* memory is out: its lines have no label then */
    if (rank != OUTPUT_NO_RANK)
        worker->rank = rank;
    worker->slot = slot;
    snprintf(worker->host, sizeof(worker->host), "%s", host);
    write_label(worker);
}

bool output_knows(const struct output *output, uint64_t incarnation)
{
    const struct worker_output *worker = find(output, incarnation);

    return worker && *worker->label;
}

static int add_time(struct buf *out)
{
    char text[TIME_STAMP_MAX];

    return buf_printf(out, "%s ", time_stamp(clock_wall_us(), text));
}

/* Hands what has been put together to the writer. */
static void hand_over(struct output *output, const struct worker_output *worker, int stream)
{
    int fd = stream == STREAM_STDOUT ? output->config->out_fd : output->config->err_fd;
    char path[LIMIT_PATH_BYTES];

    if (output->screen.length)
        output_writer_put(output->writer, fd, NULL, output->screen.data, output->screen.length);
    buf_clear(&output->screen);
    if (!output->file.length)
        return;
    snprintf(path, sizeof(path), "%s/%s/%" PRIu32 "/%" PRIu64 ".%s", output->config->folder,
             worker->host, worker->slot, worker->incarnation,
             stream == STREAM_STDOUT ? "out" : "err");
    output_writer_put(output->writer, -1, path, output->file.data, output->file.length);
    buf_clear(&output->file);
}

/* What follows a carriage return at once belongs to that line: it has been said whose it is. */
static int add_label(struct output *output, const struct worker_output *worker, bool continues)
{
    if (continues)
        return 0;
    if (output->config->timestamps && add_time(&output->screen))
        return HVD_E_NOMEM;
    return buf_append_text(&output->screen, worker->label);
}

/* A whole line: to the terminal with who says it, to its file as it is. One that memory is out for
 * is lost; training is not. */
static void put_line(struct output *output, struct worker_output *worker, int stream,
                     const char *text, size_t length, char end)
{
    size_t before = output->screen.length;
    bool continues = worker->returned[stream] && !length && end == '\n';

    if (add_label(output, worker, continues) || buf_append(&output->screen, text, length) ||
        buf_append(&output->screen, &end, 1))
        output->screen.length = before;
    if (output->config->folder && *worker->host) {
        before = output->file.length;
        if (buf_append(&output->file, text, length) || buf_append(&output->file, &end, 1))
            output->file.length = before;
    }
    worker->returned[stream] = end == '\r';
    if (output->screen.length > BATCH_BYTES)
        hand_over(output, worker, stream);
}

static void flush(struct output *output, struct worker_output *worker, int stream, char end)
{
    struct buf *line = &worker->line[stream];

    put_line(output, worker, stream, buf_text(line), line->length, end);
    buf_clear(line);
}

/* A line that is too long is cut into several. */
static void add_bytes(struct output *output, struct worker_output *worker, int stream,
                      const char *bytes, size_t length)
{
    struct buf *line = &worker->line[stream];

    while (length > 0) {
        size_t room = LIMIT_OUTPUT_LINE_BYTES - line->length;
        size_t part = length < room ? length : room;

        if (buf_append(line, bytes, part))
            return; /* memory is out: these bytes are lost, training is not */
        bytes += part;
        length -= part;
        if (line->length == LIMIT_OUTPUT_LINE_BYTES)
            flush(output, worker, stream, '\n');
    }
}

static void say_dropped(struct output *output, struct worker_output *worker, int stream,
                        uint64_t dropped)
{
    char text[96];
    int length =
        snprintf(text, sizeof(text),
                 "... %" PRIu64 " bytes that it printed were left out: nobody took them", dropped);

    if (worker->line[stream].length)
        flush(output, worker, stream, '\n');
    put_line(output, worker, stream, text, (size_t)length, '\n');
}

/* Progress is shown by lines that end with a carriage return: nobody wants to wait for the last. */
static const char *find_end(const char *at, size_t length)
{
    const char *newline = memchr(at, '\n', length);
    const char *carriage_return = memchr(at, '\r', newline ? (size_t)(newline - at) : length);

    return carriage_return ? carriage_return : newline;
}

void output_take(struct output *output, uint64_t incarnation, const struct msg_output *chunk)
{
    struct worker_output *worker = find_or_add(output, incarnation);
    const char *at = (const char *)chunk->data.at;
    size_t left = chunk->data.length;
    int stream = (int)chunk->stream;

    if (!worker || chunk->stream >= STREAM_COUNT)
        return;
    if (chunk->dropped_bytes)
        say_dropped(output, worker, stream, chunk->dropped_bytes);
    while (left > 0) {
        const char *end = find_end(at, left);
        size_t part = end ? (size_t)(end - at) : left;

        if (end && !worker->line[stream].length && part <= LIMIT_OUTPUT_LINE_BYTES) {
            put_line(output, worker, stream, at, part, *end); /* it need not be kept first */
        } else {
            add_bytes(output, worker, stream, at, part);
            if (end)
                flush(output, worker, stream, *end);
        }
        at += part + (end ? 1 : 0);
        left -= part + (end ? 1 : 0);
    }
    hand_over(output, worker, stream);
}

static void release(struct output *output, struct worker_output *worker)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        if (worker->line[stream].length)
            flush(output, worker, stream, '\n');
        hand_over(output, worker, stream);
        buf_release(&worker->line[stream]);
    }
    mem_free(worker);
}

void output_end(struct output *output, uint64_t incarnation)
{
    size_t at = place_of(output, incarnation);
    struct worker_output *worker = find(output, incarnation);

    if (!worker)
        return;
    release(output, worker);
    output->workers.count--;
    memmove(&output->workers.items[at], &output->workers.items[at + 1],
            (output->workers.count - at) * sizeof(*output->workers.items));
}

void output_free(struct output *output)
{
    if (!output)
        return;
    for (size_t i = 0; i < output->workers.count; i++)
        release(output, output->workers.items[i]);
    VEC_RELEASE(&output->workers);
    output_writer_stop(output->writer);
    buf_release(&output->screen);
    buf_release(&output->file);
    mem_free(output);
}
