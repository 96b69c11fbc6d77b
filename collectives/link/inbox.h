/*
 * inbox.h: what one peer sends, byte by byte, and the receives that it is for. No sockets here.
 *
 *     HEAD ──► BODY ──► HEAD      straight into the memory of its receive, if that has been posted,
 *       │        ▲                or put aside if it is small;
 *       └► HELD ─┘                else nothing more is read until its receive is posted
 *
 * Nobody is stuck as long as receives are posted in the order in which the other side sends, as our
 * algorithms do. A small message may also overtake: what came before it, and was not asked for, is
 * put aside. Two that each wait until the other has read a large message are stuck on any link.
 */
#ifndef COLLECTIVES_LINK_INBOX_H
#define COLLECTIVES_LINK_INBOX_H

#include "base/list.h"
#include "collectives/link/tcp_words.h"

#include <sys/uio.h>

#define INBOX_BUFFER_BYTES ((size_t)8 * 1024)  /* a small message and its head come in one read */
#define INBOX_ASIDE_BYTES  ((size_t)64 * 1024) /* of one peer, with what it costs to keep them */

struct inbox_receive {
    struct list place; /* in no list: something comes, or has come, for it */
    uint64_t tag;
    uint8_t *bytes;
    size_t length;
    bool done;
    int code; /* once it is done */
};

struct inbox_message; /* that was put aside */

enum inbox_stage { INBOX_HEAD, INBOX_BODY, INBOX_HELD };

struct inbox {
    struct list posted; /* receives, in order */
    struct list aside;  /* messages, in order */
    size_t aside_bytes;

    enum inbox_stage stage;
    struct tcp_head head; /* BODY, HELD */
    size_t left;          /* BODY: what is missing, */
    uint8_t *at;          /* where it belongs; NULL: nowhere */
    struct inbox_receive *into;
    struct inbox_message *kept;
    int over; /* why nothing more will come; 0: it may */

    size_t begin, end; /* of what is in the buffer, unread */
    uint8_t buffer[INBOX_BUFFER_BYTES];
};

void inbox_init(struct inbox *inbox);
void inbox_release(struct inbox *inbox); /* no receive is left */

/* Something can be read now. */
static inline bool inbox_is_open(const struct inbox *inbox)
{
    return inbox->stage != INBOX_HELD && !inbox->over;
}

/* Where to read to: 1 or 2 pieces, or 0: it is not open. Then that so many bytes have been read.
 * HVD_E_PROTO: a message is longer than its memory; HVD_E_NOMEM. Then inbox_fail. */
int inbox_room(struct inbox *inbox, struct iovec ret_room[2]);
int inbox_fill(struct inbox *inbox, size_t bytes) MUST_CHECK;

/* Borrowed until it is done or dropped; dropped, what comes for it goes nowhere. Fails as
 * inbox_fill. */
int inbox_post(struct inbox *inbox, struct inbox_receive *receive) MUST_CHECK;
void inbox_drop(struct inbox *inbox, struct inbox_receive *receive);

/* Nothing more will come: all that are not done are, with this code, and so are those to come; but
 * what has been put aside is there. */
void inbox_fail(struct inbox *inbox, int code);

#endif
