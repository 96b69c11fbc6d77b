/*
 * base.h: included by every file: the fixed-width types, and a few macros.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF_LIKE(format_arg, first_arg) __attribute__((format(printf, format_arg, first_arg)))
#define MUST_CHECK                         __attribute__((warn_unused_result))
#define NORETURN                           __attribute__((noreturn))

#define ARRAY_SIZE(array)                  (sizeof(array) / sizeof((array)[0]))

/* Returns the object of type `type` whose field `member` stands at `pointer`. */
#define CONTAINER_OF(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
