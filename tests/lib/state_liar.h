/*
 * state_liar.h: a holder of commits in a test that does not behave: it answers so many chunks as
 * they are, and then does what it was made for. It lives in the loop of its state_hosts.
 */
#ifndef TESTS_LIB_STATE_LIAR_H
#define TESTS_LIB_STATE_LIAR_H

#include "tests/lib/state_hosts.h"
#include "wire/listener.h"

enum lie {
    LIE_DIES,         /* the connection breaks */
    LIE_IS_SILENT,    /* as one that is stopped, or cut off */
    LIE_BYTES,        /* bytes that are not those of the sum */
    LIE_PART,         /* a part of a chunk */
    LIE_NO_BYTES,     /* a sum, and no bytes */
    LIE_OTHER_INDEX,  /* a chunk that was not asked for */
    LIE_OTHER_COMMIT, /* of another commit */
    LIE_GONE,         /* the commit is gone */
    LIE_STRANGE_CODE, /* a code that nobody knows */
    LIE_OTHER_WORD,   /* a message that no holder sends */
    LIE_UNASKED,      /* more than it was asked for */
    LIE_COUNT
};

struct state_liar {
    struct listener *listener;
    struct conn *conn; /* the last that came; NULL */
    enum lie lie;
    uint64_t honest; /* chunks that it still answers as they are */
    char text[96];
    const char *room;
};

int state_liar_start(struct state_liar *liar, struct state_hosts *hosts, enum lie lie,
                     uint64_t honest) MUST_CHECK;
void state_liar_stop(struct state_liar *liar);
struct msg_source state_liar_source(struct state_liar *liar);

#endif
