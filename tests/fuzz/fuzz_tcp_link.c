/*
 * fuzz_tcp_link.c: what a peer of a TCP link may send. If the first byte is odd, the rest is a
 * word of the handshake and an address. Otherwise the bytes also say which receives are posted and
 * dropped between the pieces that are read.
 */
#include "base/panic.h"
#include "collectives/link/inbox.h"
#include "collectives/link/tcp_proof.h"

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

/* The words of a handshake are read as they would be written; none of them proves anything to a
 * member whose secret the input has not got. */
static void check_words(const uint8_t *data, size_t size)
{
    static const uint8_t secret[SEAL_KEY_BYTES] = "not in the corpus";
    static const struct link_round round = { .round = 1, .secret = secret };
    const struct tcp_pair pair = { .round = &round, .dialled = 1 };
    const uint8_t nonce[SEAL_NONCE_BYTES] = { 0 };
    uint8_t words[TCP_WORD_MAX] = { 0 }, again[TCP_WORD_MAX];
    uint8_t told[TCP_ADDRESS_BYTES], ours[TCP_ANSWER_BYTES];
    struct tcp_wish wish = { SEAL_PLAIN, SEAL_ENCRYPTED };
    struct tcp_keys keys = { .dialled_proof = { 0 } };
    struct tcp_greeting greeting;
    struct tcp_address address;
    struct tcp_answer answer;
    enum seal_mode mode;

    memcpy(words, data, size < sizeof(words) ? size : sizeof(words));
    if (!tcp_greeting_read(words, &greeting)) {
        tcp_greeting_write(&greeting, again);
        ASSERT(!memcmp(again, words, TCP_GREETING_BYTES));
        ASSERT(proof_admit(&pair, nonce, words, wish, ours, &mode, &keys) == HVD_E_PROTO);
        ASSERT(proof_accept(&keys, words, words, &mode) == HVD_E_PROTO);
    }
    if (!tcp_answer_read(words, &answer)) {
        tcp_answer_write(&answer, again);
        ASSERT(!memcmp(again, words, TCP_ANSWER_BYTES));
    }
    if (!tcp_challenge_read(words, again))
        ASSERT(!memcmp(again, words + TCP_CHALLENGE_BYTES - SEAL_NONCE_BYTES, SEAL_NONCE_BYTES));
    if (!tcp_address_read(data, size, &address)) {
        tcp_address_write(&address, told);
        ASSERT(size == sizeof(told) && !memcmp(told, data, size));
    }
}

/* `choice` selects a receive. A posted receive is dropped, or its end is checked; a receive that is
 * not posted is posted, with one of a few tags. */
static int turn(struct reader *reader, uint8_t choice)
{
    size_t which = choice % RECEIVES;
    struct inbox_receive *receive = &reader->receives[which];

    if (reader->posted[which]) {
        reader->posted[which] = false;
        inbox_drop(&reader->inbox, receive);
        memset(reader->memory[which], 0, MEMORY_BYTES); /* the memory belongs to the test again */
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
        if (!rc) {
            /* Copies the bytes into the room that the inbox offers. */
            struct iovec room[2];
            size_t taken = 0;
            int pieces = inbox_room(&reader.inbox, room);

            ASSERT((pieces > 0) == inbox_is_open(&reader.inbox));
            for (int i = 0; i < pieces; i++) {
                size_t part = length - taken < room[i].iov_len ? length - taken : room[i].iov_len;

                if (part)
                    memcpy(room[i].iov_base, (data + at + 2) + taken, part);
                taken += part;
            }
            rc = taken ? inbox_fill(&reader.inbox, taken) : 0;
        }
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
