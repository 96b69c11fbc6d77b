/*
 * test_codec.c: proto/codec: every message with every field is equal after encoding and decoding,
 * limits hold on both sides, and damaged bytes are refused with a reason.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "tests/lib/fixture.h"
#include "tests/lib/heap.h"
#include "tests/lib/msg_random.h"

#include <string.h>

/* Encodes the message, reads the frame, and decodes it into *back. 0, or a code. */
static int round_trip(const struct msg *msg, struct buf *wire, struct frame_reader *reader,
                      struct msg *ret_back, struct hvd_err *err)
{
    const uint8_t *at;
    struct frame frame;
    size_t length;
    int rc;

    buf_clear(wire);
    rc = msg_encode(msg, wire, err);
    if (rc)
        return rc;
    at = (const uint8_t *)wire->data;
    length = wire->length;
    rc = frame_feed(reader, &at, &length, &frame, err);
    if (rc < 0)
        return rc;
    return rc == 1 && length == 0 ? msg_decode(&frame, ret_back, err) : HVD_E_INTERNAL;
}

/* ---- keys ---- */

/* A heap that frees nothing, so that a test sees what freed memory still has. */
static _Alignas(max_align_t) char freed[64 * 1024];
static size_t freed_used;

static void *freed_alloc(void *arg, size_t bytes)
{
    char *block = freed + freed_used;

    (void)arg;
    bytes = (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (bytes > sizeof(freed) - freed_used)
        return NULL;
    freed_used += bytes;
    return block;
}

static void *freed_resize(void *arg, void *block, size_t bytes)
{
    void *moved = freed_alloc(arg, bytes);

    return moved && block ? memmove(moved, block, bytes) : moved;
}

static void freed_free(void *arg, void *block)
{
    (void)arg;
    (void)block;
}

/* Encodes the message twice, so that the buffer of frames grows; reads both frames, and copies the
 * messages. Frees all of that again. */
static int send_twice(const struct msg *msg)
{
    struct frame_reader from;
    const uint8_t *at;
    struct frame frame;
    struct buf frames;
    struct hvd_err err;
    size_t length;
    int rc;

    buf_init(&frames, 1 << 16);
    frame_reader_init(&from, LIMIT_FRAME_BODY_BYTES);
    rc = msg_encode(msg, &frames, &err);
    if (!rc)
        rc = msg_encode(msg, &frames, &err);
    at = (const uint8_t *)buf_text(&frames);
    length = frames.length;
    while (!rc && length && frame_feed(&from, &at, &length, &frame, &err) == 1) {
        struct msg read = { 0 }, copy = { 0 };

        rc = msg_decode(&frame, &read, &err);
        if (!rc)
            rc = msg_copy(&read, &copy);
        msg_release(&copy);
        msg_release(&read);
    }
    frame_reader_release(&from);
    buf_release(&frames);
    return rc;
}

static struct frame_reader reader;
static struct arena arena;
static struct msg back;
static struct buf wire;

static void begin(struct test *t)
{
    (void)t;
    frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
    arena_init(&arena, 1 << 24);
    back = (struct msg){ 0 };
    buf_init(&wire, 1 << 26);
}

static void end(struct test *t)
{
    (void)t;
    heap_use(); /* a case may have set another heap */
    msg_release(&back);
    frame_reader_release(&reader);
    buf_release(&wire);
    arena_release(&arena);
}
FIXTURE(begin, end)

/* Sends each kind of random message through the codec, with lists of up to list_max entries. */
static void every_message_survives_the_wire(struct test *t, size_t times, size_t list_max)
{
    struct hvd_err err = { 0 };
    struct rng rng;

    rng_seed(&rng, 7);
    for (size_t i = 0; i < times; i++) {
        const struct msg_kind *kind;

        for (size_t k = 0; (kind = msg_kind_at(k)); k++) {
            const char *difference;
            struct msg msg;

            CHECK_OK(t, msg_random(kind->type, &rng, list_max, &arena, &msg));
            CHECK_OK(t, round_trip(&msg, &wire, &reader, &back, &err));
            difference = msg_difference(&msg, &back);
            msg_release(&back);
            if (difference)
                test_fail(t, kind->name, 0, "%s differs", difference);
            arena_release(&arena);
        }
    }
    msg_release(NULL);
}

TEST(round_trips_once)
{
    every_message_survives_the_wire(t, 1, 2);
}

TEST_FLAGS(round_trips_often, TEST_NO_TORTURE)
{
    every_message_survives_the_wire(t, 60, 40);
}

TEST_FLAGS(round_trips_long_lists, TEST_NO_TORTURE)
{
    every_message_survives_the_wire(t, 2, 3000);
}

TEST(empty_messages_have_empty_texts)
{
    struct frame frame = { .type = MSG_REFUSED };
    struct msg msg = { 0 };

    CHECK_OK(t, msg_decode(&frame, &msg, NULL));
    CHECK_TEXT(t, msg.u.refused.text, "");
    msg_release(&msg);
}

/* A message without its term, incarnation or round can be neither encoded nor decoded. */
TEST(a_required_key_must_be_there)
{
    const struct msg_kind *kind;
    struct hvd_err err = { 0 };

    buf_init(&wire, 10000);
    for (size_t i = 0; (kind = msg_kind_at(i)); i++) {
        static const char *const names[] = { "has no term", "names no worker", "names no round" };

        for (unsigned key = 0; key < 3; key++) {
            struct msg msg = { .type = kind->type };
            struct frame frame = { .type = (uint16_t)kind->type };

            if (!(kind->keys & (1u << key)))
                continue;
            msg.term = key == 0 ? 0 : 1;
            msg.incarnation = key == 1 ? 0 : 1;
            msg.round = key == 2 ? 0 : 1;
            CHECK_CODE(t, msg_encode(&msg, &wire, &err), HVD_E_PROTO);
            CHECK_HAS(t, err.text, kind->name);
            CHECK_HAS(t, err.text, names[key]);
            CHECK_INT(t, wire.length, ==, 0);
            CHECK_CODE(t, msg_decode(&frame, &msg, &err), HVD_E_PROTO);
            CHECK_HAS(t, err.text, "the message ");
        }
    }
}

/* Encoding the message must fail with this code and this text. */
static void refuse(struct test *t, const struct msg *msg, int code, const char *text)
{
    struct hvd_err err = { 0 };

    buf_clear(&wire);
    CHECK_OK(t, buf_append_text(&wire, "before"));
    CHECK_CODE(t, msg_encode(msg, &wire, &err), code);
    CHECK_HAS(t, err.text, text);
    CHECK_TEXT(t, buf_text(&wire), "before");
}

TEST(fields_out_of_range_are_not_sent)
{
    struct msg msg = { .type = MSG_EXITED, .incarnation = 7 };
    struct msg kill = { .type = MSG_KILL, .term = 1, .incarnation = 7, .u.kill.reason = "x" };
    char long_text[LIMIT_TEXT_BYTES + 2];

    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    msg.u.exited.slot = LIMIT_SLOTS_PER_HOST;
    refuse(t, &msg, HVD_E_PROTO, "EXITED: slot is 1024, at most 1023");
    msg.u.exited.slot = 0;
    msg.u.exited.witness = WITNESS_COUNT;
    refuse(t, &msg, HVD_E_PROTO, "EXITED: witness is 5");
    msg.u.exited.witness = 0;
    msg.u.exited.ran_us = -1;
    refuse(t, &msg, HVD_E_PROTO, "EXITED: ran_us is -1 us");
    kill.u.kill.grace_us = LIMIT_DURATION_US + 1;
    refuse(t, &kill, HVD_E_PROTO, "KILL: grace_us");
    kill.u.kill.grace_us = TIME_NEVER;
    kill.u.kill.reason = "bell \a";
    refuse(t, &kill, HVD_E_PROTO, "the text \"bell \\x07\" has control characters or is not UTF-8");
    kill.u.kill.reason = NULL;
    refuse(t, &kill, HVD_E_INVAL, "KILL: reason is NULL");
    kill.u.kill.reason = long_text;
    refuse(t, &kill, HVD_E_LIMIT, "KILL: reason has 1025 bytes, at most 1024");
}

TEST(lists_have_limits)
{
    struct msg_held held[LIMIT_COMMITS_HELD + 1] = { { 0 } };
    const char *texts[LIMIT_ADDRESSES + 1];
    char long_text[LIMIT_TEXT_BYTES + 2];
    uint8_t byte = 0;
    struct msg msg = { .type = MSG_RECOVERING, .incarnation = 1, .round = 1 };
    struct msg ready = { .type = MSG_READY, .incarnation = 1 };
    struct msg output = { .type = MSG_OUTPUT, .incarnation = 1 };
    struct msg revoke = { .type = MSG_REVOKE, .term = 1, .round = 1, .u.revoke.reason = "" };

    msg.u.recovering.held = (struct msg_held_list){ held, ARRAY_SIZE(held) };
    refuse(t, &msg, HVD_E_LIMIT, "held has 5 entries, at most 4");
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        texts[i] = "a";
    ready.u.ready.addresses = (struct msg_texts){ texts, ARRAY_SIZE(texts) };
    refuse(t, &ready, HVD_E_LIMIT, "addresses has 17 entries");
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    texts[0] = long_text;
    ready.u.ready.addresses.count = 1;
    refuse(t, &ready, HVD_E_LIMIT, "addresses has 1025 bytes");
    output.u.output.data = (struct msg_bytes){ &byte, LIMIT_OUTPUT_CHUNK_BYTES + 1 };
    refuse(t, &output, HVD_E_LIMIT, "data has 65537 bytes");
    revoke.u.revoke.lost = (struct msg_ids){ NULL, LIMIT_WORKERS + 1 };
    refuse(t, &revoke, HVD_E_LIMIT, "lost has 131073 entries");
}

TEST(a_body_has_a_limit)
{
    static char big[LIMIT_ARG_BYTES + 1];
    const char *texts[64];
    struct msg msg = { .type = MSG_LAUNCH, .term = 1, .incarnation = 1, .u.launch.cwd = "/" };

    memset(big, 'x', sizeof(big) - 1);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        texts[i] = big;
    msg.u.launch.env = (struct msg_texts){ texts, ARRAY_SIZE(texts) };
    refuse(t, &msg, HVD_E_LIMIT, "LAUNCH: the message has 8388");
}

TEST(a_full_buffer_takes_nothing)
{
    struct msg msg = {
        .type = MSG_BEAT, .u.beat = {.sequence = 1, .answers = 2}
    };
    struct hvd_err err = { 0 };

    buf_init(&wire, FRAME_HEADER_BYTES);
    CHECK_CODE(t, msg_encode(&msg, &wire, &err), HVD_E_LIMIT);
    CHECK_INT(t, wire.length, ==, 0);
}

static int put_varint(struct buf *out, uint64_t value)
{
    int rc = 0;

    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));

        rc = rc ? rc : buf_append(out, &byte, 1);
        value >>= 7;
    } while (value);
    return rc;
}

