/*
 * state_liar.h: a holder of commits that misbehaves, for a test: it answers `honest` chunks
 * rightly, and then tells its lie. It runs in the event loop of its state_hosts.
 */
#ifndef TESTS_LIB_STATE_LIAR_H
#define TESTS_LIB_STATE_LIAR_H

#include "tests/lib/state_hosts.h"
#include "wire/listener.h"

enum lie {
    LIE_DIES,         /* closes the connection */
    LIE_IS_SILENT,    /* answers nothing, like a holder that is stopped or cut off */
    LIE_BYTES,        /* sends bytes that do not match their checksum */
    LIE_PART,         /* sends only a part of a chunk */
    LIE_NO_BYTES,     /* sends a checksum without bytes */
    LIE_OTHER_INDEX,  /* sends a chunk that was not asked for */
    LIE_OTHER_COMMIT, /* sends a chunk of another commit */
    LIE_GONE,         /* says that the commit is gone */
    LIE_STRANGE_CODE, /* sends a code that does not exist */
    LIE_OTHER_WORD,   /* sends a message that no holder sends */
    LIE_UNASKED,      /* sends more chunks than it was asked for */
    LIE_COUNT
};

struct state_liar {
    struct listener *listener;
    struct conn *conn; /* the newest connection; NULL: none */
    enum lie lie;
    uint64_t honest; /* chunks that it still answers rightly */
    char text[96];
    const char *room;
};

int state_liar_start(struct state_liar *liar, struct state_hosts *hosts, enum lie lie,
                     uint64_t honest) MUST_CHECK;
void state_liar_stop(struct state_liar *liar);
struct msg_source state_liar_source(struct state_liar *liar);

#endif
