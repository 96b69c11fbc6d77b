/*
 * inbox.c: gives the bytes of one peer to the receives that they are for; called by tcp_stream.c,
 * which reads the socket. inbox.h has the rules. A small message without a receive is put aside:
 * it is buffered until its receive is posted. Such messages never take more than INBOX_ASIDE_BYTES,
 * so a peer cannot use up our memory.
 */
#include "collectives/link/inbox.h"

#include "base/mem.h"
#include "base/panic.h"

#include <string.h>

struct inbox_message {
    struct list place;
    struct tcp_head head;
    uint8_t bytes[];
};

/* Prepares an inbox, all of whose bytes are 0, for the first message. */
void inbox_init(struct inbox *inbox)
{
    list_init(&inbox->posted);
    list_init(&inbox->aside);
    inbox->state = INBOX_HEAD;
}

/* Frees a buffered message; its bytes count no longer towards INBOX_ASIDE_BYTES. */
static void inbox_forget(struct inbox *inbox, struct inbox_message *message)
{
    list_remove(&message->place);
    inbox->aside_bytes -= sizeof(*message) + message->head.length;
    mem_free(message);
}

/* Frees what the inbox has buffered: the message that arrives, and those put aside. */
void inbox_release(struct inbox *inbox)
{
    if (inbox->kept)
        inbox_forget(inbox, inbox->kept);
    LIST_EACH_SAFE (it, after, &inbox->aside)
        inbox_forget(inbox, CONTAINER_OF(it, struct inbox_message, place));
}

/* Finds the oldest receive with this tag whose message has not begun to arrive. NULL: there is
 * none. */
static struct inbox_receive *find_posted(struct inbox *inbox, uint64_t tag)
{
    LIST_EACH (it, &inbox->posted) {
        struct inbox_receive *receive = CONTAINER_OF(it, struct inbox_receive, place);

        if (receive->tag == tag)
            return receive;
    }
    return NULL;
}

/* Ends a receive. Its owner looks at `done`, and frees or uses the receive again. */
static void receive_done(struct inbox_receive *receive, int code)
{
    list_remove(&receive->place);
    receive->done = true;
    receive->code = code;
}

/* Copies a buffered message to its receive, and ends both. HVD_E_PROTO: it is longer than
 * `receive`. */
static int inbox_deliver(struct inbox *inbox, struct inbox_message *message,
                         struct inbox_receive *receive)
{
    if (message->head.length > receive->length)
        return HVD_E_PROTO;
    if (message->head.length)
        memcpy(receive->bytes, message->bytes, message->head.length);
    inbox_forget(inbox, message);
    receive_done(receive, 0);
    return 0;
}

/* Called when the head of a message has been read, and again in the state HELD: chooses where the
 * body of the message goes. The body goes into the memory of its receive. Without a receive, a
 * small message is kept in a buffer of its own, and a large one is held back. HVD_E_PROTO: the
 * message is longer than the memory of its receive. */
static int choose_place(struct inbox *inbox)
{
    struct inbox_receive *into = find_posted(inbox, inbox->head.tag);
    size_t room = INBOX_ASIDE_BYTES - inbox->aside_bytes;
    struct inbox_message *kept;

    inbox->left = inbox->head.length;
    if (into && into->length < inbox->left)
        return HVD_E_PROTO;
    if (into) {
        list_remove(&into->place);
        inbox->into = into;
        inbox->at = into->bytes;
    } else if (room >= sizeof(*kept) && inbox->left <= room - sizeof(*kept)) {
        kept = mem_alloc(sizeof(*kept) + inbox->left);
        if (!kept)
            return HVD_E_NOMEM;
        list_init(&kept->place);
        kept->head = inbox->head;
        inbox->aside_bytes += sizeof(*kept) + inbox->left;
        inbox->kept = kept;
        inbox->at = kept->bytes;
    }
    inbox->state = inbox->into || inbox->kept ? INBOX_BODY : INBOX_HELD;
    return 0;
}

/* Counts `bytes` of the body that have come. at NULL: the body is discarded, because its receive
 * was dropped. */
static void inbox_advance(struct inbox *inbox, size_t bytes)
{
    if (inbox->at)
        inbox->at += bytes;
    inbox->left -= bytes;
}

/* Sorts the bytes in the buffer into messages, as far as possible. 0: more bytes are needed, or
 * a large message is held back until its receive is posted. A code: the bytes are wrong, and the
 * inbox must take no more (inbox_fail). */
