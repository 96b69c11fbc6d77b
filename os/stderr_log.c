/*
 * stderr_log.c: the sink of base/log.h in the programs: lines go to standard error. A reader that
 * stops must not stop a driver, which has to send heartbeats: after PATIENCE_MS a line is left out
 * and counted.
 */
#include "os/stderr_log.h"

#include "base/log.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/log_time.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The milliseconds that a line waits for a slow reader. They are fewer than a lease has, so a
 * driver that waits still sends its heartbeats in time. */
#define PATIENCE_MS 200

#define ERASE_LINE  "\x1b[K" /* erases from the cursor to the end of the line */

#define RED         "\x1b[1;31m"
#define YELLOW      "\x1b[33m"
#define DIM         "\x1b[2m"
#define PLAIN       "\x1b[0m"

static struct stderr_log_style log_style = { .stamps = true, .colours = COLOURS_NEVER };
static atomic_uint_fast64_t lost; /* lines that were left out since the last written line */

/* Writes a line that base/log.h has made, "STAMP LEVEL PART: TEXT", in the style of the program:
 * with or without a time, and with a colour for its level. `terminal`: standard error is one. */
static void stderr_log_show(const char *line, size_t length, bool terminal)
{
    bool colours =
        log_style.colours == COLOURS_ALWAYS || (log_style.colours == COLOURS_AUTO && terminal);
    const char *level = memchr(line, ' ', length);
    const char *text = level ? memchr(level, ':', length - (size_t)(level - line)) : NULL;
    char moment[TIME_STAMP_MAX], shown[LOG_LINE_MAX + TIME_STAMP_MAX + 32];
    const char *colour;
    int used = 0;

    if (!level || !text) { /* the line has another form: it is written as it is */
        panic_write(line, length);
        return;
    }
    level++;
    /* the level, by its first letter: error, warning, info or debug */
    colour = !colours || *level == 'i' ? "" : *level == 'e' ? RED : *level == 'w' ? YELLOW : DIM;
    if (log_style.stamps)
        used = snprintf(shown, sizeof(shown), "%s%s%s ", colours ? DIM : "",
                        log_time_text(clock_wall_us(), moment), colours ? PLAIN : "");
    used += snprintf(shown + used, sizeof(shown) - (size_t)used, "%s%.*s%s%.*s", colour,
                     (int)(text - level), level, *colour ? PLAIN : "",
                     (int)(length - (size_t)(text - line)), text);
    /* written unbuffered as whole lines, so that lines of threads and children do not mix */
    panic_write(shown, (size_t)used);
}

/* The sink of base/log.h: writes one line to standard error, or counts the line as lost. */
static void stderr_log_write(void *arg, const char *line, size_t length)
{
    bool terminal = isatty(STDERR_FILENO);
    struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
    uint64_t lines;
    char text[80];

    (void)arg;
    /* A pipe that poll calls writable has room for a line, because a line is shorter than PIPE_BUF.
     * After one line was left out, no line waits until the reader reads again. */
    if (poll(&out, 1, atomic_load(&lost) ? 0 : PATIENCE_MS) == 0) {
        atomic_fetch_add(&lost, 1);
        return;
    }
    lines = atomic_exchange(&lost, 0);
    if (lines)
        panic_write(text, (size_t)snprintf(text, sizeof(text),
                                           "(%" PRIu64 " lines of the log are missing here: the "
                                           "reader was too slow)\n",
                                           lines));
    /* A progress bar of a worker ends with a carriage return. The bar's rest must not stand behind
     * this line, which may be shorter. */
    if (terminal)
        panic_write(ERASE_LINE, strlen(ERASE_LINE));
    stderr_log_show(line, length, terminal);
}

/* Makes standard error the place of the log. */
void stderr_log_open(void)
{
    static const struct log_sink sink = { stderr_log_write, clock_wall_us, NULL };

    log_open(&sink);
}

/* Sets how lines look. COLOURS_AUTO means no colours if NO_COLOR is set, or if TERM says that the
 * terminal cannot show them. */
void stderr_log_set(const struct stderr_log_style *style)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

    log_style = *style;
    if (style->colours == COLOURS_AUTO &&
        ((none && *none) || !term || !*term || !strcmp(term, "dumb")))
        log_style.colours = COLOURS_NEVER;
}
