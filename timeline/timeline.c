#include "timeline/timeline.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "timeline/page_file.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES PAGE_FILE_PAGE
#define TEXT_MAX       200 /* bytes of a text that are shown */
#define HALF           ((size_t)PAGE_FILE_PAGE * PAGE_FILE_PAGES / 2)
#define OLD_US         (200 * TIME_MS)
#define CLOCK_LOOKS    3

/* By this a file of ours is known; the job's number follows. */
#define FIRST_SAME "[\n{\"ph\":\"i\",\"s\":\"g\",\"cat\":\"job\",\"ts\":"

struct timeline {
    uint64_t process;
    int64_t wall_us; /* from the monotonic clock to the one that other machines have too */
    void (*complain)(void *arg, const char *text);
    void *arg;
    char *path;

    pthread_mutex_t mutex; /* of what follows */
    struct page_file file;
    bool broken;
    int64_t first_us; /* when the first event that is not written came */
};

static const char *const lane_names[] = {
    [TIMELINE_ROUNDS] = "rounds", [TIMELINE_CHANGES] = "changes",
    [TIMELINE_STATE] = "state",   [TIMELINE_COLLECTIVES] = "collectives",
    [TIMELINE_PHASES] = "phases",
};

/* ---- one line -------------------------------------------------------------------------------- */

struct line {
    char text[LINE_MAX_BYTES];
    size_t used;
    bool whole;
};

static void PRINTF_LIKE(2, 3) add(struct line *line, const char *format, ...)
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

static void add_char(struct line *line, char c)
{
    if (line->used + 1 < sizeof(line->text))
        line->text[line->used++] = c;
    else
        line->whole = false;
}

