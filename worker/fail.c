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
