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

/* the error that hvd_last_error shows to this thread */
static _Thread_local struct hvd_err last;
static _Thread_local struct hvd_err cleared; /* the failure that fail_begin has cleared */

struct hvd_err *fail_err(void)
{
    return &last;
}

/* Called at the beginning of a function of hvd.h that may fail: clears the thread's last error.
 * fail_latest still finds it. */
void fail_begin(void)
{
    if (!last.code)
        return;
    cleared = last;
    last = (struct hvd_err){ .code = 0 };
}

void fail_forget(void)
{
    last.code = cleared.code = 0;
    last.text[0] = cleared.text[0] = '\0';
}

/* Returns the latest failure of this thread, also if fail_begin has cleared it since. */
const struct hvd_err *fail_latest(void)
{
    return last.code ? &last : &cleared;
}

/* Sets the calling thread's error, and returns the code. The text is made before err_set writes it,
 * because a parameter may point into the thread's last error text. */
int fail(int code, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return err_set(&last, code, "%s", text);
}

/* Sets the calling thread's error to the general text of a code below 0. Returns the code. */
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