static int sort_buffer(struct inbox *inbox)
{
    struct inbox_receive *into;
    struct inbox_message *kept;
    size_t there, bytes;
    int rc = 0;

    while (!rc) {
        if (inbox->state == INBOX_HELD)
            rc = choose_place(inbox);
        if (inbox->state == INBOX_HEAD) {
            if (inbox->end - inbox->begin < TCP_HEAD_BYTES)
                return 0;
            tcp_head_read(inbox->buffer + inbox->begin, &inbox->head);
            inbox->begin += TCP_HEAD_BYTES;
            rc = choose_place(inbox);
        }
        if (rc || inbox->state == INBOX_HELD)
            return rc;
        there = inbox->end - inbox->begin;
        bytes = there < inbox->left ? there : inbox->left;
        if (inbox->at && bytes)
            memcpy(inbox->at, inbox->buffer + inbox->begin, bytes);
        inbox->begin += bytes;
        inbox_advance(inbox, bytes);
        if (inbox->left)
            return 0;
        /* The body is complete. If the message was being buffered, its receive may have been posted
         * meanwhile. */
        into = inbox->into;
        kept = inbox->kept;
        inbox->state = INBOX_HEAD;
        inbox->into = NULL;
        inbox->kept = NULL;
        inbox->at = NULL;
        if (into)
            receive_done(into, 0);
        if (!kept) /* the bytes are in the memory of the receive, or were discarded */
            continue;
        list_append(&inbox->aside, &kept->place);
        into = find_posted(inbox, kept->head.tag);
        rc = into ? inbox_deliver(inbox, kept, into) : 0;
    }
    return rc;
}

/* true: bytes may be read from the peer: no large message waits for its receive (HELD), and
 * inbox_fail was not called. */
bool inbox_is_open(const struct inbox *inbox)
{
    return inbox->state != INBOX_HELD && !inbox->over;
}

/* Lists the memory for the next read of the peer's socket: first the memory of the message that is
 * arriving, then the buffer. `at` is NULL if the receive of this message was dropped (inbox_drop):
 * then its bytes come into the buffer, from which sort_buffer discards them. The buffer always has
 * room, because it holds at most the beginning of a head. Only in the state HELD (a large message
 * has no receive yet) it may be full; then, and after inbox_fail, the function lists nothing: 0. */
int inbox_room(struct inbox *inbox, struct iovec ret_room[2])
{
    size_t there = inbox->end - inbox->begin;
    int count = 0;

    if (!inbox_is_open(inbox))
        return 0;
    memmove(inbox->buffer, inbox->buffer + inbox->begin, there);
    inbox->begin = 0;
    inbox->end = there;
    if (inbox->state == INBOX_BODY && inbox->at)
        ret_room[count++] = (struct iovec){ inbox->at, inbox->left };
    ret_room[count++] = (struct iovec){ inbox->buffer + there, INBOX_BUFFER_BYTES - there };
    return count;
}

/* Tells the inbox that `bytes` bytes were read into the memory of inbox_room. The first of them are
 * in the memory of the arriving message already; those after them are in the buffer and are sorted.
 */
int inbox_fill(struct inbox *inbox, size_t bytes)
{
    if (inbox->state == INBOX_BODY && inbox->at) {
        size_t straight = bytes < inbox->left ? bytes : inbox->left;

        inbox_advance(inbox, straight);
        bytes -= straight;
    }
    inbox->end += bytes;
    ASSERT(inbox->end <= INBOX_BUFFER_BYTES);
    return sort_buffer(inbox);
}

/* Adds a receive (inbox.h). Its message may have come before it: buffered, then it ends at once; or
 * held back, then the inbox goes on reading. */
int inbox_post(struct inbox *inbox, struct inbox_receive *receive)
{
    struct inbox_message *message = NULL;
    int rc = 0;

    LIST_EACH (it, &inbox->aside) {
        struct inbox_message *aside = CONTAINER_OF(it, struct inbox_message, place);

        if (!message && aside->head.tag == receive->tag)
            message = aside;
    }
    /* The receive goes into the list first, because both ends below remove it from the list. */
    list_append(&inbox->posted, &receive->place);
    if (message)
        rc = inbox_deliver(inbox, message, receive);
    else if (inbox->over)
        receive_done(receive, inbox->over);
    if (!rc && inbox->state == INBOX_HELD && !inbox->over)
        rc = sort_buffer(inbox);
    return rc;
}

/* Takes back a receive (inbox.h): its memory is written no more. If its message is arriving, the
 * rest of that message is discarded. */
void inbox_drop(struct inbox *inbox, struct inbox_receive *receive)
{
    list_remove(&receive->place);
    if (inbox->into == receive) {
        inbox->into = NULL;
        inbox->at = NULL;
    }
}

/* Ends the inbox (inbox.h): the receive whose message is arriving ends with `code`, and so do all
 * receives whose message has not begun to arrive. */
void inbox_fail(struct inbox *inbox, int code)
{
    struct inbox_receive *into = inbox->into;

    inbox->over = code;
    inbox->at = NULL;
    inbox->into = NULL;
    if (into)
        receive_done(into, code);
    while (!list_empty(&inbox->posted))
        receive_done(CONTAINER_OF(inbox->posted.next, struct inbox_receive, place), code);
}
