/*
 * world_etcd.c: carries out the requests of drivers and standbys on one copy of the keys, as a
 * cluster that is linearizable does. world_gateway.c calls it when a request reaches a server that
 * has a leader. Invariant: a transaction changes all its keys under one revision, or none.
 */
#include "tests/world/world_etcd.h"

#include "base/mem.h"
#include "base/panic.h"
#include "driver/store/etcd_text.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_state.h"
#include "tests/world/world_thread.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX ((size_t)4 << 20)
#define KEY_MAX   256
#define BASE      ETCD_WORLD_PREFIX "/" ETCD_WORLD_JOB "/"

void etcd_world_init(struct world_etcd *etcd)
{
    etcd_text_start();
    list_init(&etcd->requests);
    etcd->revision = 1;
    etcd->leader_lost_us = -1;
}

static void key_remove(struct world_etcd *etcd, size_t at)
{
    mem_free(etcd->keys.items[at].name);
    buf_release(&etcd->keys.items[at].value);
    etcd->keys.count--;
    memmove(&etcd->keys.items[at], &etcd->keys.items[at + 1],
            (etcd->keys.count - at) * sizeof(etcd->keys.items[0]));
}

void etcd_world_release(struct world_etcd *etcd)
{
    gateway_release(etcd);
    while (etcd->keys.count)
        key_remove(etcd, etcd->keys.count - 1);
    VEC_RELEASE(&etcd->keys);
    VEC_RELEASE(&etcd->leases);
}

