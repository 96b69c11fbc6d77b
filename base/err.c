/*
 * err.c: the one table of codes with their texts, and errors as text. Called by every function that
 * can fail. The text of an err is one line, and is written only on failure.
 */
#include "base/err.h"

#include "base/text.h"

#include <stdarg.h>
#include <string.h>

#define CODES(X)                                              \
    X(HVD_OK, "success")                                      \
    X(HVD_HOSTS_UPDATED, "the membership is about to change") \
    X(HVD_LEFT, "this worker has left the job")               \
    X(HVD_DONE, "the job has finished")                       \
    X(HVD_EPOCH_END, "the epoch is over")                     \
    X(HVD_FINISHED, "the training is done")                   \
    X(HVD_E_NOMEM, "out of memory")                           \
    X(HVD_E_INVAL, "invalid argument or input")               \
    X(HVD_E_LIMIT, "a limit would be exceeded")               \
    X(HVD_E_STATE, "not allowed at this moment")              \
    X(HVD_E_NOTFOUND, "not found")                            \
    X(HVD_E_EXISTS, "already there")                          \
    X(HVD_E_IO, "input or output failed")                     \
    X(HVD_E_FULL, "no space left")                            \
    X(HVD_E_DENIED, "permission denied")                      \
    X(HVD_E_BUSY, "in use elsewhere")                         \
    X(HVD_E_CORRUPT, "stored data is damaged")                \
    X(HVD_E_VERSION, "another version")                       \
    X(HVD_E_PROTO, "the other side broke the protocol")       \
    X(HVD_E_TIMEOUT, "timed out")                             \
    X(HVD_E_REVOKED, "the round was revoked")                 \
    X(HVD_E_MISMATCH, "two sides disagree")                   \
    X(HVD_E_LOST, "the other side is gone")                   \
    X(HVD_E_UNSUPPORTED, "not supported here")                \
    X(HVD_E_INTERNAL, "internal error")                       \
    X(HVD_E_EXCEPTION, "the program has raised an exception")

/* Returns the text of a code, which is never NULL. */
const char *err_text(int code)
{
    switch (code) {
#define TEXT(name, text) \
    case name: return text;
        CODES(TEXT)
#undef TEXT
    default: return "unknown code";
    }
}

/* Returns the name that a code has in hvd.h. */
const char *err_name(int code)
{
    switch (code) {
#define NAME(name, text) \
    case name: return #name;
        CODES(NAME)
#undef NAME
    default: return "HVD_?";
    }
}

/* Fills the error and returns the code, so that a caller can return both in one line. `err` may be
 * NULL. */
int err_set(struct hvd_err *err, int code, const char *format, ...)
{
    char text[ERR_TEXT_MAX]; /* a copy, because an argument may point into err->text */
    va_list args;
    size_t length;

    if (!err)
        return code;
    va_start(args, format);
    length = text_line(text, sizeof(text), format, args);
    va_end(args);
    err->code = code;
    memcpy(err->text, text, length + 1);
    return code;
}

/* Puts a name and ": " before the text of the error. An error without a text gets the text of its
 * code. */
int err_prefix(struct hvd_err *err, int code, const char *format, ...)
{
    char prefix[ERR_TEXT_MAX];
    va_list args;

    if (!err)
        return code;
    err->text[sizeof(err->text) - 1] = '\0'; /* the err may never have been filled */
    va_start(args, format);
    text_line(prefix, sizeof(prefix), format, args);
    va_end(args);
    return err_set(err, code, "%s: %s", prefix, err->text[0] ? err->text : err_text(code));
}
