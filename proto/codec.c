/*
 * For each part and message, three functions are stamped out of fields.h: check_X (both
 * directions), from_pb_X and to_pb_X. Below them, one table ties a message to its three functions.
 */
#include "proto/codec.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "hvd.pb-c.h"
#include "proto/catalog.h"
#include "proto/fields.h"

#include <inttypes.h>
#include <string.h>

void msg_release(struct msg *msg)
{
    if (!msg)
        return;
    arena_release(&msg->memory);
    *msg = (struct msg){ .type = msg->type };
}

/* ---- checks --------------------------------------------------------------------------------- */

static int check_num(uint64_t value, uint64_t max, const char *name, struct hvd_err *err)
{
    if (value <= max)
        return 0;
    return err_set(err, HVD_E_PROTO, "%s is %" PRIu64 ", at most %" PRIu64 " is allowed", name,
                   value, max);
}

static int check_span(int64_t value_us, const char *name, struct hvd_err *err)
{
    if (value_us == TIME_NEVER || (value_us >= 0 && value_us <= LIMIT_DURATION_US))
        return 0;
    return err_set(err, HVD_E_PROTO, "%s is %" PRId64 " us, not a length of time", name, value_us);
}

static int check_count(size_t count, size_t max, const char *name, struct hvd_err *err)
{
    if (count <= max)
        return 0;
    return err_set(err, HVD_E_LIMIT, "%s has %zu entries, at most %zu are allowed", name, count,
                   max);
}

static int check_raw(const char *text, size_t max, const char *name, struct hvd_err *err)
{
    if (!text)
        return err_set(err, HVD_E_INVAL, "%s is NULL", name);
    if (strlen(text) <= max)
        return 0;
    return err_set(err, HVD_E_LIMIT, "%s has %zu bytes, at most %zu are allowed", name,
                   strlen(text), max);
}

static int check_text(const char *text, size_t max, const char *name, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    int rc = check_raw(text, max, name, err);

    if (rc || text_is_clean(text, strlen(text)))
        return rc;
    return err_set(err, HVD_E_PROTO, "%s: %s is not clean UTF-8", name,
                   text_quote(text, strlen(text), quoted));
}

static int check_texts(struct msg_texts texts, size_t max, size_t max_bytes, const char *name,
                       struct hvd_err *err)
{
    int rc = check_count(texts.count, max, name, err);

    for (size_t i = 0; !rc && i < texts.count; i++)
        rc = check_raw(texts.items[i], max_bytes, name, err);
    return rc;
}

static int check_bytes(struct msg_bytes bytes, size_t max, const char *name, struct hvd_err *err)
{
    if (bytes.length <= max)
        return 0;
    return err_set(err, HVD_E_LIMIT, "%s has %zu bytes, at most %zu are allowed", name,
                   bytes.length, max);
}

