#include "base/panic.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct list dumpers = LIST_INIT(dumpers);

void panic_add_dumper(struct panic_dumper *dumper)
{
    list_append(&dumpers, &dumper->link);
}

void panic_remove_dumper(struct panic_dumper *dumper)
{
    list_remove(&dumper->link);
}

void panic_write(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(STDERR_FILENO, text, length);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* nobody is listening; the abort still tells */
        text += wrote;
        length -= (size_t)wrote;
    }
}

void panic(const char *file, int line, const char *function, const char *format, ...)
{
    static bool dumping;
    char text[512];
    va_list args;
    int used;

    used = snprintf(text, sizeof(text), "bug in hvd-elastic: %s:%d: %s: ", file, line, function);
    if (used > 0 && (size_t)used < sizeof(text)) {
        va_start(args, format);
        vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
        va_end(args);
    }
    panic_write(text, strlen(text));
    panic_write("\n", 1);
    if (!dumping) {
        dumping = true; /* a dumper that panics itself must not be asked again */
        LIST_EACH (it, &dumpers) {
            struct panic_dumper *dumper = CONTAINER_OF(it, struct panic_dumper, link);

            dumper->dump(dumper);
        }
    }
    abort();
}
