/*
 * fuzz_tcp_link: what a peer of a TCP link may send. The first byte chooses: an odd one, the rest
 * is a greeting and an address; else the receives that are posted and dropped stand in the bytes
 * too, between the pieces that are read.
 */
#include "base/panic.h"
#include "collectives/link/inbox.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECEIVES     4
#define MEMORY_BYTES 64

struct reader {
    struct inbox inbox;
    struct inbox_receive receives[RECEIVES];
    bool posted[RECEIVES];
    uint8_t memory[RECEIVES][MEMORY_BYTES];
};

static void check_words(const uint8_t *data, size_t size)
{
    uint8_t greeted[TCP_GREETING_BYTES] = { 0 }, again[TCP_ADDRESS_BYTES];
    struct tcp_greeting greeting;
    struct tcp_address address;

    memcpy(greeted, data, size < sizeof(greeted) ? size : sizeof(greeted));
    if (!tcp_greeting_read(greeted, &greeting)) {
        tcp_greeting_write(&greeting, again);
        ASSERT(!memcmp(again, greeted, sizeof(greeted)));
        ASSERT(tcp_token_is(greeting.token, greeted + TCP_GREETING_BYTES - TCP_TOKEN_BYTES));
    }
    if (!tcp_address_read(data, size, &address)) {
        tcp_address_write(&address, again);
        ASSERT(size == sizeof(again) && !memcmp(again, data, size));
    }
}

/* One that is posted is dropped, or has been done; else it is posted, for one of a few tags. */
static int turn(struct reader *reader, uint8_t choice)
{
    size_t which = choice % RECEIVES;
    struct inbox_receive *receive = &reader->receives[which];

    if (reader->posted[which]) {
        reader->posted[which] = false;
        inbox_drop(&reader->inbox, receive);
        memset(reader->memory[which], 0, MEMORY_BYTES); /* ours again */
        return 0;
    }
    memset(receive, 0, sizeof(*receive));
    list_init(&receive->place);
    receive->tag = choice / RECEIVES % 8;
    receive->bytes = reader->memory[which];
    receive->length = choice / 32 * 9u;
    reader->posted[which] = true;
    return inbox_post(&reader->inbox, receive);
}

/* The bytes go into the room that the inbox gives, as far as there is any. */
static int feed(struct inbox *inbox, const uint8_t *bytes, size_t length)
{
    struct iovec room[2];
    size_t taken = 0;
    int pieces = inbox_room(inbox, room);

    ASSERT((pieces > 0) == inbox_is_open(inbox));
    for (int i = 0; i < pieces; i++) {
        size_t part = length - taken < room[i].iov_len ? length - taken : room[i].iov_len;

        if (part)
            memcpy(room[i].iov_base, bytes + taken, part);
        taken += part;
    }
    return taken ? inbox_fill(inbox, taken) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader reader;
    int rc = 0;

    if (size < 1)
        return 0;
    if (data[0] % 2) {
        check_words(data + 1, size - 1);
        return 0;
    }
    memset(&reader, 0, sizeof(reader));
    inbox_init(&reader.inbox);
    for (size_t at = 1; at + 1 < size && !rc;) {
        size_t length = data[at + 1] < size - at - 2 ? data[at + 1] : size - at - 2;

        rc = turn(&reader, data[at]);
        if (!rc)
            rc = feed(&reader.inbox, data + at + 2, length);
        ASSERT(!rc || rc == HVD_E_PROTO || rc == HVD_E_NOMEM);
        ASSERT(reader.inbox.aside_bytes <= INBOX_ASIDE_BYTES);
        at += 2 + length;
    }
    inbox_fail(&reader.inbox, HVD_E_LOST);
    for (size_t i = 0; i < RECEIVES; i++)
        ASSERT(!reader.posted[i] || reader.receives[i].done);
    inbox_release(&reader.inbox);
    return 0;
}
