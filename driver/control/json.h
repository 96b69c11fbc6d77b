/*
 * json.h: writes JSON for other programs, one value on one line. After a failure all further calls
 * do nothing, and json.rc has the code of the failure.
 *
 *     struct json json = { .out = &out };
 *     json_open(&json, NULL, '{');
 *     json_text(&json, "host", host);
 *     json_close(&json, '}');
 *     rc = json.rc;
 *
 * Inside a list the name of a value is NULL. A text may have any bytes: a byte that is not UTF-8
 * becomes U+FFFD.
 */
#ifndef DRIVER_CONTROL_JSON_H
#define DRIVER_CONTROL_JSON_H

#include "base/buf.h"

struct json {
    struct buf *out;
    int rc;
    bool comma; /* a comma belongs before the next value */
};

void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *name, const char *text);
void json_number(struct json *json, const char *name, uint64_t number);
void json_bool(struct json *json, const char *name, bool value);
/* Writes a text that is a value in JSON already. */
void json_raw(struct json *json, const char *name, const char *text);
void json_null(struct json *json, const char *name);
/* Closes the outermost bracket and ends the line. Returns json->rc. */
int json_end(struct json *json) MUST_CHECK;
/* Writes a duration in seconds; TIME_NEVER becomes null. */
void json_seconds(struct json *json, const char *name, int64_t us);

#endif
