/*
 * etcd_text.c: writes the values of a job's keys in etcd, and reads them back. etcd_store.c calls
 * it. A value that is read is foreign input: all of it is checked, and the first fault is reported
 * as damage, so nothing of a damaged line reaches the core.
 */
#include "driver/store/etcd_text.h"

#include "base/hex.h"
#include "base/mem.h"
#include "driver/store/record_check.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define ETCD_FORMAT 1 /* the format of the values; facts with a higher number are not read */
#define LISTS_MAX_BYTES \
    (2 * LIMIT_WORKERS * sizeof(uint64_t) + LIMIT_ADDRESSES * (LIMIT_TEXT_BYTES + 16))

/* ---- base64 --------------------------------------------------------------------------------- */

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Makes the JSON library take its memory from base/mem.h; called once before all other
 * functions. */
void etcd_text_start(void)
{
    json_set_alloc_funcs(mem_alloc, mem_free);
}

/* Appends the bytes as base64: 4 characters for each group of 3 bytes, with '=' for the bytes that
 * the last group lacks. */
int etcd_base64(struct buf *out, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    int rc = buf_reserve(out, (length + 2) / 3 * 4);

    for (size_t i = 0; i < length && !rc; i += 3) {
        size_t have = length - i < 3 ? length - i : 3;
        uint32_t group = (uint32_t)at[i] << 16 | (have > 1 ? (uint32_t)at[i + 1] << 8 : 0) |
                         (have > 2 ? at[i + 2] : 0);
        char four[4] = { digits64[group >> 18], digits64[group >> 12 & 63],
                         have > 1 ? digits64[group >> 6 & 63] : '=',
                         have > 2 ? digits64[group & 63] : '=' };

        rc = buf_append(out, four, sizeof(four));
    }
    return rc;
}