#define CHECK_FIELD(kind, name, a, b) CHECK_##kind(name, a, b)
#define CHECK_NUM(name, a, b) \
    if (!rc)                  \
        rc = check_num(from->name, (a), #name, err);
#define CHECK_SIGNED(name, a, b) /* any value is fine */
#define CHECK_SPAN(name, a, b) \
    if (!rc)                   \
        rc = check_span(from->name, #name, err);
#define CHECK_TEXT(name, a, b) \
    if (!rc)                   \
        rc = check_text(from->name, (a), #name, err);
#define CHECK_RAW(name, a, b) \
    if (!rc)                  \
        rc = check_raw(from->name, (a), #name, err);
#define CHECK_BYTES(name, a, b) \
    if (!rc)                    \
        rc = check_bytes(from->name, (a), #name, err);
#define CHECK_TEXTS(name, a, b) \
    if (!rc)                    \
        rc = check_texts(from->name, (a), (b), #name, err);
#define CHECK_IDS(name, a, b) \
    if (!rc)                  \
        rc = check_count(from->name.count, (a), #name, err);
#define CHECK_LIST(name, a, part)                            \
    if (!rc)                                                 \
        rc = check_count(from->name.count, (a), #name, err); \
    for (size_t i = 0; !rc && i < from->name.count; i++)     \
        rc = check_##part(&from->name.items[i], err);

#define CHECK_FUNCTION(name, Name)                                              \
    static int check_##name(const struct msg_##name *from, struct hvd_err *err) \
    {                                                                           \
        int rc = 0;                                                             \
                                                                                \
        FIELDS_##name(CHECK_FIELD);                                             \
        return rc;                                                              \
    }

/* ---- generated structs to ours --------------------------------------------------------------- */

/* Texts and numbers stay where protobuf-c put them, in the same arena; only lists of parts are
 * rewritten. */
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

/* Fails only for lack of memory, the arena's cap included. */
#define FROM_FUNCTION(name, Name)                                                                  \
    static int from_pb_##name(const Hvd__##Name *from, struct msg_##name *to, struct arena *arena) \
    {                                                                                              \
        (void)arena;                                                                               \
        FIELDS_##name(FROM_FIELD);                                                                 \
        return 0;                                                                                  \
    }

/* ---- our structs to generated ones ----------------------------------------------------------- */

/* protobuf-c's structs are not const; packing does not write through them. */
static char *unconst(const void *pointer)
{
    return (char *)(uintptr_t)pointer;
}

#define TO_FIELD(kind, name, a, b) TO_##kind(name, a, b)
#define TO_NUM(name, a, b)         to->name = from->name;
#define TO_SIGNED(name, a, b)      to->name = from->name;
#define TO_SPAN(name, a, b)        to->name = from->name;
#define TO_TEXT(name, a, b)        to->name = unconst(from->name);
#define TO_RAW(name, a, b)         to->name = unconst(from->name);
#define TO_BYTES(name, a, b)                           \
    to->name.data = (uint8_t *)unconst(from->name.at); \
    to->name.len = from->name.length;
#define TO_IDS(name, a, b)                                    \
    to->name = (uint64_t *)(void *)unconst(from->name.items); \
    to->n_##name = from->name.count;
#define TO_TEXTS(name, a, b)                               \
    to->name = (char **)(void *)unconst(from->name.items); \
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

/* ---- one table for all ------------------------------------------------------------------------
 */

struct binding {
    enum msg_type type;
    const ProtobufCMessageDescriptor *descriptor;
    int (*check)(const struct msg *msg, struct hvd_err *err);
    int (*from_pb)(const void *pb, struct msg *msg);
    int (*to_pb)(const struct msg *msg, void *pb, struct arena *arena);
};

/* The keys, which every message has, and then its own fields. */
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

static const struct binding *binding_of(unsigned type)
{
    for (size_t i = 0; i < ARRAY_SIZE(bindings); i++) {
        if ((unsigned)bindings[i].type == type)
            return &bindings[i];
    }
    return NULL;
}

/* Keys and fields, in either direction. The err names the message and the field. */
static int check_msg(const struct msg *msg, const struct binding *binding, struct hvd_err *err)
{
    const struct msg_kind *kind = msg_kind(msg->type);
    int rc;

    if ((kind->keys & KEY_TERM) && !msg->term)
        return err_set(err, HVD_E_PROTO, "%s without a term", kind->name);
    if ((kind->keys & KEY_INCARNATION) && !msg->incarnation)
        return err_set(err, HVD_E_PROTO, "%s without an incarnation", kind->name);
    if ((kind->keys & KEY_ROUND) && !msg->round)
        return err_set(err, HVD_E_PROTO, "%s without a round", kind->name);
    rc = binding->check(msg, err);
    return rc ? err_prefix(err, rc, "%s", kind->name) : 0;
}

/* Packs into memory that is there, up to where some bytes would follow that are not copied. */
struct packing {
    ProtobufCBuffer base;
    uint8_t *at;
    const uint8_t *left_out; /* NULL: everything is copied */
};

static void pack_piece(ProtobufCBuffer *base, size_t length, const uint8_t *bytes)
{
    struct packing *packing = CONTAINER_OF(base, struct packing, base);

    if (packing->left_out && bytes == packing->left_out)
        return;
    memcpy(packing->at, bytes, length);
    packing->at += length;
}

/* Appends the header and the packed body, but for its last bytes; all or nothing. */
static int append_packed(const struct msg_kind *kind, const ProtobufCMessage *pb,
                         struct msg_bytes left_out, struct buf *out, struct hvd_err *err)
{
    size_t length = protobuf_c_message_get_packed_size(pb);
    size_t copied = length - left_out.length;
    struct packing packing = { .base = { pack_piece }, .left_out = left_out.at };
    uint8_t *at;
    int rc;

    if (length > kind->body_max)
        return err_set(err, HVD_E_LIMIT, "%s: %zu bytes, at most %u are allowed", kind->name,
                       length, kind->body_max);
    rc = buf_reserve(out, FRAME_HEADER_BYTES + copied);
    if (rc)
        return err_set(err, rc, "%s: no room for %zu bytes: %s", kind->name, length, err_text(rc));
    at = (uint8_t *)out->data + out->length;
    frame_write_header(at, (uint16_t)kind->type,
                       msg_may_be_skipped(kind->type) ? FRAME_MAY_SKIP : 0, (uint32_t)length);
    packing.at = at + FRAME_HEADER_BYTES;
    if (left_out.at)
        protobuf_c_message_pack_to_buffer(pb, &packing.base);
    else
        protobuf_c_message_pack(pb, packing.at);
    out->length += FRAME_HEADER_BYTES + copied;
    out->data[out->length] = '\0';
    return 0;
}

static int encode(const struct msg *msg, struct msg_bytes left_out, struct buf *out,
                  struct hvd_err *err)
{
    const struct binding *binding = binding_of(msg->type);
    ProtobufCMessage *pb;
    struct arena arena;
    int rc;

    ASSERT(binding);
    rc = check_msg(msg, binding, err);
    if (rc)
        return rc;
    arena_init(&arena, LIMIT_DECODE_BYTES_MAX);
    pb = arena_alloc(&arena, binding->descriptor->sizeof_message);
    if (!pb || binding->to_pb(msg, pb, &arena))
        rc = err_set(err, arena.full ? HVD_E_LIMIT : HVD_E_NOMEM, "%s: no memory to encode it",
                     msg_kind(msg->type)->name);
    else
        rc = append_packed(msg_kind(msg->type), pb, left_out, out, err);
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

static void *pb_alloc(void *arena, size_t bytes)
{
    return arena_alloc(arena, bytes);
}

/* The arena frees everything at once. */
static void pb_free(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

static size_t unfolding_cap(size_t length)
{
    size_t cap = LIMIT_DECODE_BYTES_MIN + length * LIMIT_DECODE_BYTES_PER_BYTE;

    return cap < LIMIT_DECODE_BYTES_MAX ? cap : LIMIT_DECODE_BYTES_MAX;
}

static int unfolding_failed(const struct msg *msg, const struct msg_kind *kind, struct hvd_err *err)
{
    if (msg->memory.starved)
        return err_set(err, HVD_E_NOMEM, "%s: no memory to decode it", kind->name);
    if (msg->memory.full)
        return err_set(err, HVD_E_LIMIT, "%s: unfolds to more than %zu bytes of memory", kind->name,
                       msg->memory.cap);
    return err_set(err, HVD_E_PROTO, "%s: malformed body", kind->name);
}

int msg_decode(const struct frame *frame, struct msg *ret_msg, struct hvd_err *err)
{
    const struct binding *binding = binding_of(frame->type);
    struct msg msg = { .type = (enum msg_type)frame->type };
    ProtobufCAllocator allocator = { pb_alloc, pb_free, &msg.memory };
    ProtobufCMessage *pb;
    int rc;

    if (!binding)
        return err_set(err, HVD_E_PROTO, "message %u is unknown", frame->type);
    arena_init(&msg.memory, unfolding_cap(frame->length));
    pb = protobuf_c_message_unpack(binding->descriptor, &allocator, frame->length, frame->body);
    if (!pb || binding->from_pb(pb, &msg))
        rc = unfolding_failed(&msg, msg_kind(frame->type), err);
    else
        rc = check_msg(&msg, binding, err);
    if (rc)
        msg_release(&msg);
    else
        *ret_msg = msg;
    return rc;
}

/* ---- without copying -------------------------------------------------------------------------
 */

/* The field of a CHUNK that comes last: data, in the wire's form of bytes. */
#define DATA_KEY   (8u << 3 | WIRE_BYTES)
#define WIRE_NUM   0u
#define WIRE_64    1u
#define WIRE_BYTES 2u
#define WIRE_32    5u

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

/* True: what ends the body are the bytes of its data, which begin there. Whatever is odd about it
 * is left to be found by who decodes all of it. */
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