static int decode(unsigned type, const void *body, size_t length, struct hvd_err *err)
{
    struct frame frame = { .type = (uint16_t)type, .body = body, .length = length };
    struct msg msg = { 0 };
    int rc = msg_decode(&frame, &msg, err);

    msg_release(&msg);
    return rc;
}

static int decode_buf(unsigned type, const struct buf *body, struct hvd_err *err)
{
    return decode(type, buf_text(body), body->length, err);
}

/* Makes the body of READY with `entries` copies of an encoded entry; returns its length. */
static size_t fill_manifest(char *body, const char *entry, size_t entry_length, size_t entries)
{
    body[0] = 0x10;
    body[1] = 1;
    for (size_t i = 0; i < entries; i++)
        memcpy(body + 2 + i * entry_length, entry, entry_length);
    return 2 + entries * entry_length;
}

TEST(a_manifest_of_a_million_entries_is_refused)
{
    static char body[2 + 7 * 1000000];
    struct hvd_err err = { 0 };
    size_t length = fill_manifest(body, "\x2a\x00", 2, 1000000);

    CHECK_CODE(t, decode(MSG_READY, body, length, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "READY: decoding needs more than");
    length = fill_manifest(body, "\x2a\x05\x0a\x01x\x10\x01", 7, 1000000); /* entry "x" of 1 byte */
    CHECK_CODE(t, decode(MSG_READY, body, length, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "READY: decoding needs more than");
}

TEST(a_manifest_over_its_limit_is_refused)
{
    static char body[2 + 7 * (LIMIT_MANIFEST_ENTRIES + 1)];
    const char *entry = "\x2a\x05\x0a\x01x\x10\x01";
    struct hvd_err err = { 0 };
    size_t length = fill_manifest(body, entry, 7, LIMIT_MANIFEST_ENTRIES + 1);

    CHECK_OK(t, decode(MSG_READY, body, length - 7, &err));
    CHECK_CODE(t, decode(MSG_READY, body, length, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "entries has 65537 entries, at most 65536");
}

TEST(a_malformed_body_is_refused)
{
    static const char *const bodies[] = {
        "\xff",     /* a tag without an end */
        "\x0a",     /* a tag without its length */
        "\x2a\x7f", /* a part that is longer than the body */
        "\x0b",     /* a group, which proto3 does not have */
        "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* a number of 11 bytes */
    };
    struct hvd_err err = { 0 };

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        buf_clear(&wire);
        CHECK_OK(t, buf_append_text(&wire, bodies[i]));
        CHECK_CODE(t, decode_buf(MSG_READY, &wire, &err), HVD_E_PROTO);
        CHECK_TEXT(
            t, err.text,
            "the message READY cannot be decoded; install the same version of hvd-elastic on both "
            "sides");
    }
    CHECK_CODE(t, decode_buf(4711, &wire, &err), HVD_E_PROTO);
    CHECK_TEXT(
        t, err.text,
        "the message type 4711 is unknown; install the same version of hvd-elastic on both sides");
}

TEST(unknown_fields_are_ignored)
{
    struct hvd_err err = { 0 };

    CHECK_OK(t, put_varint(&wire, 2 << 3)); /* incarnation = 5 */
    CHECK_OK(t, put_varint(&wire, 5));
    CHECK_OK(t, put_varint(&wire, 1000 << 3)); /* field 1000 is not ours */
    CHECK_OK(t, put_varint(&wire, UINT64_MAX));
    CHECK_OK(t, put_varint(&wire, 1001 << 3 | 2));
    CHECK_OK(t, put_varint(&wire, 3));
    CHECK_OK(t, buf_append_text(&wire, "abc"));
    CHECK_OK(t, decode_buf(MSG_EXITED, &wire, &err));
}

TEST(an_unknown_enum_value_is_refused)
{
    struct hvd_err err = { 0 };

    CHECK_OK(t, buf_append(&wire, "\x10\x05\x30\x63", 4)); /* ended = 99 */
    CHECK_CODE(t, decode_buf(MSG_EXITED, &wire, &err), HVD_E_PROTO);
    CHECK_HAS(t, err.text, "EXITED: ended is 99");
}

TEST(describes_in_one_line)
{
    static const uint64_t lost[] = { 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    struct msg exited = { .type = MSG_EXITED, .incarnation = 7 };
    struct msg revoke = { .type = MSG_REVOKE, .term = 2, .round = 5 };
    char text[200];

    exited.u.exited =
        (struct msg_exited){ .slot = 2, .ended = ENDED_SIGNAL, .value = -9, .ran_us = 1500000 };
    CHECK_TEXT(t, msg_describe(&exited, text, sizeof(text)),
               "EXITED incarnation=7 slot=2 ended=2 value=-9 ran=1.5s");
    CHECK_TEXT(t, msg_describe(&exited, text, 12), "EXITED inca");
    revoke.u.revoke = (struct msg_revoke){
        {lost, 2},
        "worker 3 died\n"
    };
    CHECK_TEXT(t, msg_describe(&revoke, text, sizeof(text)),
               "REVOKE term=2 round=5 lost=3,4 reason=\"worker 3 died\\x0a\"");
    revoke.u.revoke = (struct msg_revoke){
        {lost, 10},
        NULL
    };
    CHECK_TEXT(t, msg_describe(&revoke, text, sizeof(text)),
               "REVOKE term=2 round=5 lost=3,4,5,6,7,8,9,10,... (10)");
    CHECK_TEXT(t, msg_describe(&(struct msg){ .type = MSG_DONE }, text, sizeof(text)), "DONE");
    CHECK_TEXT(t, msg_describe(&(struct msg){ .type = (enum msg_type)9 }, text, sizeof(text)),
               "UNKNOWN");
}

TEST(every_message_can_be_described)
{
    const struct msg_kind *kind;
    struct rng rng;
    char text[120];

    rng_seed(&rng, 3);
    arena_init(&arena, 1 << 24);
    for (size_t i = 0; (kind = msg_kind_at(i)); i++) {
        struct msg msg;

        CHECK_OK(t, msg_random(kind->type, &rng, 20, &arena, &msg));
        CHECK_HAS(t, msg_describe(&msg, text, sizeof(text)), kind->name);
        CHECK_INT(t, strlen(text), <, sizeof(text));
        CHECK(t, !strchr(text, '\n'));
    }
}

TEST_FLAGS(encoding_an_unknown_type_is_a_bug, TEST_NO_TORTURE)
{
    struct msg msg = { .type = (enum msg_type)9 };

    buf_init(&wire, 100);
    CHECK_PANICS(t, "binding", (void)msg_encode(&msg, &wire, NULL));
}

/* Otherwise a receiver of minor version 0 would end its connection. */
TEST(newer_messages_may_be_skipped)
{
    struct msg unusable = { .type = MSG_UNUSABLE,
                            .incarnation = 7,
                            .u.unusable = { "its device" } };
    struct msg remark = {
        .type = MSG_REMARK, .incarnation = 7, .round = 1, .u.remark = { "it is slow" }
    };
    struct msg persist = { .type = MSG_PERSIST, .incarnation = 7, .round = 1, .u.persist = { 1 } };
    struct msg persisted = {
        .type = MSG_PERSISTED, .term = 1, .incarnation = 7, .u.persisted = {1, 0, ""}
    };
    struct msg store = { .type = MSG_STORE, .incarnation = 7, .u.store = { .key = "k" } };
    struct msg stored = {
        .type = MSG_STORED, .term = 1, .incarnation = 7, .u.stored = { .text = "" }
    };
    struct msg autopsy = {
        .type = MSG_AUTOPSY,
        .incarnation = 7,
        .u.autopsy = {.host = "", .reason = "", .core_pattern = ""}
    };
    struct msg left = { .type = MSG_LEFT, .incarnation = 7 };

    buf_init(&wire, 100);
    CHECK_OK(t, msg_encode(&autopsy, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&store, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&stored, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&persist, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&persisted, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&unusable, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&remark, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, FRAME_MAY_SKIP);
    buf_clear(&wire);
    CHECK_OK(t, msg_encode(&left, &wire, NULL));
    CHECK_INT(t, wire.data[5], ==, 0);
}

/* The driver's queue, the connections and all that keeps a message use these buffers and arenas. */
TEST_FLAGS(keys_are_wiped_when_their_memory_is_freed, TEST_NO_TORTURE)
{
    static const struct mem_ops ops = { freed_alloc, freed_resize, freed_free, NULL, NULL };
    static const char key[] = "this key of 32 bytes is a secret";
    const struct msg_bytes bytes = { (const uint8_t *)key, STATE_KEY_BYTES };
    const struct msg messages[] = {
        {.type = MSG_STATE_KEY, .term = 1,  .round = 1,                              .u.state_key.key = bytes},
        { .type = MSG_REKEY,    .term = 1,  .u.rekey = { .epoch = 1, .key = bytes }},
        { .type = MSG_ROUND,            .term = 1, .round = 1,                 .u.round.secret = bytes                        },
        { .type = MSG_PREPARE,            .term = 1, .round = 1,               .u.prepare.secret = bytes},
    };

    mem_set_ops(&ops);
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        freed_used = 0;
        CHECK_OK(t, send_twice(&messages[i]));
        CHECK_INT(t, freed_used, >, 0);
        CHECK(t, !memmem(freed, sizeof(freed), key, STATE_KEY_BYTES));
    }
}
