/*
 * timeline.c: writes events as lines of the trace event format into the timeline's file; called by
 * worker/ and collectives/ on any thread. A line is made without the lock, and is whole or left
 * out. After an error of the file nothing more is written until the next start, and the owner is
 * told once. Two locks: start_lock is for the whole of a start or a stop, mutex for the file.
 */
#include "timeline/timeline.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "timeline/nvtx.h"
#include "timeline/page_file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES PAGE_FILE_PAGE
#define TEXT_MAX       200 /* a text is cut after this many bytes */
/* a buffer that is half full is written to the file */
#define HALF ((size_t)PAGE_FILE_PAGE * PAGE_FILE_PAGES / 2)
/* the buffer is also written when an event is added this long after its oldest event */
#define OLD_US      (200 * TIME_MS)
#define CLOCK_READS 3 /* tries to read both clocks at the same moment */

/* The beginning of every timeline of hvd-elastic; the number of the job follows. */
#define FIRST_SAME "[\n{\"ph\":\"i\",\"s\":\"g\",\"cat\":\"job\",\"ts\":"

struct timeline {
    struct timeline_options options;
    /* what to add to the monotonic clock to get the wall clock, which all machines share */
    int64_t wall_us;
    bool ranges; /* true: a running profiler takes ranges */
    _Atomic bool on;
    _Atomic int64_t since_us; /* when the timeline was turned on */

    pthread_mutex_t start_lock; /* one start or stop at a time; taken before mutex */

    pthread_mutex_t mutex; /* protects the fields below */
    struct page_file file; /* open while the timeline is on */
    char *path;
    struct hvd_err broken; /* the first error of the file; code 0: none */
    int64_t first_us;      /* when the oldest unwritten event was added */
    char name[TIMELINE_NAME_MAX];
    uint32_t rank;
};

static const char *const lane_names[] = {
    [TIMELINE_ROUNDS] = "rounds",
    [TIMELINE_CHANGES] = "changes",
    [TIMELINE_STATE] = "state",
    [TIMELINE_COPIER] = "copier",
    [TIMELINE_COLLECTIVES] = "collectives",
    [TIMELINE_PHASES] = "phases",
};

/* A line that is being made. */
struct line {
    char text[LINE_MAX_BYTES];
    size_t used;
    bool whole; /* false: the line did not fit, and is not written */
};

/* Adds formatted text. If it does not fit, `whole` becomes false, and the line is not written. */
PRINTF_LIKE(2, 3) static void line_add(struct line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - line->used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room)
        line->whole = false;
    else
        line->used += (size_t)length;
}

/* Adds one character; if it does not fit, `whole` becomes false. */
static void line_add_char(struct line *line, char c)
{
    if (line->used + 1 < sizeof(line->text))
        line->text[line->used++] = c;
    else
        line->whole = false;
}

/* Adds a text. A long text is cut between two characters. If the text is not valid UTF-8, only its
 * ASCII bytes are shown. */