/* Appends the bytes that a base64 text stands for. HVD_E_PROTO: the text is not base64. */
int etcd_unbase64(struct buf *out, const char *text, size_t length)
{
    static uint8_t values[256]; /* 1 + the value of each digit; 0: no digit */
    size_t full = length;
    uint32_t group = 0;
    int rc;

    if (!values['B'])
        for (uint8_t i = 0; i < 64; i++)
            values[(uint8_t)digits64[i]] = (uint8_t)(i + 1);
    if (length % 4)
        return HVD_E_PROTO;
    while (full && length - full < 2 && text[full - 1] == '=')
        full--;
    rc = buf_reserve(out, length / 4 * 3);
    for (size_t i = 0; i < full && !rc; i++) {
        uint8_t value = values[(uint8_t)text[i]];
        char bytes[3];

        if (!value)
            return HVD_E_PROTO;
        group = group << 6 | (uint32_t)(value - 1);
        if (i % 4 != 3 && i + 1 != full)
            continue;
        /* A group of 4 characters is complete (i % 4 is 3), or the text ends earlier: then the
         * missing characters count as 0. With k + 1 characters a group has k bytes. */
        group <<= 6 * (3 - i % 4);
        for (int k = 0; k < 3; k++)
            bytes[k] = (char)(group >> (16 - 8 * k) & 255);
        rc = buf_append(out, bytes, i % 4);
        group = 0;
    }
    return rc;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A JSON object that is being made. `failed`: no memory was left; out_end then returns the
 * error. */
struct etcd_out {
    json_t *object;
    bool failed;
};

/* Adds a field to the object; `value` is freed in any case. NULL: no memory was left. */
static void out_set(struct etcd_out *out, const char *name, json_t *value)
{
    if (json_object_set_new(out->object, name, value)) /* takes `value`, also when it fails */
        out->failed = true;
}

/* Adds a number; 0 is left out, and is read back as 0. */
static void out_int(struct etcd_out *out, const char *name, int64_t value)
{
    if (value)
        out_set(out, name, json_integer(value));
}

/* Makes a JSON value of a text with any bytes: a JSON text if it is UTF-8, otherwise {"base64":
 * ...}. NULL: no memory is left. */
static json_t *out_make_text(const char *text)
{
    json_t *value = json_string(text);
    json_t *whole;
    struct buf coded;

    /* json_string refuses a text that is not UTF-8. If it refuses a clean text, no memory is
     * left. */
    if (value || text_is_clean(text, strlen(text)))
        return value;
    buf_init(&coded, 2 * strlen(text) + 8);
    if (!etcd_base64(&coded, text, strlen(text)))
        value = json_string(buf_text(&coded));
    buf_release(&coded);
    whole = value ? json_object() : NULL;
    if (!whole) {
        json_decref(value);
        return NULL;
    }
    if (json_object_set_new(whole, "base64", value)) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}

/* Adds a text; an empty one is left out, and is read back as "". */
static void out_text(struct etcd_out *out, const char *name, const char *text)
{
    if (*text)
        out_set(out, name, out_make_text(text));
}

/* Adds a list of incarnations; an empty one is left out. */
static void out_ids(struct etcd_out *out, const char *name, const struct msg_ids *ids)
{
    json_t *list = ids->count ? json_array() : NULL;

    for (size_t i = 0; list && i < ids->count; i++)
        if (json_array_append_new(list, json_integer((json_int_t)ids->items[i])))
            out->failed = true;
    if (ids->count)
        out_set(out, name, list);
}

/* The buffer to which the JSON library appends, and the error of the first piece that failed. */
struct etcd_taking {
    struct buf *to;
    int rc;
};

/* Called by the JSON library with a piece of the text; `arg` is a struct etcd_taking. */
static int out_take(const char *bytes, size_t length, void *arg)
{
    struct etcd_taking *taking = arg;

    taking->rc = buf_append(taking->to, bytes, length);
    return taking->rc ? -1 : 0;
}

/* Appends the object and the end of the line, and frees the object. */
static int out_end(struct etcd_out *out, struct buf *to)
{
    struct etcd_taking taking = { .to = to };
    int rc = out->failed || !out->object ? HVD_E_NOMEM : 0;

    /* The JSON library may fail by itself, for lack of memory. */
    if (!rc && json_dump_callback(out->object, out_take, &taking, JSON_COMPACT))
        rc = taking.rc ? taking.rc : HVD_E_NOMEM;
    json_decref(out->object);
    return rc ? rc : buf_append(to, "\n", 1);
}

/* Begins an empty JSON object; if no memory is left, `object` is NULL and out_end reports that. */
static struct etcd_out out_begin(void)
{
    return (struct etcd_out){ json_object(), false };
}

/* Appends a record of the journal with its number as one line of JSON. */
int etcd_write_record(struct buf *out, uint64_t number, const struct journal_record *record)
{
    struct etcd_out line = out_begin();
    json_t *list = record->addresses.count ? json_array() : NULL;

    out_int(&line, "n", (int64_t)number);
    out_int(&line, "kind", record->kind);
    out_int(&line, "term", (int64_t)record->term);
    out_int(&line, "incarnation", (int64_t)record->incarnation);
    out_int(&line, "round", (int64_t)record->round);
    out_int(&line, "previous", (int64_t)record->previous);
    out_int(&line, "commit", (int64_t)record->commit);
    out_int(&line, "check", (int64_t)record->check);
    out_int(&line, "manifest", (int64_t)record->manifest);
    out_int(&line, "cause", record->cause);
    out_int(&line, "slot", record->slot);
    out_int(&line, "ended", record->ended);
    out_int(&line, "value", record->value);
    out_int(&line, "code", record->code);
    out_int(&line, "wall_us", record->wall_us);
    out_text(&line, "host", record->host);
    out_text(&line, "text", record->text);
    for (size_t i = 0; list && i < record->addresses.count; i++)
        if (json_array_append_new(list, out_make_text(record->addresses.items[i])))
            line.failed = true;
    if (record->addresses.count)
        out_set(&line, "addresses", list);
    out_ids(&line, "members", &record->members);
    out_ids(&line, "holders", &record->holders);
    return out_end(&line, out);
}

/* Appends the facts of the job as one line. The copy of the job's key in this function is
 * overwritten. */
int etcd_write_facts(struct buf *out, const struct job_facts *facts)
{
    struct etcd_out line = out_begin();
    char key[2 * JOB_KEY_BYTES + 1];

    hex_write(facts->key, JOB_KEY_BYTES, key);
    out_int(&line, "format", ETCD_FORMAT);
    out_text(&line, "job", facts->job);
    out_text(&line, "key", key);
    out_int(&line, "created_us", facts->created_wall_us);
    out_int(&line, "port", facts->port);
    out_int(&line, "ended", facts->ended);
    out_int(&line, "code", facts->code);
    out_text(&line, "text", facts->text);
    explicit_bzero(key, sizeof(key));
    return out_end(&line, out);
}

/* Appends the value of the key "owner": which driver has claimed the job, and how long it may be
 * silent. */
int etcd_write_owner(struct buf *out, const struct etcd_owner *owner)
{
    struct etcd_out line = out_begin();

    out_int(&line, "token", (int64_t)owner->token);
    out_int(&line, "since_us", owner->since_wall_us);
    out_int(&line, "lease_s", owner->lease_s);
    out_text(&line, "who", owner->who);
    return out_end(&line, out);
}

/* Appends the value of a key "standby/...": the addresses at which a standby will listen. */
int etcd_write_peers(struct buf *out, const struct store_peers *peers)
{
    struct etcd_out line = out_begin();
    json_t *list = json_array();

    for (size_t i = 0; list && i < peers->count; i++)
        if (json_array_append_new(list, out_make_text(peers->address[i])))
            line.failed = true;
    out_set(&line, "addresses", list);
    return out_end(&line, out);
}

/* Appends a record of the blacklist as one line; the slot -1 stands for the whole host. */
int etcd_write_blacklist(struct buf *out, const struct blacklist_record *record)
{
    struct etcd_out line = out_begin();
    char restarts[NUMBERS_TEXT_MAX], incarnations[NUMBERS_TEXT_MAX];

    out_text(&line, "host", record->host);
    if (record->slot == BLACKLIST_WHOLE_HOST)
        out_int(&line, "slot", -1);
    else
        out_int(&line, "slot", record->slot);
    out_int(&line, "failures", record->failures);
    out_int(&line, "since_us", record->since_wall_us);
    out_int(&line, "until_us", record->until_wall_us);
    out_text(&line, "restarts", numbers_format(&record->restarts, restarts));
    out_text(&line, "incarnations", numbers_format(&record->incarnations, incarnations));
    out_text(&line, "reason", record->reason);
    return out_end(&line, out);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A JSON object that is being read. After the first fault, which `rc` keeps, each in_ function
 * returns 0 or nothing. */
struct etcd_in {
    json_t *object;
    const char *name; /* what is being read, for errors */
    int rc;
    struct hvd_err *err;
};

/* Sets the error that the value which is read is damaged, unless an earlier fault was found. `what`
 * says how. */
static void in_damaged(struct etcd_in *in, const char *what)
{
    if (!in->rc)
        in->rc =
            err_set(in->err, HVD_E_CORRUPT,
                    "%s in etcd is damaged: %s; restore the keys of the job from a snapshot of "
                    "etcd",
                    in->name, what);
}

static void in_no_memory(struct etcd_in *in)
{
    if (!in->rc)
        in->rc = err_set(in->err, HVD_E_NOMEM, "%s: %s", in->name, err_text(HVD_E_NOMEM));
}

/* Parses the line. The caller frees `object`, which is NULL after a fault. */
static struct etcd_in in_begin(struct span line, const char *name, struct hvd_err *err)
{
    struct etcd_in in = { .name = name, .err = err };
    json_error_t why;

    in.object = json_loadb(line.at, line.length, JSON_REJECT_DUPLICATES, &why);
    /* The JSON library gives each fault of a text a code. When an allocation fails it may leave the
     * code "unknown", so that code counts as no memory. */
    if (!in.object && (json_error_code(&why) == json_error_out_of_memory ||
                       json_error_code(&why) == json_error_unknown))
        in_no_memory(&in);
    else if (!json_is_object(in.object))
        in_damaged(&in, "the text is not a JSON object");
    return in;
}

/* Returns the number of a field, which must be from min to max. A field that is missing counts as
 * 0. */
static int64_t in_int(struct etcd_in *in, const char *field, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(in->object, field);
    int64_t number = value ? json_integer_value(value) : 0;
    char what[64];

    if (in->rc || (!value && min <= 0 && max >= 0))
        return 0;
    if (json_is_integer(value) && number >= min && number <= max)
        return number;
    snprintf(what, sizeof(what), "the number \"%s\" is wrong", field);
    in_damaged(in, what);
    return 0;
}

/* Copies a JSON text, or the bytes of {"base64": ...}, to `text` of `size` bytes. */
static void in_copy_text(struct etcd_in *in, const json_t *value, char *text, size_t size)
{
    const json_t *coded = json_object_get(value, "base64");
    struct buf bytes;
    int rc;

    if (in->rc)
        return;
    buf_init(&bytes, size + 2); /* etcd_unbase64 reserves whole groups of 3 bytes */
    if (json_is_string(value))
        rc = buf_append(&bytes, json_string_value(value), json_string_length(value));
    else if (json_is_string(coded))
        rc = etcd_unbase64(&bytes, json_string_value(coded), json_string_length(coded));
    else
        rc = HVD_E_PROTO;
    if (rc == HVD_E_NOMEM)
        in_no_memory(in);
    else if (rc || bytes.length >= size || (bytes.length && memchr(bytes.data, 0, bytes.length)))
        in_damaged(in, "a text is not valid");
    else
        snprintf(text, size, "%.*s", (int)bytes.length, buf_text(&bytes));
    buf_release(&bytes);
}

/* Copies the text of a field to `text` of `size` bytes; a field that is missing is "". */
static void in_text(struct etcd_in *in, const char *field, char *text, size_t size)
{
    const json_t *value = json_object_get(in->object, field);

    *text = '\0';
    if (value)
        in_copy_text(in, value, text, size);
}

/* Returns memory of `lists` for a list that is read. NULL: no memory is left, or in->rc has a fault
 * already. */
static void *in_block(struct etcd_in *in, struct arena *lists, size_t bytes)
{
    void *block = in->rc ? NULL : arena_alloc(lists, bytes);

    if (!block)
        in_no_memory(in);
    return block;
}

/* Returns a list of incarnations in memory of `lists`; a field that is missing is an empty list. */
static struct msg_ids in_ids(struct etcd_in *in, struct arena *lists, const char *field)
{
    const json_t *list = json_object_get(in->object, field);
    size_t count = json_array_size(list);
    struct msg_ids ids = { NULL, 0 };
    uint64_t *items;

    if (!list)
        return ids;
    if (!json_is_array(list) || !count || count > LIMIT_WORKERS) {
        in_damaged(in, "a list of workers is not valid");
        return ids;
    }
    items = in_block(in, lists, count * sizeof(*items));
    for (size_t i = 0; items && i < count; i++) {
        const json_t *id = json_array_get(list, i);

        if (!json_is_integer(id) || json_integer_value(id) < 1) {
            in_damaged(in, "an id that no worker can have");
            return ids;
        }
        items[i] = (uint64_t)json_integer_value(id);
    }
    return items ? (struct msg_ids){ items, count } : ids;
}

/* Returns the addresses of a record in memory of `lists`; a missing field is an empty list. */
static struct msg_texts in_addresses(struct etcd_in *in, struct arena *lists)
{
    const json_t *list = json_object_get(in->object, "addresses");
    size_t count = json_array_size(list);
    struct msg_texts none = { NULL, 0 };
    char address[LIMIT_TEXT_BYTES + 1];
    const char **items;

    if (!list)
        return none;
    if (!json_is_array(list) || !count || count > LIMIT_ADDRESSES) {
        in_damaged(in, "the addresses are not valid");
        return none;
    }
    items = in_block(in, lists, count * sizeof(*items));
    for (size_t i = 0; items && i < count; i++) {
        char *copy;

        in_copy_text(in, json_array_get(list, i), address, sizeof(address));
        copy = in_block(in, lists, in->rc ? 1 : strlen(address) + 1);
        if (!copy)
            return none;
        memcpy(copy, address, strlen(address) + 1);
        items[i] = copy;
    }
    return items ? (struct msg_texts){ items, count } : none;
}

void etcd_record_init(struct etcd_record *memory)
{
    arena_init(&memory->lists, LISTS_MAX_BYTES);
}

void etcd_record_release(struct etcd_record *memory)
{
    arena_release(&memory->lists);
}

/* Reads a record of the journal from a line, which must have this number. After the first fault
 * (in.rc) each function below does nothing, so only the end is checked. */
int etcd_read_record(struct etcd_record *memory, struct span line, uint64_t number,
                     struct journal_record *ret_record, struct hvd_err *err)
{
    struct journal_record record = { .host = memory->host, .text = memory->text };
    const char *wrong;
    struct etcd_in in;
    char name[64];

    snprintf(name, sizeof(name), "record %" PRIu64 " of the journal", number);
    in = in_begin(line, name, err);
    arena_release(&memory->lists);
    memory->host[0] = memory->text[0] = '\0';
    if (in_int(&in, "n", 1, INT64_MAX) != (int64_t)number)
        in_damaged(&in, "the record has another number");
    record.kind = (enum journal_kind)in_int(&in, "kind", 0, INT32_MAX);
    record.term = (uint64_t)in_int(&in, "term", INT64_MIN, INT64_MAX);
    record.incarnation = (uint64_t)in_int(&in, "incarnation", 0, LIMIT_INCARNATIONS);
    record.round = (uint64_t)in_int(&in, "round", INT64_MIN, INT64_MAX);
    record.previous = (uint64_t)in_int(&in, "previous", INT64_MIN, INT64_MAX);
    record.commit = (uint64_t)in_int(&in, "commit", INT64_MIN, INT64_MAX);
    record.check = (uint64_t)in_int(&in, "check", INT64_MIN, INT64_MAX);
    record.manifest = (uint64_t)in_int(&in, "manifest", INT64_MIN, INT64_MAX);
    record.cause = (uint32_t)in_int(&in, "cause", 0, UINT32_MAX);
    record.slot = (uint32_t)in_int(&in, "slot", 0, UINT32_MAX);
    record.ended = (uint32_t)in_int(&in, "ended", 0, UINT32_MAX);
    record.value = (int32_t)in_int(&in, "value", INT32_MIN, INT32_MAX);
    record.code = (int32_t)in_int(&in, "code", INT32_MIN, INT32_MAX);
    record.wall_us = in_int(&in, "wall_us", 0, INT64_MAX);
    in_text(&in, "host", memory->host, sizeof(memory->host));
    in_text(&in, "text", memory->text, sizeof(memory->text));
    record.addresses = in_addresses(&in, &memory->lists);
    record.members = in_ids(&in, &memory->lists, "members");
    record.holders = in_ids(&in, &memory->lists, "holders");
    wrong = in.rc ? NULL : record_wrong(&record);
    if (wrong)
        in_damaged(&in, wrong);
    json_decref(in.object);
    if (!in.rc)
        *ret_record = record;
    return in.rc;
}

/* Reads the facts of the job. HVD_E_VERSION: a newer hvd-elastic has written them. The copies of
 * the job's key in this function are overwritten. */
int etcd_read_facts(struct span line, struct job_facts *ret_facts, struct hvd_err *err)
{
    struct etcd_in in = in_begin(line, "the value of the key \"facts\"", err);
    struct job_facts facts = { .port = 0 };
    char text[2 * JOB_KEY_BYTES + 1] = "";

    if (in_int(&in, "format", 1, INT32_MAX) > ETCD_FORMAT)
        in.rc = err_set(err, HVD_E_VERSION,
                        "a newer hvd-elastic has written this job; use that one to drive it");
    in_text(&in, "job", facts.job, sizeof(facts.job));
    in_text(&in, "key", text, sizeof(text));
    if (strlen(text) != 2 * JOB_KEY_BYTES || !hex_read(text, JOB_KEY_BYTES, facts.key))
        in_damaged(&in, "the key of the job is not valid");
    explicit_bzero(text, sizeof(text));
    facts.created_wall_us = in_int(&in, "created_us", INT64_MIN, INT64_MAX);
    facts.port = (uint16_t)in_int(&in, "port", 0, UINT16_MAX);
    facts.ended = in_int(&in, "ended", 0, 1) == 1;
    facts.code = (int32_t)in_int(&in, "code", INT32_MIN, INT32_MAX);
    in_text(&in, "text", facts.text, sizeof(facts.text));
    if (!in.rc && job_name_check(facts.job, NULL))
        in_damaged(&in, "the name of the job is not valid");
    json_decref(in.object);
    if (!in.rc)
        *ret_facts = facts;
    explicit_bzero(&facts, sizeof(facts));
    return in.rc;
}

/* Reads the value of the key "owner": which driver has claimed the job. */
int etcd_read_owner(struct span line, struct etcd_owner *ret_owner, struct hvd_err *err)
{
    struct etcd_in in = in_begin(line, "the value of the key \"owner\"", err);
    struct etcd_owner owner = { .token = 0 };

    owner.token = (uint64_t)in_int(&in, "token", INT64_MIN, INT64_MAX);
    owner.since_wall_us = in_int(&in, "since_us", INT64_MIN, INT64_MAX);
    owner.lease_s = in_int(&in, "lease_s", 0, INT32_MAX);
    in_text(&in, "who", owner.who, sizeof(owner.who));
    json_decref(in.object);
    if (!in.rc)
        *ret_owner = owner;
    return in.rc;
}

/* Appends the addresses that a standby has announced to `peers`, as long as there is room. An
 * address that is not valid ends the reading. */
int etcd_read_peers(struct span line, struct store_peers *peers, struct hvd_err *err)
{
    struct etcd_in in = in_begin(line, "the addresses of a standby", err);
    const json_t *list = json_object_get(in.object, "addresses");
    size_t count = json_array_size(list);

    for (size_t i = 0; i < count && peers->count < STORE_PEERS_MAX && !in.rc; i++) {
        in_copy_text(&in, json_array_get(list, i), peers->address[peers->count],
                     STORE_PEER_TEXT_MAX);
        if (!in.rc)
            peers->count++;
    }
    json_decref(in.object);
    return in.rc;
}

/* Reads a list of numbers, which is stored as "3,17,17". */
static void in_numbers(struct etcd_in *in, const char *field, struct numbers *ret_numbers)
{
    char text[NUMBERS_TEXT_MAX];

    in_text(in, field, text, sizeof(text));
    if (!in->rc && numbers_parse((struct span){ text, strlen(text) }, field, ret_numbers, NULL))
        in_damaged(in, "a list of numbers is not valid");
}

/* Reads a record of the blacklist, and checks it as blacklist_record_check does for any store. */
int etcd_read_blacklist(struct span line, struct blacklist_record *ret_record, struct hvd_err *err)
{
    struct etcd_in in = in_begin(line, "a record of the blacklist", err);
    struct blacklist_record record = { .slot = 0 };
    struct hvd_err inner;
    int64_t slot;

    in_text(&in, "host", record.host, sizeof(record.host));
    slot = in_int(&in, "slot", -1, LIMIT_SLOTS_PER_HOST - 1);
    record.slot = slot < 0 ? BLACKLIST_WHOLE_HOST : (uint32_t)slot;
    record.failures = (uint32_t)in_int(&in, "failures", 0, UINT32_MAX);
    record.since_wall_us = in_int(&in, "since_us", 0, INT64_MAX);
    record.until_wall_us = in_int(&in, "until_us", 0, INT64_MAX);
    in_numbers(&in, "restarts", &record.restarts);
    in_numbers(&in, "incarnations", &record.incarnations);
    in_text(&in, "reason", record.reason, sizeof(record.reason));
    if (!in.rc && blacklist_record_check(&record, &inner))
        in_damaged(&in, inner.text);
    json_decref(in.object);
    if (!in.rc)
        *ret_record = record;
    return in.rc;
}
