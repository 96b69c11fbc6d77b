/*
 * stderr_log.c: the sink of base/log.h in the programs: lines go to standard error. A reader that
 * stops must not stop a driver, which has to send heartbeats: after PATIENCE_MS a line is left out
 * and counted.
 */
#include "os/stderr_log.h"

#include "base/log.h"
#include "base/panic.h"
#include "os/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The time that a line waits for a slow reader, in milliseconds; a lease is longer. */
#define PATIENCE_MS 200

#define ERASE_LINE  "\x1b[K" /* from the cursor to the end of the line */

static bool unstamped;
static atomic_uint_fast64_t lost; /* lines that were left out since the last written line */

/* The sink of base/log.h: writes one line to standard error, or counts the line as lost. */
static void stderr_log_write(void *arg, const char *line, size_t length)
{
    const char *blank = unstamped ? memchr(line, ' ', length) : NULL;
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
    if (blank) {
        length -= (size_t)(blank + 1 - line);
        line = blank + 1;
    }
    /* A progress bar of a worker ends with a carriage return: its rest must not stand behind this
     * line. */
    if (isatty(STDERR_FILENO))
        panic_write(ERASE_LINE, strlen(ERASE_LINE));
    /* written unbuffered as whole lines, so that lines of threads and children do not mix */
    panic_write(line, length);
}

void stderr_log_open(void)
{
    static const struct log_sink sink = { stderr_log_write, clock_wall_us, NULL };

    log_open(&sink);
}

void stderr_log_stamp(bool wanted)
{
    unstamped = !wanted;
}
