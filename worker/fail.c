/*
 * fail.c: the last error of each thread, for hvd_last_error, and the other functions of hvd.h that
 * need no worker: a program may call them before hvd_init and in a forked child.
 *
 * Called wherever a function of hvd.h fails. Invariant: code and text are those of the same
 * failure.
 */
#include "worker/fail.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct hvd_err last;

struct hvd_err *fail_err(void)
{
    return &last;
}

int fail(int code, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return err_set(&last, code, "%s", text);
}

int fail_plain(int code)
{
    return code < 0 ? err_set(&last, code, "%s", err_text(code)) : code;
}

const char *hvd_last_error(void)
{
    return last.text;
}

const char *hvd_strerror(int code)
{
    return err_text(code);
}

const char *hvd_version(void)
{
    return HVD_VERSION_TEXT;
}