/* What is no text is shown as far as it is ASCII. A cut is between two characters. */
static void add_text(struct line *line, const char *text)
{
    size_t length = strnlen(text, TEXT_MAX);
    bool clean;

    if (text[length]) {
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    clean = text_is_clean(text, length);
    add_char(line, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\')
            add(line, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            add(line, "\\u%04x", c);
        else if (c >= 0x80 && !clean)
            add_char(line, '?');
        else
            add_char(line, (char)c);
    }
    add_char(line, '"');
}

static void add_args(struct line *line, const struct timeline_arg *args, size_t count)
{
    add(line, ",\"args\":{");
    for (size_t i = 0; i < count; i++) {
        if (i)
            add_char(line, ',');
        add_text(line, args[i].name);
        add_char(line, ':');
        if (args[i].text)
            add_text(line, args[i].text);
        else
            add(line, "%" PRId64, args[i].number);
    }
    add(line, "}},\n");
}

static void begin_line(const struct timeline *timeline, struct line *line, enum timeline_lane lane,
                       const char *phase, int64_t at_us)
{
    line->used = 0;
    line->whole = true;
    add(line, "{\"ph\":\"%s\",\"pid\":%" PRIu64 ",\"tid\":%d,\"cat\":\"%s\",\"ts\":%" PRId64, phase,
        timeline->process, (int)lane, lane_names[lane], time_add(timeline->wall_us, at_us));
}

/* ---- what is not written yet; the mutex is held -----------------------------------------------
 */

static void write_out(struct timeline *timeline)
{
    struct hvd_err err;
    char text[ERR_TEXT_MAX + TEXT_QUOTE_MAX];

    if (!page_file_write(&timeline->file, &err))
        return;
    timeline->broken = true;
    snprintf(text, sizeof(text), "timeline %s: %s; nothing more of this worker is written to it",
             timeline->path, err.text);
    if (timeline->complain)
        timeline->complain(timeline->arg, text);
}

static void put(struct timeline *timeline, const struct line *line, int64_t now_us)
{
    if (timeline->broken || !line->whole)
        return;
    if (!timeline->file.used)
        timeline->first_us = now_us;
    if (!page_file_add(&timeline->file, line->text, line->used)) {
        write_out(timeline);
        timeline->first_us = now_us;
        if (timeline->broken || !page_file_add(&timeline->file, line->text, line->used))
            return;
    }
    if (timeline->file.used >= HALF || now_us - timeline->first_us >= OLD_US)
        write_out(timeline);
}

static void put_line(struct timeline *timeline, const struct line *line, int64_t now_us)
{
    pthread_mutex_lock(&timeline->mutex);
    put(timeline, line, now_us);
    pthread_mutex_unlock(&timeline->mutex);
}

void timeline_put_out(struct timeline *timeline)
{
    pthread_mutex_lock(&timeline->mutex);
    if (!timeline->broken)
        write_out(timeline);
    pthread_mutex_unlock(&timeline->mutex);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void put_meta(struct timeline *timeline, enum timeline_lane lane, const char *what,
                     const struct timeline_arg *arg)
{
    int64_t now_us = clock_now_us();
    struct line line;

    begin_line(timeline, &line, lane, "M", now_us);
    add(&line, ",\"name\":\"%s\"", what);
    add_args(&line, arg, 1);
    put_line(timeline, &line, now_us);
}

void timeline_put_name(struct timeline *timeline, const char *name, uint32_t rank)
{
    put_meta(timeline, TIMELINE_ROUNDS, "process_name",
             &(struct timeline_arg){ .name = "name", .text = name });
    put_meta(timeline, TIMELINE_ROUNDS, "process_sort_index",
             &(struct timeline_arg){ .name = "sort_index", .number = rank });
}

static void name_lanes(struct timeline *timeline)
{
    for (enum timeline_lane lane = TIMELINE_ROUNDS; lane <= TIMELINE_PHASES; lane++) {
        put_meta(timeline, lane, "thread_name",
                 &(struct timeline_arg){ .name = "name", .text = lane_names[lane] });
        put_meta(timeline, lane, "thread_sort_index",
                 &(struct timeline_arg){ .name = "sort_index", .number = (int64_t)lane });
    }
}

void timeline_put_event(struct timeline *timeline, const struct timeline_event *event)
{
    int64_t lasted_us = event->ended_us - event->begun_us;
    struct line line;

    begin_line(timeline, &line, event->lane, "X", event->begun_us);
    add(&line, ",\"dur\":%" PRId64 ",\"name\":", lasted_us > 0 ? lasted_us : 0);
    add_text(&line, event->name);
    add_args(&line, event->args, event->arg_count);
    put_line(timeline, &line, event->ended_us);
}

void timeline_put_mark(struct timeline *timeline, const struct timeline_event *event)
{
    struct line line;

    begin_line(timeline, &line, event->lane, "i", event->begun_us);
    add(&line, ",\"s\":\"t\",\"name\":");
    add_text(&line, event->name);
    add_args(&line, event->args, event->arg_count);
    put_line(timeline, &line, event->begun_us);
}

void timeline_put_phase(struct timeline *timeline, const char *name, uint64_t bytes,
                        int64_t begun_us, int64_t ended_us)
{
    const struct timeline_arg arg = { .name = "bytes", .number = (int64_t)(bytes & INT64_MAX) };

    timeline_put_event(timeline, &(struct timeline_event){ .lane = TIMELINE_PHASES,
                                                           .name = name,
                                                           .begun_us = begun_us,
                                                           .ended_us = ended_us,
                                                           .args = &arg,
                                                           .arg_count = bytes ? 1 : 0 });
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Between two looks at the one clock, the nearest ones of several, lies a look at the other. */
static int64_t wall_offset_us(void)
{
    int64_t least_us = TIME_NEVER;
    int64_t offset_us = 0;

    for (int i = 0; i < CLOCK_LOOKS; i++) {
        int64_t before_us = clock_now_us();
        int64_t wall_us = clock_wall_us();
        int64_t took_us = clock_now_us() - before_us;

        if (took_us >= least_us)
            continue;
        least_us = took_us;
        offset_us = wall_us - before_us - took_us / 2;
    }
    return offset_us;
}

int64_t timeline_now_us(const struct timeline *timeline)
{
    return timeline ? clock_now_us() : 0;
}

static int open_file(struct timeline *timeline, const struct timeline_options *options,
                     struct hvd_err *err)
{
    struct line line = { .whole = true };
    struct page_file_first first = { .same = sizeof(FIRST_SAME) - 1,
                                     .number = (uint64_t)options->job_began_us };

    add(&line, FIRST_SAME "%" PRIu64 ",\"pid\":%" PRIu64 ",\"tid\":%d,\"name\":", first.number,
        timeline->process, (int)TIMELINE_ROUNDS);
    add_text(&line, "the job begins");
    add_args(&line, &(struct timeline_arg){ .name = "job", .text = options->job }, 1);
    first.text = line.text;
    return page_file_open(&timeline->file, options->path, &first, err);
}

int timeline_open(const struct timeline_options *options, struct timeline **ret_timeline,
                  struct hvd_err *err)
{
    struct timeline *timeline = mem_zalloc(sizeof(*timeline));
    int rc;

    if (timeline)
        timeline->path = mem_strdup(options->path);
    if (!timeline || !timeline->path) {
        mem_free(timeline);
        return err_set(err, HVD_E_NOMEM, "no memory for a timeline");
    }
    timeline->process = options->process;
    timeline->wall_us = wall_offset_us();
    timeline->complain = options->complain;
    timeline->arg = options->arg;
    rc = open_file(timeline, options, err);
    if (rc) {
        mem_free(timeline->path);
        mem_free(timeline);
        return rc;
    }
    pthread_mutex_init(&timeline->mutex, NULL);
    name_lanes(timeline);
    *ret_timeline = timeline;
    return 0;
}

void timeline_close(struct timeline *timeline)
{
    if (!timeline)
        return;
    timeline_put_out(timeline);
    page_file_close(&timeline->file);
    pthread_mutex_destroy(&timeline->mutex);
    mem_free(timeline->path);
    mem_free(timeline);
}
