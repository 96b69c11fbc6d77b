/*
 * fake_agent.h: an agent in a test of the worker library: a thread that listens on a socket, takes
 * one worker, plays a script with it, and notes what it hears as lines (msg_describe).
 *
 * Every wait is for something that happens; one that is in vain for FAKE_PATIENCE_MS closes the
 * connection and is told by fake_agent_stop.
 */
#ifndef TESTS_LIB_FAKE_AGENT_H
#define TESTS_LIB_FAKE_AGENT_H

#include "proto/page.h"
#include "state/snapshot/snapshot.h"
#include "worker/io/agent_link.h"

#include <pthread.h>

#define FAKE_PATIENCE_MS 20000
#define FAKE_INCARNATION 7

enum fake_deed {
    FAKE_OVER,       /* hears on, until the worker hangs up */
    FAKE_HEAR,       /* until a message of this type has come, with bytes in its line */
    FAKE_SAY,        /* msg */
    FAKE_RAW,        /* these bytes of no message */
    FAKE_WELCOME,    /* with its page beside it */
    FAKE_PAGELESS,   /* the same without */
    FAKE_WRONG_PAGE, /* with that of another worker */
    FAKE_SHORT_PAGE, /* with a file that is shorter than a page */
    FAKE_GRANT,      /* room for the snapshot that was asked for, the same one each time */
    FAKE_BARE_GRANT, /* the message without the descriptor */
    FAKE_SWITCH_AT,  /* msg, for the check after that of the last AT */
    FAKE_FETCHED,    /* what was asked for last, copied from `source` */
    FAKE_HOLD,       /* until fake_agent_go */
    FAKE_CLOSE,
};

struct fake_step {
    enum fake_deed deed;
    enum msg_type type;
    const struct msg *msg;
    const char *bytes;
};

#define SAY(message)               \
    {                              \
        FAKE_SAY, 0, message, NULL \
    }
#define HEAR(wanted)                  \
    {                                 \
        FAKE_HEAR, wanted, NULL, NULL \
    }
#define HEAR_OF(wanted, part)         \
    {                                 \
        FAKE_HEAR, wanted, NULL, part \
    }
#define DO(deed)            \
    {                       \
        deed, 0, NULL, NULL \
    }

struct fake_agent {
    /* to be set between fake_agent_init and fake_agent_start */
    const struct fake_step *script;
    size_t close_at; /* the connection ends before this step; SIZE_MAX */
    struct msg_welcome_worker welcome;
    struct snapshot *source; /* borrowed */

    /* of its thread */
    char name[64];
    int listener;
    int stop_fd;
    pthread_t thread;
    bool started;
    struct agent_link link;
    int page_fd;
    struct snapshot *snapshot;
    struct msg_snapshot asked;
    uint64_t fetch, commit; /* of the last FETCH */
    uint64_t fetched;       /* the one whose commit was written */
    uint64_t check;         /* of the last AT */
    char contact[256];      /* of READY: where its peers find the worker */
    char gpu[256];          /* and its GPU */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool go;
    bool failed;
    char why[256];
    char heard[16384];
    size_t length;
};

/* Also says in the environment where it is. 0 or a code. */
int fake_agent_init(struct fake_agent *fake) MUST_CHECK;
int fake_agent_start(struct fake_agent *fake, const struct fake_step *script) MUST_CHECK;
void fake_agent_go(struct fake_agent *fake);

/* The worker has hung up, or is hung up on. false: it did not all happen, see why. */
bool fake_agent_stop(struct fake_agent *fake);
void fake_agent_release(struct fake_agent *fake); /* stopped or not */

/* Any time: was there a message whose line holds this? How many? */
bool fake_agent_heard(struct fake_agent *fake, const char *part);
bool fake_agent_await(struct fake_agent *fake, const char *part);
size_t fake_agent_count(struct fake_agent *fake, const char *part);

#endif
