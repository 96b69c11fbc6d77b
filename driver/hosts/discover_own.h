/*
 * discover_own.h: what the files of discover.c share.
 */
#ifndef DRIVER_HOSTS_DISCOVER_OWN_H
#define DRIVER_HOSTS_DISCOVER_OWN_H

#include "base/text.h"
#include "driver/hosts/command.h"
#include "driver/hosts/complaint_log.h"
#include "driver/hosts/discover.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#define WATCH_PAUSE_MIN_US INT64_C(1000000)
#define WATCH_PAUSE_MAX_US INT64_C(30000000)

/* What is known of a watch: the newest of what it has said. */
enum watch_news { WATCH_SILENT, WATCH_HOSTS, WATCH_FAILED };

struct watch {
    enum watch_news news;
    struct hvd_err failure; /* of WATCH_FAILED */
    bool asked;             /* somebody waits for the first news */
    struct event patience;  /* until then */
    struct event again;     /* when it is started again */
    int64_t started_us;
    int64_t pause_us;
    bool spoke; /* a block has come of this run */
    /* Offsets in its output: where the block begins, and its last line, and where no end of line
     * was found so far; and whether it holds a line that is not blank. */
    size_t block;
    size_t line;
    size_t searched;
    bool filled;
};

struct discoverer {
    struct event_base *base;
    struct discover_config config;
    struct discover_ops ops;
    void *arg;
    char *path; /* of the file or the program */
    const char *argv[2];
    struct command_spec spec;
    struct command *run;
    struct complaint_log log;
    struct hosts newest; /* of a list, of a watch */
    struct watch watch;
    /* What is told from the loop next: hosts first, then the failure that came after them. */
    struct event telling;
    struct hosts hosts;
    bool has_hosts;
    struct hvd_err failure;
    bool has_failure;
};

/* Sets what is told next. The hosts are moved. */
void discover_tell(struct discoverer *discoverer, struct hosts *hosts);
void discover_tell_failure(struct discoverer *discoverer, const struct hvd_err *failure);

/* What was printed, as a set: 0, or a failure that names the source. */
int discover_read(const struct discoverer *discoverer, struct span text,
                  const struct complaint *complaint, struct hosts *ret_hosts, struct hvd_err *err);

/* Fills err: the program has ended, and not as it should; then the remedy. */
void discover_blame(const struct discoverer *discoverer, const struct command_end *end,
                    const char *remedy, struct hvd_err *err);

void watch_init(struct discoverer *discoverer);
void watch_release(struct discoverer *discoverer);
void watch_ask(struct discoverer *discoverer);

#endif
