/*
 * world_lie.h: the lies of an agent that was taken over (world_liar.c), and the command for one:
 * world_at(w, 9 * TIME_S, lie("a", LIE_FOR_OTHERS)).
 */
#ifndef TESTS_WORLD_WORLD_LIE_H
#define TESTS_WORLD_WORLD_LIE_H

#include "tests/world/world_commands.h"

enum world_lie {
    LIE_FOR_OTHERS, /* a message about a worker of another host */
    LIE_FOR_NOBODY, /* a message about a worker that was never launched */
    LIE_ROUND,      /* a message in a round that was never told */
    LIE_CHECK,      /* from here on the lies may harm the host of the liar */
    LIE_NO_ADDRESS,
    LIE_HELLO_OTHER, /* the lies in a hello: as another host */
    LIE_HELLO_TERM,
    LIE_HELLO_WORKERS,
    LIE_HELLO_KEPT,
    LIE_AGAIN,   /* from here on the lies are believed, as they are about the liar's own workers */
    LIE_CONTACT, /* READY with the contact of another host */
    LIE_WAITS,   /* its worker waits for a worker of another host, since an hour */
    LIE_COMMIT,  /* its worker has recovered with a commit that it does not have, and trains */
    LIE_OWN,     /* a random message about its own worker */
    LIE_HOLDING, /* it holds a commit for the checkpoint that it does not have */
    LIE_SAVED,   /* the next file of a checkpoint is durable, though it was not written */
    LIE_COUNT
};

struct world_command lie(const char *host, enum world_lie what);

#endif
