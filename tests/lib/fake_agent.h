/*
 * fake_agent.h: an agent in a test of the worker library. A thread listens on a socket, accepts one
 * worker, plays a script with it, and notes each message that it receives as a line (msg_describe).
 *
 * Every wait ends: a wait that lasts longer than FAKE_PATIENCE_MS closes the connection, and
 * fake_agent_stop reports the step.
 */
#ifndef TESTS_LIB_FAKE_AGENT_H
#define TESTS_LIB_FAKE_AGENT_H

#include "proto/page.h"
#include "state/snapshot/snapshot.h"
#include "worker/io/agent_link.h"

#include <pthread.h>

#define FAKE_PATIENCE_MS 100000
#define FAKE_INCARNATION 7

enum fake_deed {
    FAKE_OVER,       /* receives until the worker closes the connection */
    FAKE_HEAR,       /* waits for a message of this type whose line contains `bytes` */
    FAKE_SAY,        /* sends msg */
    FAKE_RAW,        /* sends these bytes, which are no message */
    FAKE_WELCOME,    /* sends WELCOME with the worker's page */
    FAKE_PAGELESS,   /* sends WELCOME without a page */
    FAKE_WRONG_PAGE, /* sends WELCOME with the page of another worker */
    FAKE_SHORT_PAGE, /* sends WELCOME with a file that is shorter than a page */
    FAKE_GRANT,      /* grants the snapshot that was asked for, the same memory each time */
    FAKE_BARE_GRANT, /* sends the grant without the descriptor */
    FAKE_SWITCH_AT,  /* sends msg for the check after that of the last NEXT_CHECK */
    FAKE_FETCHED,    /* answers the last FETCH with the commit of `source` */
    FAKE_HOLD,       /* waits for fake_agent_go */
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
    /* set these between fake_agent_init and fake_agent_start */
    const struct fake_step *script;
    size_t close_at; /* the connection ends before this step; SIZE_MAX: it stays */
    struct msg_welcome_worker welcome;
    struct snapshot *source; /* borrowed */
    bool per_rank;           /* `source` is a checkpoint that has the entries of this rank too */
    const char *fetched_text;

    /* used by the agent's thread */
    char name[64];
    int listener;
    int stop_fd;
    pthread_t thread;
    bool started;
    struct agent_link link;
    int page_fd;
    struct snapshot *snapshot;
    struct msg_snapshot asked;
    uint64_t fetch, commit; /* from the last FETCH */
    uint64_t fetched;       /* the fetch whose commit was written */
    uint64_t check;         /* from the last NEXT_CHECK */
    char contact[256];      /* from READY: the address at which peers find the worker */
    char gpu[256];          /* from READY: the worker's GPU */
    uint64_t stalled_round; /* from the last STALLED: its round, and what it waits for */
    char stalled[512];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool go;
    bool failed;
    char why[256];
    char heard[16384];
    size_t length;
};

/* Also sets the environment variables that tell a worker the agent's address. 0 or a code. */
int fake_agent_init(struct fake_agent *fake) MUST_CHECK;
int fake_agent_start(struct fake_agent *fake, const struct fake_step *script) MUST_CHECK;
void fake_agent_go(struct fake_agent *fake);

/* The connection is closed, by the worker or here. false: the script did not run to its end; `why`
 * says the reason. */
bool fake_agent_stop(struct fake_agent *fake);
void fake_agent_release(struct fake_agent *fake); /* also when the agent was not stopped */

/* May be called at any time. heard: a message came whose line contains the part; await: waits for
 * such a message; count: how many came. */
bool fake_agent_heard(struct fake_agent *fake, const char *part);
bool fake_agent_await(struct fake_agent *fake, const char *part);
size_t fake_agent_count(struct fake_agent *fake, const char *part);

#endif
