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

/* How long a line may wait for whoever reads; a lease is longer. */
#define PATIENCE_MS 200

static bool unstamped;
static atomic_uint_fast64_t lost; /* lines, since the last that was written */

/* A pipe that has room has room for a line, which is shorter than PIPE_BUF. Once somebody has not
 * read for too long nobody waits for him again, until he does. */
static bool has_room(void)
{
    struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };

    return poll(&out, 1, atomic_load(&lost) ? 0 : PATIENCE_MS) != 0;
}

static void say_lost(void)
{
    uint64_t lines = atomic_exchange(&lost, 0);
    char text[80];
    int length;

    if (!lines)
        return;
    length = snprintf(text, sizeof(text),
                      "(%" PRIu64 " lines of the log are missing here: nobody read them)\n", lines);
    panic_write(text, (size_t)length);
}

static void write_line(void *arg, const char *line, size_t length)
{
    const char *blank = unstamped ? memchr(line, ' ', length) : NULL;

    (void)arg;
    if (!has_room()) {
        atomic_fetch_add(&lost, 1);
        return;
    }
    say_lost();
    if (blank) {
        length -= (size_t)(blank + 1 - line);
        line = blank + 1;
    }
    panic_write(line, length); /* unbuffered, whole lines: threads and children do not mix */
}

static int64_t wall_us(void *arg)
{
    (void)arg;
    return clock_wall_us();
}

void stderr_log_open(void)
{
    static const struct log_sink sink = { write_line, wall_us, NULL };

    log_open(&sink);
}

void stderr_log_stamp(bool wanted)
{
    unstamped = !wanted;
}
