/*
 * inbox.h: gives the bytes that one peer sends to the receives (requests for one message) that wait
 * for them. It uses no sockets: its caller reads them.
 *
 *     HEAD ──► BODY ──► HEAD     BODY: bytes go into the memory of the message's receive, or into
 *       │        ▲               a buffer if it has no receive yet and is small
 *       └► HELD ─┘               HELD: no more bytes are read until the receive is posted
 *
 * No member gets stuck as long as receives are posted in the order in which the peer sends; our
 * algorithms do that. A small message may also be received out of order: the messages before it are
 * buffered. Two members that each wait until the other has read a large message would be stuck on
 * any kind of link.
 */
#ifndef COLLECTIVES_LINK_INBOX_H
#define COLLECTIVES_LINK_INBOX_H

#include "base/list.h"
#include "collectives/link/tcp_wire.h"

#include <sys/uio.h>

#define INBOX_BUFFER_BYTES ((size_t)8 * 1024) /* one read takes a small message and its head */
/* the most bytes that the buffered messages of one peer take, with their struct inbox_message */
#define INBOX_ASIDE_BYTES ((size_t)64 * 1024)

struct inbox_receive {
    /* entry in inbox->posted; in no list once the message of this receive has begun to arrive */
    struct list place;
    uint64_t tag;
    uint8_t *bytes;
    size_t length;
    bool done; /* true: the receive has ended, with `code` */
    int code;  /* 0: the message is in `bytes`; or an error. Valid once `done` is true */
};

struct inbox_message; /* a small message that is buffered until its receive is posted */

enum inbox_state { INBOX_HEAD, INBOX_BODY, INBOX_HELD };

struct inbox {
    /* receives whose message has not begun to arrive, in the order of posting */
    struct list posted;
    /* small messages that arrived before their receives, in the order of arrival */
    struct list aside;
    size_t aside_bytes; /* bytes of `aside` and `kept`, at most INBOX_ASIDE_BYTES */

    enum inbox_state state;
    struct tcp_head head;       /* head of the message that arrives; valid in BODY and HELD */
    size_t left;                /* BODY: how many bytes of the message are still missing */
    uint8_t *at;                /* BODY: where the next byte goes; NULL: bytes are discarded */
    struct inbox_receive *into; /* BODY: the receive of the message that arrives; NULL: none */
    struct inbox_message *kept; /* BODY: that message, if it is buffered; else NULL */
    int over;                   /* the code given to inbox_fail; 0: more bytes may come */

    size_t begin, end; /* range of `buffer` that was read and not sorted into messages yet */
    uint8_t buffer[INBOX_BUFFER_BYTES];
};

void inbox_init(struct inbox *inbox);
void inbox_release(struct inbox *inbox); /* all receives must be done or dropped */

/* true: the inbox can take bytes now: no message is held back, and inbox_fail was not called. */
bool inbox_is_open(const struct inbox *inbox);

/* inbox_room writes to ret_room the memory for the next read, and returns how many entries it
 * wrote: 1 or 2, or 0 when the inbox is not open. inbox_fill then reports how many bytes were read
 * into that memory. HVD_E_PROTO: a message is longer than the memory of its receive; HVD_E_NOMEM.
 * After an error the caller must call inbox_fail. */
int inbox_room(struct inbox *inbox, struct iovec ret_room[2]);
int inbox_fill(struct inbox *inbox, size_t bytes) MUST_CHECK;

/* inbox_post adds a receive, which is borrowed until it is done or dropped. Its errors are those
 * of inbox_fill. inbox_drop takes a receive back that is not wanted any more; bytes of its message
 * that arrive later are discarded. */
int inbox_post(struct inbox *inbox, struct inbox_receive *receive) MUST_CHECK;
void inbox_drop(struct inbox *inbox, struct inbox_receive *receive);

/* Ends the inbox: no more bytes will come. All receives that are not done, and all later receives,
 * end with `code`. Only messages that are already buffered can still be received. */
void inbox_fail(struct inbox *inbox, int code);

#endif
