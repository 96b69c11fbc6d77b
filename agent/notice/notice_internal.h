/*
 * notice_internal.h: the watches for notices. A giver is a source of notices: a metadata service, a
 * file or a command. A watch is a thread that asks one giver again and again.
 */
#ifndef AGENT_NOTICE_NOTICE_INTERNAL_H
#define AGENT_NOTICE_NOTICE_INTERNAL_H

#include "agent/notice/notice.h"
#include "agent/notice/notice_read.h"
#include "base/limits.h"
#include "http/client.h"
#include "proto/preemption.h"

#include <event2/event.h>
#include <pthread.h>

#define NOTICE_TEXT_MAX   512
#define NOTICE_SERVER_MAX 256

/* The result of one look at a giver. Two notices are the same if their texts are equal. */
struct notice_said {
    bool given;
    int64_t left_us;
    char text[NOTICE_TEXT_MAX];
};

struct notice_watch;

/* A row of the table of givers (sources of notices). */
struct notice_giver {
    const char *name;
    enum preemption_giver bit; /* 0: not a service; wanted if --preemption has file: or command: */
    int64_t pause_us;          /* the time between two looks */
    const char *dmi_file;      /* NULL: this giver is never found by itself */
    const char *dmi_text;      /* the machine has this giver if the text of dmi_file begins so */
    const char *server_env;    /* a variable with another address of the service */
    /* Asks the giver once. A failure is no notice, and does not withdraw an earlier notice. */
    int (*look)(struct notice_watch *watch, struct notice_said *ret_said,
                struct hvd_err *err) MUST_CHECK;
    /* Tells the giver, once after each notice, that the host is empty; may be NULL. */
    int (*empty)(struct notice_watch *watch, struct hvd_err *err) MUST_CHECK;
};

extern const struct notice_giver notice_aws, notice_gcp_preempted, notice_gcp_maintenance,
    notice_azure, notice_file, notice_command;
int notice_file_check(const char *path, struct hvd_err *err) MUST_CHECK; /* notice_check of it */

/* The watch of one giver. Only its thread uses the fields above `waits`. */
struct notice_watch {
    const struct notice_giver *giver;
    struct notice *notice;
    pthread_t thread;
    bool started;
    struct http_client *client;
    char server[NOTICE_SERVER_MAX]; /* "http://169.254.169.254" */
    struct span target;             /* the path of the file, or the command */
    char token[1024];               /* only AWS: the token that a request needs */
    int64_t token_until_us;
    char etag[NOTICE_ID_MAX];      /* only Google: the tag of the previous answer */
    char machine[NOTICE_LINE_MAX]; /* only Azure: the name of this machine */
    char event[NOTICE_ID_MAX];     /* only Azure: the event that gave the notice */
    char said[NOTICE_TEXT_MAX];    /* the text of the last notice; "": none, or withdrawn */
    bool told_empty;               /* the giver was told that the host is empty */
    unsigned failures;             /* number of looks in a row that failed */
    bool answered;                 /* a look has succeeded */

    bool waits; /* under the mutex of struct notice: the event loop has not taken `given` yet */
    struct notice_said given;
    int64_t until_us; /* when the machine of `given` goes away; TIME_NEVER: no time is known */
};

struct notice {
    const struct notice_ops *ops;
    void *arg;
    struct preemption wanted;
    int64_t default_us;
    int64_t pause_us; /* replaces the pause_us of each giver; 0: each giver keeps its own */
    struct event *told;
    int to_loop; /* an eventfd that wakes the event loop: a thread has a notice */
    int stop_fd; /* an eventfd, readable when the threads have to end */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopping, empty; /* under the mutex; empty: no worker runs on this host */
    size_t count;
    struct notice_watch watches[];
};

/* notice_ask.c: the answer to a request, and the request */
struct notice_answer {
    long status; /* the status code of HTTP */
    struct buf body;
    int64_t wall_us; /* when the server answered, by its own clock if it says so */
    char etag[NOTICE_ID_MAX];
    bool is_google; /* the answer has the header of Google's service */
};

struct notice_request {
    enum http_method method;
    const char *path;
    const char *header; /* a header that the service needs; NULL: none */
    const char *body;   /* the body of a POST; NULL: the request has none */
    int64_t limit_us;
};
/* Sends a request to watch->server, and waits for the whole answer, at most limit_us. A redirection
 * is not followed. The caller releases ret_answer->body, also after a failure. */
int notice_ask(struct notice_watch *watch, const struct notice_request *request,
               struct notice_answer *ret_answer, struct hvd_err *err) MUST_CHECK;

/* Makes the error of a look: the answer has an HTTP status that makes it useless. */
int notice_odd_status(const struct notice_answer *answer, const char *path,
                      struct hvd_err *err) MUST_CHECK;

/* Sets the notice: `what` happens at the moment at_us, or in left_us. A moment that is long past,
 * or far away, is no notice, which one line in the log says. */
void notice_say(struct notice_watch *watch, const struct notice_answer *answer, int64_t at_us,
                const char *what, struct notice_said *ret_said);
void notice_say_left(struct notice_watch *watch, int64_t left_us, const char *what,
                     struct notice_said *ret_said);

#endif
