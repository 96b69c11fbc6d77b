/*
 * panic.c: ends a process that has found a bug of its own. Called by ASSERT and PANIC. Writes the
 * place, then the last trace lines of every object that has a dumper, then aborts; allocates no
 * memory.
 */
#include "base/panic.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct list dumpers = LIST_INIT(dumpers);

/* Registers an object that writes what it has recorded when the process panics. */
void panic_add_dumper(struct panic_dumper *dumper)
{
    list_append(&dumpers, &dumper->link);
}

void panic_remove_dumper(struct panic_dumper *dumper)
{
    list_remove(&dumper->link);
}

/* Writes bytes to standard error without a buffer, so that a panic loses none of them. */
void panic_write(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t wrote = write(STDERR_FILENO, text, length);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* standard error is closed; the abort still shows the failure */
        text += wrote;
        length -= (size_t)wrote;
    }
}

/* Reports a bug of hvd-elastic with its place in the code, lets each dumper write what it knows,
 * and aborts. */
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
        dumping = true; /* a dumper that panics itself is not called again */
        LIST_EACH (it, &dumpers) {
            struct panic_dumper *dumper = CONTAINER_OF(it, struct panic_dumper, link);

            dumper->dump(dumper);
        }
    }
    abort();
}