static void line_add_text(struct line *line, const char *text)
{
    size_t length = strnlen(text, TEXT_MAX);
    bool clean;

    if (text[length]) {
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    clean = text_is_clean(text, length);
    line_add_char(line, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            line_add(line, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            line_add(line, "\\u%04x", c);
        else if (c >= 0x80 && !clean)
            line_add_char(line, '?');
        else
            line_add_char(line, (char)c);
    }
    line_add_char(line, '"');
}

/* Adds the arguments of an event, and ends its line. */
static void line_add_args(struct line *line, const struct timeline_arg *args, size_t count)
{
    line_add(line, ",\"args\":{");
    for (size_t i = 0; i < count; i++) {
        if (i)
            line_add_char(line, ',');
        line_add_text(line, args[i].name);
        line_add_char(line, ':');
        if (args[i].text)
            line_add_text(line, args[i].text);
        else
            line_add(line, "%" PRId64, args[i].number);
    }
    line_add(line, "}},\n");
}

/* Begins a line with the fields that every line has; the caller adds the name and the arguments. */
static void line_begin(const struct timeline *timeline, struct line *line, enum timeline_lane lane,
                       const char *phase, int64_t at_us)
{
    line->used = 0;
    line->whole = true;
    line_add(line, "{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%d,\"cat\":\"%s\",\"ts\":%" PRId64,
             phase, timeline->options.process, (int)lane, lane_names[lane],
             time_add(timeline->wall_us, at_us));
}

/* Writes the buffered lines to the file; the mutex is held. After an error no more lines are
 * written: a file in which lines are missing would mislead its reader. */
static void write_out(struct timeline *timeline)
{
    struct hvd_err err;
    char text[ERR_TEXT_MAX + TEXT_QUOTE_MAX];

    if (timeline->broken.code || !page_file_write(&timeline->file, &err))
        return;
    err_set(&timeline->broken, err.code, "timeline %s: %s", timeline->path, err.text);
    snprintf(text, sizeof(text), "%s; this worker writes nothing more to the timeline",
             timeline->broken.text);
    if (timeline->options.complain)
        timeline->options.complain(timeline->options.arg, text);
}

/* Adds a line to the buffer; the mutex is held. A line that was made before a stop is left out. */
static void put_line_locked(struct timeline *timeline, const struct line *line, int64_t now_us)
{
    struct page_file *file = &timeline->file;
    bool added = false;

    if (!atomic_load(&timeline->on) || timeline->broken.code || !line->whole)
        return;
    if (!file->used)
        timeline->first_us = now_us;
    added = page_file_add(file, line->text, line->used);
    if (!added) { /* the buffer is full: it is written out, and the line is added again */
        write_out(timeline);
        timeline->first_us = now_us;
        added = !timeline->broken.code && page_file_add(file, line->text, line->used);
    }
    if (added && (file->used >= HALF || now_us - timeline->first_us >= OLD_US))
        write_out(timeline);
}

/* true: events are written. The read is relaxed: an event at the moment of a start or stop may be
 * left out, and put_line_locked decides under the mutex. */
bool timeline_is_on(const struct timeline *timeline)
{
    return timeline && atomic_load_explicit(&timeline->on, memory_order_relaxed);
}

/* Writes the buffered events to the file now, so that they outlive a kill of this process. */
void timeline_flush(struct timeline *timeline)
{
    if (!timeline_is_on(timeline))
        return;
    pthread_mutex_lock(&timeline->mutex);
    write_out(timeline);
    pthread_mutex_unlock(&timeline->mutex);
}

/* Adds a line that names this process or a lane (phase "M"); the mutex is held. */
static void put_meta(struct timeline *timeline, enum timeline_lane lane, const char *what,
                     const struct timeline_arg *arg)
{
    int64_t now_us = clock_now_us();
    struct line line;

    line_begin(timeline, &line, lane, "M", now_us);
    line_add(&line, ",\"name\":\"%s\"", what);
    line_add_args(&line, arg, 1);
    put_line_locked(timeline, &line, now_us);
}

/* Adds the lines with the name and the rank of this process; the mutex is held. */
static void put_name(struct timeline *timeline)
{
    if (!timeline->name[0])
        return;
    put_meta(timeline, TIMELINE_ROUNDS, "process_name",
             &(struct timeline_arg){ .name = "name", .text = timeline->name });
    put_meta(timeline, TIMELINE_ROUNDS, "process_sort_index",
             &(struct timeline_arg){ .name = "sort_index", .number = timeline->rank });
}

/* Sets the name of this process, and writes it if the timeline is on; a later start writes it
 * again. */
void timeline_name(struct timeline *timeline, const char *name, uint32_t rank)
{
    if (!timeline)
        return;
    pthread_mutex_lock(&timeline->mutex);
    snprintf(timeline->name, sizeof(timeline->name), "%s", name);
    timeline->rank = rank;
    put_name(timeline);
    pthread_mutex_unlock(&timeline->mutex);
}

/* Adds the line of an event. If the event began before the timeline was turned on, the line shows
 * it from the moment of turning on. */
static void put_event(struct timeline *timeline, const struct timeline_event *event)
{
    int64_t begun_us = event->begun_us, since_us, lasted_us;
    struct line line;

    since_us = atomic_load_explicit(&timeline->since_us, memory_order_relaxed);
    begun_us = begun_us > since_us ? begun_us : since_us;
    lasted_us = event->ended_us - begun_us;
    line_begin(timeline, &line, event->lane, "X", begun_us);
    line_add(&line, ",\"dur\":%" PRId64 ",\"name\":", lasted_us > 0 ? lasted_us : 0);
    line_add_text(&line, event->name);
    line_add_args(&line, event->args, event->arg_count);
    pthread_mutex_lock(&timeline->mutex);
    put_line_locked(timeline, &line, event->ended_us);
    pthread_mutex_unlock(&timeline->mutex);
}

/* Adds an event. While the timeline is off the call costs almost nothing, because the line, which
 * has 4 KiB, is in another function. */
void timeline_event(struct timeline *timeline, const struct timeline_event *event)
{
    if (timeline_is_on(timeline))
        put_event(timeline, event);
}

/* Returns the time for an event; 0 while the timeline is off, because the caller then adds none. */
int64_t timeline_now_us(const struct timeline *timeline)
{
    return timeline_is_on(timeline) ? clock_now_us() : 0;
}

/* Creates a timeline, which is off. `complain` gets the reason if the profiler cannot be used. */
int timeline_create(const struct timeline_options *options, struct timeline **ret_timeline)
{
    struct timeline *timeline = mem_zalloc(sizeof(*timeline));
    int64_t least_us = TIME_NEVER;
    struct hvd_err err;

    if (!timeline)
        return HVD_E_NOMEM;
    timeline->options = *options;
    if (options->ranges && nvtx_attach(&timeline->ranges, &err) && options->complain)
        options->complain(options->arg, err.text);
    /* The wall clock is read between two reads of the monotonic clock, several times. The try
     * counts in which the two reads are nearest to each other. */
    for (int i = 0; i < CLOCK_READS; i++) {
        int64_t before_us = clock_now_us();
        int64_t wall_us = clock_wall_us();
        int64_t took_us = clock_now_us() - before_us;

        if (took_us >= least_us)
            continue;
        least_us = took_us;
        timeline->wall_us = wall_us - before_us - took_us / 2;
    }
    timeline->file.fd = -1;
    pthread_mutex_init(&timeline->start_lock, NULL);
    pthread_mutex_init(&timeline->mutex, NULL);
    *ret_timeline = timeline;
    return 0;
}

/* Turns the timeline on: opens its file, and names this process and its lanes in it. */
int timeline_start(struct timeline *timeline, const struct timeline_file *file, struct hvd_err *err)
{
    struct line line = { .whole = true };
    struct page_file_first first = { .text = line.text,
                                     .same = sizeof(FIRST_SAME) - 1,
                                     .number = (uint64_t)file->job_began_us };
    struct page_file opened;
    char *path = NULL;
    int rc = 0;

    pthread_mutex_lock(&timeline->start_lock);
    if (timeline_is_on(timeline)) {
        rc = err_set(err, HVD_E_STATE,
                     "the timeline is written to %s already; call hvd_timeline_stop first",
                     timeline->path);
        goto out;
    }
    /* The first line tells a timeline of this job from all other files. */
    line_add(&line, FIRST_SAME "%" PRIu64 ",\"pid\":%" PRIu64 ",\"tid\":%d,\"name\":", first.number,
             timeline->options.process, (int)TIMELINE_ROUNDS);
    line_add_text(&line, "the job begins");
    line_add_args(&line, &(struct timeline_arg){ .name = "job", .text = file->job }, 1);
    /* The file is opened without the mutex: another process may be replacing the file, and threads
     * that add events or a name do not wait for that process. */
    path = mem_strdup(file->path);
    rc = path ? page_file_open(&opened, file->path, &first, err)
              : err_set(err, HVD_E_NOMEM, "no memory for a timeline; free memory on this host");
    if (rc) {
        mem_free(path);
        goto out;
    }
    pthread_mutex_lock(&timeline->mutex);
    timeline->file = opened;
    timeline->path = path;
    timeline->broken.code = 0;
    atomic_store(&timeline->since_us, clock_now_us());
    atomic_store(&timeline->on, true);
    for (enum timeline_lane lane = TIMELINE_ROUNDS; lane <= TIMELINE_PHASES; lane++) {
        put_meta(timeline, lane, "thread_name",
                 &(struct timeline_arg){ .name = "name", .text = lane_names[lane] });
        put_meta(timeline, lane, "thread_sort_index",
                 &(struct timeline_arg){ .name = "sort_index", .number = (int64_t)lane });
    }
    put_name(timeline);
    pthread_mutex_unlock(&timeline->mutex);

out:
    pthread_mutex_unlock(&timeline->start_lock);
    return rc;
}

/* Writes what is buffered, and turns the timeline off. Returns the first error of its file. */
int timeline_stop(struct timeline *timeline, struct hvd_err *err)
{
    int rc = 0;

    pthread_mutex_lock(&timeline->start_lock);
    if (!timeline_is_on(timeline)) {
        rc = err_set(err, HVD_E_STATE,
                     "no timeline is being written; call hvd_timeline_start first");
        goto out;
    }
    pthread_mutex_lock(&timeline->mutex);
    write_out(timeline);
    if (timeline->broken.code)
        rc = err_set(err, timeline->broken.code, "%s", timeline->broken.text);
    atomic_store(&timeline->on, false);
    page_file_close(&timeline->file);
    mem_free(timeline->path);
    timeline->path = NULL;
    pthread_mutex_unlock(&timeline->mutex);

out:
    pthread_mutex_unlock(&timeline->start_lock);
    return rc;
}

/* true: a profiler takes ranges. */
bool timeline_has_ranges(const struct timeline *timeline)
{
    return timeline && timeline->ranges;
}

/* Begins a range in a profiler, and returns its id; 0 without a profiler. */
uint64_t timeline_begin_range(const struct timeline *timeline, uint64_t bytes, const char *format,
                              ...)
{
    char text[TIMELINE_RANGE_MAX + 1] = "";
    va_list args;

    if (!timeline_has_ranges(timeline))
        return 0;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return nvtx_start(text, bytes);
}

/* Ends a range, on any thread. Without a profiler nothing happens. */
void timeline_end_range(const struct timeline *timeline, uint64_t range)
{
    if (timeline_has_ranges(timeline))
        nvtx_end(range);
}

uint64_t timeline_begin_activity(const struct timeline *timeline, const char *name, uint64_t round,
                                 uint64_t number, uint64_t bytes)
{
    struct activity activity = { .round = round, .number = number, .bytes = bytes };

    if (!timeline || !timeline->options.recorder)
        return 0;
    memcpy(activity.name, name, strnlen(name, RECORDER_NAME_BYTES));
    activity.began_us = clock_tick_us();
    return recorder_begin(timeline->options.recorder, &activity);
}

void timeline_end_activity(const struct timeline *timeline, uint64_t activity, int code)
{
    if (timeline && activity)
        recorder_end(timeline->options.recorder, activity, clock_tick_us(), code);
}

/* Turns the timeline off, if it is on, and frees it. No other thread may be in a call. */
void timeline_free(struct timeline *timeline)
{
    if (!timeline)
        return;
    (void)!timeline_stop(timeline, NULL); /* `complain` has told the owner of a failed write */
    pthread_mutex_destroy(&timeline->mutex);
    pthread_mutex_destroy(&timeline->start_lock);
    mem_free(timeline);
}