/* The first key that is not before the name. */
static size_t key_place(const struct world_etcd *etcd, const char *name)
{
    size_t low = 0, high = etcd->keys.count;

    while (low < high) {
        size_t at = low + (high - low) / 2;

        if (strcmp(etcd->keys.items[at].name, name) < 0)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

static struct world_etcd_key *key_find(const struct world_etcd *etcd, const char *name)
{
    size_t at = key_place(etcd, name);

    return at < etcd->keys.count && !strcmp(etcd->keys.items[at].name, name) ? &etcd->keys.items[at]
                                                                             : NULL;
}

bool etcd_world_has(const struct world_etcd *etcd, const char *key)
{
    char name[KEY_MAX];

    snprintf(name, sizeof(name), BASE "%s", key);
    return key_find(etcd, name);
}

static void number_text(int64_t number, char text[24])
{
    snprintf(text, 24, "%" PRId64, number);
}

static void put_number(json_t *object, const char *name, int64_t number)
{
    char text[24];

    number_text(number, text);
    if (json_object_set_new(object, name, json_string(text)))
        PANIC("memory is out");
}

static int64_t get_number(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? strtoll(text, NULL, 10) : 0;
}

/* Decodes a text in base64 that the product has written. NULL: there is none of that name. */
static const char *get_bytes(const json_t *object, const char *name, struct buf *into)
{
    const char *text = json_string_value(json_object_get(object, name));

    buf_init(into, VALUE_MAX);
    if (text && etcd_unbase64(into, text, strlen(text)))
        PANIC("a request to etcd has \"%s\" as %s", text, name);
    return text ? buf_text(into) : NULL;
}

static void put_bytes(json_t *object, const char *name, const void *bytes, size_t length)
{
    struct buf text;

    buf_init(&text, 2 * VALUE_MAX);
    if (etcd_base64(&text, bytes, length) ||
        json_object_set_new(object, name, json_string(buf_text(&text))))
        PANIC("memory is out");
    buf_release(&text);
}

static json_t *refuse(int code, const char *text, long *ret_status)
{
    *ret_status = code == 14 ? 503 : 400;
    return json_pack("{s:s, s:i}", "error", text, "code", code);
}

/* ---- leases --------------------------------------------------------------------------------- */

static struct world_etcd_lease *lease_find(struct world_etcd *etcd, int64_t number)
{
    for (size_t i = 0; i < etcd->leases.count; i++)
        if (etcd->leases.items[i].number == number)
            return &etcd->leases.items[i];
    return NULL;
}

/* Ends the lease, and deletes its keys under one revision. */
static void lease_end(struct world_etcd *etcd, struct world_etcd_lease *lease)
{
    int64_t number = lease->number;

    *lease = etcd->leases.items[--etcd->leases.count];
    etcd->revision++;
    for (size_t at = etcd->keys.count; at-- > 0;)
        if (etcd->keys.items[at].lease == number)
            key_remove(etcd, at);
}

/* A lease ends up to a second late, and not while there is no leader. */
static void on_lease_over(struct world *world, struct world_event *event)
{
    struct world_etcd_lease *lease = lease_find(&world->etcd, (int64_t)event->number);
    int64_t left_us = lease ? lease->over_us - world->now_us : 0;

    if (lease && left_us <= 0 && world->now_us >= world->etcd.leaderless_us)
        lease_end(&world->etcd, lease);
    else if (lease)
        world_after(world, (left_us > 0 ? left_us : 0) + (int64_t)rng_below(&world->rng, TIME_S),
                    on_lease_over, world, NULL, event->number);
}

void etcd_world_lose_leader(struct world *world, int64_t us)
{
    struct world_etcd *etcd = &world->etcd;

    etcd->leader_lost_us = world->now_us;
    etcd->leaderless_us = world->now_us + us;
    for (size_t i = 0; i < etcd->leases.count; i++)
        etcd->leases.items[i].over_us = etcd->leaderless_us + etcd->leases.items[i].ttl_s * TIME_S;
}

static json_t *carry_out_lease(struct world *world, const char *what, const json_t *request,
                               long *ret_status)
{
    struct world_etcd *etcd = &world->etcd;
    struct world_etcd_lease *lease = lease_find(etcd, get_number(request, "ID"));
    json_t *answer = json_object();

    if (!strcmp(what, "grant")) {
        lease = WORLD_PUSH(&etcd->leases);
        *lease = (struct world_etcd_lease){ .number = ++etcd->leases_given,
                                            .ttl_s = get_number(request, "TTL") };
        lease->over_us = world->now_us + lease->ttl_s * TIME_S;
        world_after(world, lease->ttl_s * TIME_S + (int64_t)rng_below(&world->rng, TIME_S),
                    on_lease_over, world, NULL, (uint64_t)lease->number);
        put_number(answer, "ID", lease->number);
        put_number(answer, "TTL", lease->ttl_s);
    } else if (!strcmp(what, "keepalive")) {
        json_t *result = json_object();

        if (lease) {
            lease->over_us = world->now_us + lease->ttl_s * TIME_S;
            put_number(result, "TTL", lease->ttl_s);
        }
        json_object_set_new(answer, "result", result);
    } else if (!strcmp(what, "timetolive")) {
        put_number(answer, "TTL", lease ? (lease->over_us - world->now_us) / TIME_S : -1);
        if (lease)
            put_number(answer, "grantedTTL", lease->ttl_s);
    } else if (lease) { /* revoke */
        lease_end(etcd, lease);
    } else {
        json_decref(answer);
        return refuse(5, "etcdserver: requested lease not found", ret_status);
    }
    return answer;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static json_t *show_key(const struct world_etcd_key *key)
{
    json_t *shown = json_object();

    put_bytes(shown, "key", key->name, strlen(key->name));
    if (key->value.length)
        put_bytes(shown, "value", key->value.data, key->value.length);
    put_number(shown, "create_revision", key->made);
    put_number(shown, "mod_revision", key->changed);
    put_number(shown, "version", key->version);
    if (key->lease)
        put_number(shown, "lease", key->lease);
    return shown;
}

static json_t *carry_out_range(const struct world_etcd *etcd, const json_t *request)
{
    struct buf from, to;
    const char *first = get_bytes(request, "key", &from),
               *end = get_bytes(request, "range_end", &to);
    size_t limit = (size_t)get_number(request, "limit");
    json_t *kvs = json_array(), *answer = json_object();

    for (size_t at = key_place(etcd, first);
         at < etcd->keys.count && (!limit || json_array_size(kvs) < limit); at++) {
        const char *name = etcd->keys.items[at].name;

        if (end ? strcmp(name, end) >= 0 : strcmp(name, first) != 0)
            break;
        json_array_append_new(kvs, show_key(&etcd->keys.items[at]));
    }
    if (json_array_size(kvs))
        json_object_set(answer, "kvs", kvs);
    json_decref(kvs);
    buf_release(&from);
    buf_release(&to);
    return answer;
}

/* Counts the records of a step, or of a journal that was compacted, for the checks. */
static void count_records(struct world_etcd *etcd, const struct buf *value)
{
    size_t lines = 0;

    for (size_t i = 0; i < value->length; i++)
        lines += value->data[i] == '\n';
    if (*value->data == '=') {
        etcd->based = etcd->applied;
        etcd->base_count = lines;
    } else {
        etcd->applied += lines;
    }
}

static void carry_out_put(struct world *world, const struct world_client *client,
                          const json_t *request)
{
    struct world_etcd *etcd = &world->etcd;
    struct buf name, value;
    const char *text = get_bytes(request, "key", &name);
    size_t at = key_place(etcd, text);
    struct world_etcd_key *key = key_find(etcd, text);

    if (!key) {
        (void)WORLD_PUSH(&etcd->keys);
        memmove(&etcd->keys.items[at + 1], &etcd->keys.items[at],
                (etcd->keys.count - 1 - at) * sizeof(*key));
        key = &etcd->keys.items[at];
        *key = (struct world_etcd_key){ .name = mem_strdup(text), .made = etcd->revision };
        buf_init(&key->value, VALUE_MAX);
        if (!key->name)
            PANIC("memory is out");
    }
    (void)get_bytes(request, "value", &value);
    buf_release(&key->value);
    key->value = value;
    key->changed = etcd->revision;
    key->version++;
    key->lease = get_number(request, "lease");
    if (!strncmp(text, BASE "journal/", strlen(BASE "journal/")))
        count_records(etcd, &key->value);
    if (!strcmp(text, BASE "owner"))
        claim_applied(world, client);
    buf_release(&name);
}

static void carry_out_delete(struct world_etcd *etcd, const json_t *request)
{
    struct buf from, to;
    const char *first = get_bytes(request, "key", &from),
               *end = get_bytes(request, "range_end", &to);
    size_t at = key_place(etcd, first);

    while (at < etcd->keys.count && (end ? strcmp(etcd->keys.items[at].name, end) < 0
                                         : !strcmp(etcd->keys.items[at].name, first)))
        key_remove(etcd, at);
    buf_release(&from);
    buf_release(&to);
}

static bool compare_holds(const struct world_etcd *etcd, const json_t *compare)
{
    bool version = !strcmp(json_string_value(json_object_get(compare, "target")), "VERSION");
    struct buf name;
    const struct world_etcd_key *key = key_find(etcd, get_bytes(compare, "key", &name));

    buf_release(&name);
    return (!key      ? 0
            : version ? key->version
                      : key->changed) == get_number(compare, version ? "version" : "mod_revision");
}

static bool txn_writes(const json_t *operations)
{
    for (size_t i = 0; i < json_array_size(operations); i++)
        if (!json_object_get(json_array_get(operations, i), "request_range"))
            return true;
    return false;
}

/* A full database takes only deletions: not even a transaction whose puts would not be made. */
static bool txn_puts(const json_t *operations)
{
    for (size_t i = 0; i < json_array_size(operations); i++)
        if (json_object_get(json_array_get(operations, i), "request_put"))
            return true;
    return false;
}

static json_t *carry_out_txn(struct world *world, const struct world_client *client,
                             const json_t *request, long *ret_status)
{
    struct world_etcd *etcd = &world->etcd;
    const json_t *compares = json_object_get(request, "compare");
    const json_t *todo;
    json_t *answer = json_object(), *responses = json_array();
    bool held = true;

    for (size_t i = 0; i < json_array_size(compares); i++)
        held = held && compare_holds(etcd, json_array_get(compares, i));
    todo = json_object_get(request, held ? "success" : "failure");
    for (size_t i = 0; held && i < json_array_size(todo); i++) {
        const json_t *put = json_object_get(json_array_get(todo, i), "request_put");
        int64_t lease = put ? get_number(put, "lease") : 0;

        if (lease && !lease_find(etcd, lease)) {
            json_decref(answer);
            json_decref(responses);
            return refuse(5, "etcdserver: requested lease not found", ret_status);
        }
    }
    etcd->revision += txn_writes(todo);
    for (size_t i = 0; i < json_array_size(todo); i++) {
        const json_t *one = json_array_get(todo, i), *inner;
        json_t *response = json_object();

        if ((inner = json_object_get(one, "request_put")))
            carry_out_put(world, client, inner);
        else if ((inner = json_object_get(one, "request_delete_range")))
            carry_out_delete(etcd, inner);
        else if ((inner = json_object_get(one, "request_range")))
            json_object_set_new(response, "response_range", carry_out_range(etcd, inner));
        json_array_append_new(responses, response);
    }
    json_object_set_new(answer, "succeeded", json_boolean(held));
    json_object_set_new(answer, "responses", responses);
    return answer;
}

json_t *etcd_world_carry_out(struct world *world, const struct world_client *client,
                             const char *path, const json_t *request, long *ret_status)
{
    json_t *answer, *header;

    *ret_status = 200;
    if (world->now_us < world->disk.fails_until_us && !strcmp(path, "kv/txn") &&
        txn_puts(json_object_get(request, "success")))
        return refuse(8, "etcdserver: mvcc: database space exceeded", ret_status);
    if (!strcmp(path, "kv/txn"))
        answer = carry_out_txn(world, client, request, ret_status);
    else if (!strcmp(path, "kv/range"))
        answer = carry_out_range(&world->etcd, request);
    else
        answer = carry_out_lease(world, path + strlen("lease/"), request, ret_status);
    header = json_object();
    put_number(header, "revision", world->etcd.revision);
    json_object_set_new(answer, "header", header);
    return answer;
}
