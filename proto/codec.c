/*
 * codec.c: converts frames to messages and back. Called by wire/ for every frame. For each part and
 * message, macros make three functions from the tables in catalog.h: check_X (both directions),
 * from_pb_X and to_pb_X; one table below connects a message with its three functions. A message
 * with a field out of its bounds is neither sent nor accepted.
 */
#include "proto/codec.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "hvd.pb-c.h"
#include "proto/catalog.h"

#include <inttypes.h>
#include <string.h>

void msg_release(struct msg *msg)
{
    if (!msg)
        return;
    arena_release(&msg->memory);
    *msg = (struct msg){ .type = msg->type };
}

/* Checks a number field of a message: it is at most `max`. */
static int check_num(uint64_t value, uint64_t max, const char *name, struct hvd_err *err)
{
    if (value <= max)
        return 0;
    return err_set(err, HVD_E_PROTO, "%s is %" PRIu64 ", at most %" PRIu64 " is allowed", name,
                   value, max);
}

/* Checks a field that is a length of time, in microseconds: 0 to LIMIT_DURATION_US, or
 * TIME_NEVER. */
static int check_span(int64_t value_us, const char *name, struct hvd_err *err)
{
    if (value_us == TIME_NEVER || (value_us >= 0 && value_us <= LIMIT_DURATION_US))
        return 0;
    return err_set(err, HVD_E_PROTO, "%s is %" PRId64 " us, not a length of time", name, value_us);
}

/* Checks that a field is not too large. `unit`: "entries" or "bytes". */
static int codec_check_size(size_t has, size_t max, const char *unit, const char *name,
                            struct hvd_err *err)
{
    if (has <= max)
        return 0;
    return err_set(err, HVD_E_LIMIT, "%s has %zu %s, at most %zu are allowed", name, has, unit,
                   max);
}

/* Checks a text field of a message. `max` is the number of bytes that the field may have. `clean`:
 * the text must also be valid UTF-8 without control characters. */
static int check_text(const char *text, bool clean, size_t max, const char *name,
                      struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    if (!text)
        return err_set(err, HVD_E_INVAL, "%s is NULL", name);
    if (clean && strlen(text) <= max && !text_is_clean(text, strlen(text)))
        return err_set(err, HVD_E_PROTO, "%s: the text %s has control characters or is not UTF-8",
                       name, text_quote(text, strlen(text), quoted));
    return codec_check_size(strlen(text), max, "bytes", name, err);
}

