/*
 * json.h: writing JSON, for programs that ask. One value on one line; what fails first is kept.
 *
 *     struct json json = { .out = &out };
 *     json_open(&json, NULL, '{');
 *     json_text(&json, "host", host);
 *     json_close(&json, '}');
 *     rc = json.rc;
 *
 * A name is NULL in a list. Texts are foreign: what is not UTF-8 becomes U+FFFD.
 */
#ifndef DRIVER_ASK_JSON_H
#define DRIVER_ASK_JSON_H

#include "base/buf.h"

struct json {
    struct buf *out;
    int rc;
    bool comma; /* a value stands before the next one */
};

void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *name, const char *text);
void json_number(struct json *json, const char *name, uint64_t number);
void json_bool(struct json *json, const char *name, bool value);
void json_null(struct json *json, const char *name);
void json_seconds(struct json *json, const char *name, int64_t us); /* null: TIME_NEVER */

#endif
