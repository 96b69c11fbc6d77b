/*
 * panic.h: assertions that stay on, and what happens when one fails.
 *
 * An assertion is for our own bugs; the world's failures are codes. A failing one writes what was
 * expected to standard error, lets each registered dumper write what it remembers (the trace
 * rings), and aborts.
 */
#ifndef BASE_PANIC_H
#define BASE_PANIC_H

#include "base/base.h"
#include "base/list.h"

#define ASSERT(condition)                                          \
    do {                                                           \
        if (!(condition))                                          \
            panic(__FILE__, __LINE__, __func__, "%s", #condition); \
    } while (0)

#define PANIC(...) panic(__FILE__, __LINE__, __func__, __VA_ARGS__)

NORETURN void panic(const char *file, int line, const char *function, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* Something with a memory, asked to write it out before the process aborts. */
struct panic_dumper {
    struct list link;
    void (*dump)(struct panic_dumper *dumper);
};

/* The dumper is borrowed until it is removed. Register before other threads start. */
void panic_add_dumper(struct panic_dumper *dumper);
void panic_remove_dumper(struct panic_dumper *dumper);

/* For dumpers: straight to standard error, no buffering, no allocation. */
void panic_write(const char *text, size_t length);

#endif
