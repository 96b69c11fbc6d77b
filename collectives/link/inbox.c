#include "collectives/link/inbox.h"

#include "base/mem.h"
#include "base/panic.h"

#include <string.h>

struct inbox_message {
    struct list place;
    struct tcp_head head;
    uint8_t bytes[];
};

void inbox_init(struct inbox *inbox)
{
    list_init(&inbox->posted);
    list_init(&inbox->aside);
    inbox->stage = INBOX_HEAD;
}

static void forget(struct inbox *inbox, struct inbox_message *message)
{
    list_remove(&message->place);
    inbox->aside_bytes -= sizeof(*message) + message->head.length;
    mem_free(message);
}

void inbox_release(struct inbox *inbox)
{
    if (inbox->kept)
        forget(inbox, inbox->kept);
    inbox->kept = NULL;
    LIST_EACH_SAFE (it, after, &inbox->aside)
        forget(inbox, CONTAINER_OF(it, struct inbox_message, place));
}

static struct inbox_receive *find_posted(struct inbox *inbox, uint64_t tag)
{
    LIST_EACH (it, &inbox->posted) {
        struct inbox_receive *receive = CONTAINER_OF(it, struct inbox_receive, place);

        if (receive->tag == tag)
            return receive;
    }
    return NULL;
}

static struct inbox_message *find_aside(struct inbox *inbox, uint64_t tag)
{
    LIST_EACH (it, &inbox->aside) {
        struct inbox_message *message = CONTAINER_OF(it, struct inbox_message, place);

        if (message->head.tag == tag)
            return message;
    }
    return NULL;
}

static void finish(struct inbox_receive *receive, int code)
{
    list_remove(&receive->place);
    receive->done = true;
    receive->code = code;
}

/* From aside to whom it is for. */
static int deliver(struct inbox *inbox, struct inbox_message *message,
                   struct inbox_receive *receive)
{
    if (message->head.length > receive->length)
        return HVD_E_PROTO;
    if (message->head.length)
        memcpy(receive->bytes, message->bytes, message->head.length);
    forget(inbox, message);
    finish(receive, 0);
    return 0;
}

static bool can_keep(const struct inbox *inbox, const struct tcp_head *head)
{
    size_t room = INBOX_ASIDE_BYTES - inbox->aside_bytes;

    return room >= sizeof(struct inbox_message) &&
           head->length <= room - sizeof(struct inbox_message);
}

static struct inbox_message *keep(struct inbox *inbox, const struct tcp_head *head)
{
    struct inbox_message *message = mem_alloc(sizeof(*message) + head->length);

    if (!message)
        return NULL;
    list_init(&message->place);
    message->head = *head;
    inbox->aside_bytes += sizeof(*message) + head->length;
    return message;
}

/* Where the message belongs whose head has been read. */
static int choose(struct inbox *inbox)
{
    struct inbox_receive *into = find_posted(inbox, inbox->head.tag);

    inbox->left = inbox->head.length;
    if (into && into->length < inbox->left)
        return HVD_E_PROTO;
    if (into) {
        list_remove(&into->place);
        inbox->into = into;
        inbox->at = into->bytes;
    } else if (can_keep(inbox, &inbox->head)) {
        inbox->kept = keep(inbox, &inbox->head);
        if (!inbox->kept)
            return HVD_E_NOMEM;
        inbox->at = inbox->kept->bytes;
    }
    inbox->stage = inbox->into || inbox->kept ? INBOX_BODY : INBOX_HELD;
    return 0;
}

/* Its receive may have been posted while it was on its way aside. */
static int conclude(struct inbox *inbox)
{
    struct inbox_receive *into = inbox->into, *receive;
    struct inbox_message *kept = inbox->kept;

    inbox->stage = INBOX_HEAD;
    inbox->into = NULL;
    inbox->kept = NULL;
    inbox->at = NULL;
    if (into)
        finish(into, 0);
    if (!kept)
        return 0;
    list_append(&inbox->aside, &kept->place);
    receive = find_posted(inbox, kept->head.tag);
    return receive ? deliver(inbox, kept, receive) : 0;
}

static void advance(struct inbox *inbox, size_t bytes)
{
    if (inbox->at)
        inbox->at += bytes;
    inbox->left -= bytes;
}

static void copy_body(struct inbox *inbox)
{
    size_t there = inbox->end - inbox->begin;
    size_t bytes = there < inbox->left ? there : inbox->left;

    if (inbox->at && bytes)
        memcpy(inbox->at, inbox->buffer + inbox->begin, bytes);
    inbox->begin += bytes;
    advance(inbox, bytes);
}

/* As far as what is in the buffer goes. */
static int read_on(struct inbox *inbox)
{
    int rc = 0;

    while (!rc) {
        if (inbox->stage == INBOX_HELD)
            rc = choose(inbox);
        if (inbox->stage == INBOX_HEAD) {
            if (inbox->end - inbox->begin < TCP_HEAD_BYTES)
                return 0;
            tcp_head_read(inbox->buffer + inbox->begin, &inbox->head);
            inbox->begin += TCP_HEAD_BYTES;
            rc = choose(inbox);
        }
        if (rc || inbox->stage == INBOX_HELD)
            return rc;
        copy_body(inbox);
        if (inbox->left)
            return 0;
        rc = conclude(inbox);
    }
    return rc;
}

/* The buffer holds the beginning of a head at most, but for one that is held. */
int inbox_room(struct inbox *inbox, struct iovec ret_room[2])
{
    size_t there = inbox->end - inbox->begin;
    int count = 0;

    if (!inbox_is_open(inbox))
        return 0;
    memmove(inbox->buffer, inbox->buffer + inbox->begin, there);
    inbox->begin = 0;
    inbox->end = there;
    if (inbox->stage == INBOX_BODY && inbox->at)
        ret_room[count++] = (struct iovec){ inbox->at, inbox->left };
    ret_room[count++] = (struct iovec){ inbox->buffer + there, INBOX_BUFFER_BYTES - there };
    return count;
}

int inbox_fill(struct inbox *inbox, size_t bytes)
{
    if (inbox->stage == INBOX_BODY && inbox->at) {
        size_t straight = bytes < inbox->left ? bytes : inbox->left;

        advance(inbox, straight);
        bytes -= straight;
    }
    inbox->end += bytes;
    ASSERT(inbox->end <= INBOX_BUFFER_BYTES);
    return read_on(inbox);
}

int inbox_post(struct inbox *inbox, struct inbox_receive *receive)
{
    struct inbox_message *message = find_aside(inbox, receive->tag);
    int rc = 0;

    list_append(&inbox->posted, &receive->place);
    if (message)
        rc = deliver(inbox, message, receive);
    else if (inbox->over)
        finish(receive, inbox->over);
    if (!rc && inbox->stage == INBOX_HELD && !inbox->over)
        rc = read_on(inbox);
    return rc;
}

void inbox_drop(struct inbox *inbox, struct inbox_receive *receive)
{
    list_remove(&receive->place);
    if (inbox->into == receive) {
        inbox->into = NULL;
        inbox->at = NULL;
    }
}

void inbox_fail(struct inbox *inbox, int code)
{
    struct inbox_receive *into = inbox->into;

    inbox->over = code;
    inbox->at = NULL;
    inbox->into = NULL;
    if (into)
        finish(into, code);
    while (!list_empty(&inbox->posted))
        finish(CONTAINER_OF(inbox->posted.next, struct inbox_receive, place), code);
}
