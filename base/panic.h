/*
 * panic.h: assertions, which stay on in every build, and what happens when one fails.
 *
 * An assertion is for bugs of hvd-elastic; failures of its surroundings are error codes. A failing
 * assertion writes what was expected to standard error, lets each registered dumper write its
 * memory (the trace rings), and aborts.
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

/* An object that writes what it has recorded before the process aborts. */
struct panic_dumper {
    struct list link;
    void (*dump)(struct panic_dumper *dumper);
};

/* Registers a dumper, which is borrowed until it is removed. Called before other threads start. */
void panic_add_dumper(struct panic_dumper *dumper);
void panic_remove_dumper(struct panic_dumper *dumper);

/* For dumpers: writes to standard error, without buffering and without allocation. */
void panic_write(const char *text, size_t length);

#endif