#define CHECK_FIELD(kind, name, a, b) CHECK_##kind(name, a, b)
#define CHECK_NUM(name, a, b) \
    if (!rc)                  \
        rc = check_num(from->name, (a), #name, err);
#define CHECK_SIGNED(name, a, b) /* every value is allowed */
#define CHECK_SPAN(name, a, b) \
    if (!rc)                   \
        rc = check_span(from->name, #name, err);
#define CHECK_TEXT(name, a, b) \
    if (!rc)                   \
        rc = check_text(from->name, true, (a), #name, err);
#define CHECK_RAW(name, a, b) \
    if (!rc)                  \
        rc = check_text(from->name, false, (a), #name, err);
#define CHECK_BYTES(name, a, b) \
    if (!rc)                    \
        rc = codec_check_size(from->name.length, (a), "bytes", #name, err);
#define CHECK_IDS(name, a, b) \
    if (!rc)                  \
        rc = codec_check_size(from->name.count, (a), "entries", #name, err);
#define CHECK_TEXTS(name, a, b)                          \
    CHECK_IDS(name, a, b)                                \
    for (size_t i = 0; !rc && i < from->name.count; i++) \
        rc = check_text(from->name.items[i], false, (b), #name, err);
#define CHECK_LIST(name, a, part)                        \
    CHECK_IDS(name, a, part)                             \
    for (size_t i = 0; !rc && i < from->name.count; i++) \
        rc = check_##part(&from->name.items[i], err);

#define CHECK_FUNCTION(name, Name)                                              \
    static int check_##name(const struct msg_##name *from, struct hvd_err *err) \
    {                                                                           \
        int rc = 0;                                                             \
                                                                                \
        FIELDS_##name(CHECK_FIELD);                                             \
        return rc;                                                              \
    }

/* For each kind of field: copies it from protobuf-c's struct (`from`) to ours (`to`). Texts and
 * numbers stay where protobuf-c put them, in the same arena; only lists of parts are rewritten. */
#define FROM_FIELD(kind, name, a, b) FROM_##kind(name, a, b)
#define FROM_NUM(name, a, b)         to->name = from->name;
#define FROM_SIGNED(name, a, b)      to->name = from->name;
#define FROM_SPAN(name, a, b)        to->name = from->name;
#define FROM_TEXT(name, a, b)        to->name = from->name;
#define FROM_RAW(name, a, b)         to->name = from->name;
#define FROM_BYTES(name, a, b)       to->name = (struct msg_bytes){ from->name.data, from->name.len };
#define FROM_IDS(name, a, b)         to->name = (struct msg_ids){ from->name, from->n_##name };
#define FROM_TEXTS(name, a, b) \
    to->name = (struct msg_texts){ (const char *const *)from->name, from->n_##name };
#define FROM_LIST(name, a, part)                                                 \
    {                                                                            \
        struct msg_##part *items =                                               \
            arena_alloc_array(arena, from->n_##name, sizeof(struct msg_##part)); \
                                                                                 \
        if (!items)                                                              \
            return HVD_E_NOMEM;                                                  \
        for (size_t i = 0; i < from->n_##name; i++) {                            \
            if (from_pb_##part(from->name[i], &items[i], arena))                 \
                return HVD_E_NOMEM;                                              \
        }                                                                        \
        to->name.items = items;                                                  \
        to->name.count = from->n_##name;                                         \
    }

/* Makes from_pb_X. It fails only when no memory is left, or the arena has reached its cap. */
#define FROM_FUNCTION(name, Name)                                                                  \
    static int from_pb_##name(const Hvd__##Name *from, struct msg_##name *to, struct arena *arena) \
    {                                                                                              \
        (void)arena;                                                                               \
        FIELDS_##name(FROM_FIELD);                                                                 \
        return 0;                                                                                  \
    }

/* Removes const from a pointer: the pointers in protobuf-c's structs are not to const, but packing
 * a message does not write through them. */
static char *codec_unconst(const void *pointer)
{
    return (char *)(uintptr_t)pointer;
}

#define TO_FIELD(kind, name, a, b) TO_##kind(name, a, b)
#define TO_NUM(name, a, b)         to->name = from->name;
#define TO_SIGNED(name, a, b)      to->name = from->name;
#define TO_SPAN(name, a, b)        to->name = from->name;
#define TO_TEXT(name, a, b)        to->name = codec_unconst(from->name);
#define TO_RAW(name, a, b)         to->name = codec_unconst(from->name);
#define TO_BYTES(name, a, b)                                 \
    to->name.data = (uint8_t *)codec_unconst(from->name.at); \
    to->name.len = from->name.length;
#define TO_IDS(name, a, b)                                          \
    to->name = (uint64_t *)(void *)codec_unconst(from->name.items); \
    to->n_##name = from->name.count;
#define TO_TEXTS(name, a, b)                                     \
    to->name = (char **)(void *)codec_unconst(from->name.items); \
    to->n_##name = from->name.count;
#define TO_LIST(name, a, part)                                                      \
    to->name = arena_alloc_array(arena, from->name.count, sizeof(void *));          \
    to->n_##name = from->name.count;                                                \
    if (!to->name)                                                                  \
        return HVD_E_NOMEM;                                                         \
    for (size_t i = 0; i < from->name.count; i++) {                                 \
        to->name[i] = arena_alloc(arena, sizeof(*to->name[i]));                     \
        if (!to->name[i] || to_pb_##part(&from->name.items[i], to->name[i], arena)) \
            return HVD_E_NOMEM;                                                     \
    }

#define TO_FUNCTION(name, Name)                                                                  \
    static int to_pb_##name(const struct msg_##name *from, Hvd__##Name *to, struct arena *arena) \
    {                                                                                            \
        (void)arena;                                                                             \
        hvd__##name##__init(to);                                                                 \
        FIELDS_##name(TO_FIELD);                                                                 \
        return 0;                                                                                \
    }

#define CHECK_M(NAME, name, Name, links, keys, when, body_max) CHECK_FUNCTION(name, Name)
#define FROM_M(NAME, name, Name, links, keys, when, body_max)  FROM_FUNCTION(name, Name)
#define TO_M(NAME, name, Name, links, keys, when, body_max)    TO_FUNCTION(name, Name)
#define NOTHING(NAME, name, Name, links, keys, when, body_max)

MSG_PARTS(CHECK_FUNCTION)
MSG_PARTS(FROM_FUNCTION)
MSG_PARTS(TO_FUNCTION)
MSG_CATALOG(CHECK_M, NOTHING)
MSG_CATALOG(FROM_M, NOTHING)
MSG_CATALOG(TO_M, NOTHING)

struct binding {
    enum msg_type type;
    const ProtobufCMessageDescriptor *descriptor;
    int (*check)(const struct msg *msg, struct hvd_err *err);
    int (*from_pb)(const void *pb, struct msg *msg);
    int (*to_pb)(const struct msg *msg, void *pb, struct arena *arena);
};

/* For each message, three functions: they check its fields, and convert the keys, which every
 * message has, and then the fields of its own, from protobuf-c's struct and to it. */
#define GLUE(name, Name, checked, read, written)                                      \
    static int check_msg_##name(const struct msg *msg, struct hvd_err *err)           \
    {                                                                                 \
        (void)msg;                                                                    \
        (void)err;                                                                    \
        return checked;                                                               \
    }                                                                                 \
                                                                                      \
    static int read_msg_##name(const void *pb, struct msg *msg)                       \
    {                                                                                 \
        const Hvd__##Name *from = pb;                                                 \
                                                                                      \
        msg->term = from->term;                                                       \
        msg->incarnation = from->incarnation;                                         \
        msg->round = from->round;                                                     \
        return read;                                                                  \
    }                                                                                 \
                                                                                      \
    static int write_msg_##name(const struct msg *msg, void *pb, struct arena *arena) \
    {                                                                                 \
        Hvd__##Name *to = pb;                                                         \
        int rc;                                                                       \
                                                                                      \
        (void)arena;                                                                  \
        hvd__##name##__init(to);                                                      \
        rc = written;                                                                 \
        to->term = msg->term;                                                         \
        to->incarnation = msg->incarnation;                                           \
        to->round = msg->round;                                                       \
        return rc;                                                                    \
    }

#define GLUE_M(NAME, name, Name, links, keys, when, body_max) \
    GLUE(name, Name, check_##name(&msg->u.name, err),         \
         from_pb_##name(from, &msg->u.name, &msg->memory), to_pb_##name(&msg->u.name, to, arena))
#define GLUE_EMPTY(NAME, name, Name, links, keys, when, body_max) GLUE(name, Name, 0, 0, 0)

MSG_CATALOG(GLUE_M, GLUE_EMPTY)

static const struct binding bindings[] = {
#define BIND(NAME, name, Name, links, keys, when, body_max) \
    { MSG_##NAME, &hvd__##name##__descriptor, check_msg_##name, read_msg_##name, write_msg_##name },
    MSG_CATALOG(BIND, BIND)
#undef BIND
};

/* Returns the functions that check and convert messages of this type; NULL: the type is unknown. */
static const struct binding *binding_of(unsigned type)
{
    for (size_t i = 0; i < ARRAY_SIZE(bindings); i++) {
        if ((unsigned)bindings[i].type == type)
            return &bindings[i];
    }
    return NULL;
}

/* Checks the keys and the fields of a message that is to be sent or was received. The err names the
 * message and the field. */
static int check_msg(const struct msg *msg, const struct binding *binding, struct hvd_err *err)
{
    const struct msg_kind *kind = msg_kind(msg->type);
    int rc;

    if ((kind->keys & KEY_TERM) && !msg->term)
        return err_set(
            err, HVD_E_PROTO,
            "the message %s has no term; install the same version of hvd-elastic on both sides",
            kind->name);
    if ((kind->keys & KEY_INCARNATION) && !msg->incarnation)
        return err_set(err, HVD_E_PROTO,
                       "the message %s names no worker (its incarnation is 0); install the same "
                       "version of hvd-elastic on both sides",
                       kind->name);
    if ((kind->keys & KEY_ROUND) && !msg->round)
        return err_set(
            err, HVD_E_PROTO,
            "the message %s names no round; install the same version of hvd-elastic on both sides",
            kind->name);
    rc = binding->check(msg, err);
    return rc ? err_prefix(err, rc, "%s", kind->name) : 0;
}

/* Where protobuf-c writes the packed message: into memory that has been reserved. The bytes
 * `left_out`, the data of a CHUNK, are not written: the caller sends them without a copy. */
struct packing {
    ProtobufCBuffer base;
    uint8_t *at;
    const uint8_t *left_out; /* the bytes that are not copied; NULL: all bytes are copied */
};

/* protobuf-c calls this function for each piece of a packed message, one after the other. The piece
 * `left_out` (the data of a CHUNK, the last piece) is not copied. */
static void pack_piece(ProtobufCBuffer *base, size_t length, const uint8_t *bytes)
{
    struct packing *packing = CONTAINER_OF(base, struct packing, base);

    if (packing->left_out && bytes == packing->left_out)
        return;
    memcpy(packing->at, bytes, length);
    packing->at += length;
}

/* Appends the frame of a message to `out`: the header, and the packed body without its last bytes
 * `left_out`, which the caller sends itself. On failure no byte is appended. */
static int encode(const struct msg *msg, struct msg_bytes left_out, struct buf *out,
                  struct hvd_err *err)
{
    const struct binding *binding = binding_of(msg->type);
    const struct msg_kind *kind = msg_kind(msg->type);
    struct packing packing = { .base = { pack_piece }, .left_out = left_out.at };
    ProtobufCMessage *pb;
    struct arena arena;
    size_t length, framed;
    uint8_t *at;
    int rc;

    ASSERT(binding);
    rc = check_msg(msg, binding, err);
    if (rc)
        return rc;
    arena_init(&arena, LIMIT_DECODE_BYTES_MAX);
    pb = arena_alloc(&arena, binding->descriptor->sizeof_message);
    if (!pb || binding->to_pb(msg, pb, &arena)) {
        rc = arena.full
                 ? err_set(err, HVD_E_LIMIT,
                           "%s: the message needs more than %d bytes of memory; shorten its lists",
                           kind->name, LIMIT_DECODE_BYTES_MAX)
                 : err_set(err, HVD_E_NOMEM,
                           "%s: no memory to encode the message; free memory on this host",
                           kind->name);
        goto out;
    }
    length = protobuf_c_message_get_packed_size(pb);
    if (length > kind->body_max) {
        rc = err_set(err, HVD_E_LIMIT,
                     "%s: the message has %zu bytes, and at most %u are allowed; shorten its texts "
                     "and lists",
                     kind->name, length, kind->body_max);
        goto out;
    }
    framed = FRAME_HEADER_BYTES + length - left_out.length;
    rc = buf_reserve(out, framed);
    if (rc) {
        if (rc == HVD_E_LIMIT)
            err_set(err, rc,
                    "%s: the message of %zu bytes does not fit into a buffer of %zu bytes; "
                    "shorten its texts and lists",
                    kind->name, length, out->max);
        else
            err_set(err, rc, "%s: no memory for a message of %zu bytes; free memory on this host",
                    kind->name, length);
        goto out;
    }
    at = (uint8_t *)out->data + out->length;
    frame_write_header(at, (uint16_t)kind->type,
                       msg_may_be_skipped(kind->type) ? FRAME_MAY_SKIP : 0, (uint32_t)length);
    packing.at = at + FRAME_HEADER_BYTES;
    if (left_out.at)
        protobuf_c_message_pack_to_buffer(pb, &packing.base);
    else
        protobuf_c_message_pack(pb, packing.at);
    out->length += framed;
    out->data[out->length] = '\0';
out:
    arena_release(&arena);
    return rc;
}

int msg_encode(const struct msg *msg, struct buf *out, struct hvd_err *err)
{
    return encode(msg, (struct msg_bytes){ NULL, 0 }, out, err);
}

int msg_encode_before_data(const struct msg *msg, struct buf *out, struct hvd_err *err)
{
    ASSERT(msg->type == MSG_CHUNK);
    return encode(msg, msg->u.chunk.data, out, err);
}

/* Memory for protobuf-c: from the arena of the message, whose size is bounded. */
static void *pb_alloc(void *arena, size_t bytes)
{
    return arena_alloc(arena, bytes);
}

/* protobuf-c frees a block by this function. It does nothing, because the arena frees all blocks at
 * once. */
static void pb_free(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

/* Makes a message from a frame. All that the message points to lies in msg.memory, whose size has a
 * limit. */
int msg_decode(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err)
{
    const struct binding *binding = binding_of(frame->type);
    struct msg msg = { .type = (enum msg_type)frame->type };
    ProtobufCAllocator allocator = { pb_alloc, pb_free, &msg.memory };
    ProtobufCMessage *pb;
    size_t cap = LIMIT_DECODE_BYTES_MIN + frame->length * LIMIT_DECODE_BYTES_PER_BYTE;
    int rc;

    if (!binding)
        return err_set(err, HVD_E_PROTO, MSG_UNKNOWN, frame->type);
    /* The memory for decoding is a bounded multiple of the body's length, so a peer cannot make a
     * small frame cost much memory. */
    arena_init(&msg.memory, cap < LIMIT_DECODE_BYTES_MAX ? cap : LIMIT_DECODE_BYTES_MAX);
    pb = protobuf_c_message_unpack(binding->descriptor, &allocator, frame->length, frame->body);
    if (pb && !binding->from_pb(pb, &msg))
        rc = check_msg(&msg, binding, err);
    else if (msg.memory.starved)
        rc = err_set(err, HVD_E_NOMEM,
                     "%s: no memory to decode this message; free memory on this host",
                     msg_kind(frame->type)->name);
    else if (msg.memory.full)
        rc = err_set(err, HVD_E_LIMIT,
                     "%s: decoding needs more than %zu bytes of memory; install the same version "
                     "of hvd-elastic on both sides",
                     msg_kind(frame->type)->name, msg.memory.cap);
    else
        rc = err_set(err, HVD_E_PROTO,
                     "the message %s cannot be decoded; install the same version of hvd-elastic on "
                     "both sides",
                     msg_kind(frame->type)->name);
    if (rc)
        msg_release(&msg);
    else
        *ret_msg = msg;
    return rc;
}

/* The key of `data`, the last field of a CHUNK, in protobuf's wire format; and the types of that
 * format. */
#define DATA_KEY   (8u << 3 | WIRE_BYTES)
#define WIRE_NUM   0u
#define WIRE_64    1u
#define WIRE_BYTES 2u
#define WIRE_32    5u

/* Reads a number in protobuf's varint form at the index *at of the body, and moves *at behind it.
 * false: the body ends, or the number has more than 64 bits. */
static bool take_varint(const struct frame *frame, size_t *at, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && *at < frame->length; shift += 7) {
        uint8_t byte = frame->body[(*at)++];

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* Finds the data at the end of a CHUNK's body; *ret_key_at is where the field begins, *ret_data_at
 * where its bytes do. false: the body has an unusual form, and msg_decode must read it. */
static bool find_data(const struct frame *frame, size_t *ret_key_at, size_t *ret_data_at)
{
    size_t at = 0;

    while (at < frame->length) {
        size_t key_at = at;
        uint64_t key, size = 0;

        if (!take_varint(frame, &at, &key))
            return false;
        switch (key & 7) {
        case WIRE_NUM:
            if (!take_varint(frame, &at, &size))
                return false;
            size = 0;
            break;
        case WIRE_64: size = 8; break;
        case WIRE_32: size = 4; break;
        case WIRE_BYTES:
            if (!take_varint(frame, &at, &size))
                return false;
            break;
        default: return false;
        }
        if (size > frame->length - at)
            return false;
        if (key == DATA_KEY && at + size == frame->length) {
            *ret_key_at = key_at;
            *ret_data_at = at;
            return true;
        }
        at += size;
    }
    return false;
}

/* Does what msg_decode does, but does not copy the data of a CHUNK, which may be long: the message
 * points into the frame. For that the frame is cut before the data, and the fields before the data
 * are decoded as a message. */
int msg_decode_in_place(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err)
{
    struct frame before = *frame;
    size_t data_at;
    int rc;

    if (frame->type != MSG_CHUNK || !find_data(frame, &before.length, &data_at) ||
        frame->length - data_at > STATE_CHUNK_BYTES)
        return msg_decode(frame, ret_msg, err);
    rc = msg_decode(&before, ret_msg, err);
    if (!rc)
        ret_msg->u.chunk.data =
            (struct msg_bytes){ frame->body + data_at, frame->length - data_at };
    return rc;
}
