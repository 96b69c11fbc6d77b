/*
 * misuse.c: ends the process when a program uses a stand-in in a way that the real library forbids,
 * and names the call. A real device might hide such a bug.
 */
#include "tests/standin/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void standin_misuse(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "stand-in: %s\n", text);
    abort();
}

int standin_number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    char *end;
    long number;

    if (!text || !text[0])
        return otherwise;
    number = strtol(text, &end, 10);
    if (*end || number < 0 || number > INT32_MAX)
        standin_misuse("%s is '%s', and no number", variable, text);
    return (int)number;
}
