/*
 * event_target.h: where --on-event-url posts events to: the URL, and the headers in the file of
 * --on-event-url-header-file. Both may hold secrets: no error quotes them, and only the name of the
 * server (`name`) may be shown.
 */
#ifndef DRIVER_CONTROL_EVENT_TARGET_H
#define DRIVER_CONTROL_EVENT_TARGET_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

#define EVENT_TARGET_NAME_MAX (LIMIT_HOST_NAME_BYTES + 24)

struct event_target {
    char name[EVENT_TARGET_NAME_MAX]; /* the URL without user and path: "https://hooks:8443" */
    struct buf url;                   /* the whole URL */
    /* Each is "Name: value", in `text`. */
    const char *headers[LIMIT_HOOK_HEADERS];
    size_t header_count;
    struct buf text; /* the file of headers, whose lines end in a NUL each */
};

/* Reads the URL and, if header_file is not NULL, that file. The codes of file_read_secret;
 * HVD_E_INVAL: the URL or a line of the file is wrong; HVD_E_LIMIT; HVD_E_NOMEM. After a failure
 * the target needs no release. */
int event_target_init(struct event_target *target, const char *url, const char *header_file,
                      struct hvd_err *err) MUST_CHECK;
void event_target_release(struct event_target *target); /* wipes the secrets */

/* Checks that a private authority makes sense for the URL, whose server is reached by TLS then;
 * and, if ca_file is not NULL, that this file has a certificate. */
int event_target_ca(const char *url, const char *ca_file, struct hvd_err *err) MUST_CHECK;

/* The parts of event_target_init. _name: checks the URL, and names its server. _headers: cuts
 * target->text into headers; `path` is for errors. */
int event_target_name(const char *url, char ret_name[EVENT_TARGET_NAME_MAX],
                      struct hvd_err *err) MUST_CHECK;
int event_target_headers(struct event_target *target, const char *path,
                         struct hvd_err *err) MUST_CHECK;

#endif
