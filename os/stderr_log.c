#include "os/stderr_log.h"

#include "base/log.h"
#include "base/panic.h"
#include "os/clock.h"

#include <string.h>

static bool unstamped;

static void write_line(void *arg, const char *line, size_t length)
{
    const char *blank = unstamped ? memchr(line, ' ', length) : NULL;

    (void)arg;
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
