/*
 * source_internal.h: what a kind of source implements, and what discover.c does for all kinds.
 */
#ifndef DISCOVERY_SOURCES_SOURCE_INTERNAL_H
#define DISCOVERY_SOURCES_SOURCE_INTERNAL_H

#include "base/buf.h"
#include "base/text.h"
#include "discovery/sources/discover.h"
#include "os/command/stderr_tail.h"

#include <event2/event.h>
#include <event2/event_struct.h>

/* One kind of source. A new kind needs a file that defines such a struct, a declaration below, and
 * a row in discover.c. */
struct discover_source {
    const char *option; /* the option of hvd-elastic, without "--" */
    /* the error for a blank text, such as "is empty"; it follows the source's name */
    const char *when_empty;
    bool is_hostfile;   /* true: hosts_parse_hostfile reads the text; false: hosts_parse_text */
    size_t state_bytes; /* the size of the memory at discoverer->state */

    /* Checks config.value and sets discoverer->name. `close` is called even if `open` has failed.
     */
    int (*open)(struct discoverer *discoverer, struct hvd_err *err);

    /* Begins to find the hosts. discover_answer gets the hosts or the failure, within this call or
     * later; several calls of `ask` may get one answer. */
    void (*ask)(struct discoverer *discoverer);

    /* Ends what `open` and `ask` have begun; discover_free frees the state afterwards. NULL: there
     * is nothing to end. */
    void (*close)(struct discoverer *discoverer);
};

extern const struct discover_source discover_list;
extern const struct discover_source discover_file;
extern const struct discover_source discover_script;
extern const struct discover_source discover_watch;
extern const struct discover_source discover_batch;

struct discoverer {
    const struct discover_source *source;
    struct event_base *base;
    struct discover_config config;
    struct discover_ops ops;
    void *arg;
    const char *name; /* name of the source in error texts: its path, or "host list" */
    char *path;       /* path of the file or program; NULL: the source is a list */
    void *state; /* memory of the source's own: source->state_bytes bytes, zeroed at the start */

    /* The answer that the owner gets in the next iteration of the event loop: first the hosts, then
     * a failure that came after these hosts. */
    struct event tell_event;
    struct hosts hosts;
    bool has_hosts;
    struct hvd_err failure;
    bool has_failure;
};

/* Called by a source that has an answer. In the next iteration of the event loop the owner gets
 * `hosts` if rc is 0, otherwise the failure `err`. `hosts` is empty afterwards in both cases: its
 * contents are moved, or released. */
void discover_answer(struct discoverer *discoverer, int rc, struct hosts *hosts,
                     const struct hvd_err *err);

/* Gives the owner a copy of `hosts` in the next iteration of the event loop. */
void discover_answer_copy(struct discoverer *discoverer, const struct hosts *hosts);

/* Reads hosts from the text of a source. After a failure err names the source, and quotes the
 * standard error of its program if stderr_tail is not NULL. */
int discover_read(const struct discoverer *discoverer, struct span text,
                  const struct stderr_tail *stderr_tail, struct hosts *ret_hosts,
                  struct hvd_err *err) MUST_CHECK;

/* Appends the first line of a program's standard error to the text of err. */
void discover_quote_stderr(struct hvd_err *err, const struct stderr_tail *stderr_tail);

/* Sets `path` and `name` of a source that is a file or a program, from config.value. */
int discover_take_path(struct discoverer *discoverer, struct hvd_err *err) MUST_CHECK;

#endif
