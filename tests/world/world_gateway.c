/*
 * world_gateway.c: the HTTP of the simulated world: takes the requests of driver/store/etcd_call.c
 * to a server of the simulated cluster, and the answers back. It stands in for http/client.c. A
 * request may be carried out before, after or without its answer, and the client learns only that
 * none came in time. Some planted bugs change requests and answers here.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "driver/store/etcd_text.h"
#include "http/client.h"
#include "os/clock.h"
#include "tests/world/world_claim.h"
#include "tests/world/world_state.h"
#include "tests/world/world_thread.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATE_US     (2 * TIME_S) /* the most by which one answer in LATE_EVERY is late */
#define LATE_EVERY  200
#define PATH_MAX_   64
#define JOURNAL_KEY "journal/"

struct http_client {
    struct world_client *client;
};

/* A request under way. It lives until its client and the cluster have done with it. */
struct gateway_request {
    struct list chain;
    struct world_client *client;
    struct world_thread *thread; /* NULL: the client does not wait any more */
    size_t server;
    char path[PATH_MAX_];
    json_t *request;
    bool held; /* it came while there was no leader, and waits for the next one */
    bool carried_out, answered;
    int64_t carried_out_us;
    char *text; /* of the answer */
    long status;
};

int http_client_create(const struct http_config *config, struct http_client **ret_client,
                       struct hvd_err *err)
{
    (void)config;
    (void)err;
    *ret_client = world_alloc(sizeof(**ret_client));
    (*ret_client)->client = thread_client();
    return 0;
}

void http_client_free(struct http_client *client)
{
    mem_free(client);
}

static void request_free(struct gateway_request *own)
{
    list_remove(&own->chain);
    json_decref(own->request);
    mem_free(own->text);
    mem_free(own);
}

void gateway_release(struct world_etcd *etcd)
{
    LIST_EACH_SAFE (it, after, &etcd->requests)
        request_free(CONTAINER_OF(it, struct gateway_request, chain));
}

/* ---- the way back --------------------------------------------------------------------------- */

static void on_answer(struct world *world, struct world_event *event)
{
    struct gateway_request *own = event->who;
    bool leader_died = own->carried_out && world->etcd.leader_lost_us >= own->carried_out_us;

    /* The server that would answer may have been the leader that has died. */
    if (!own->thread || (leader_died && world_coin(world, 2))) {
        if (!own->thread)
            request_free(own);
        else
            own->answered = false, own->carried_out = false, own->held = false, own->status = -1;
        return;
    }
    own->answered = true;
    thread_wake(own->thread);
}

/* The server answers. */
static void gateway_reply(struct world *world, struct gateway_request *own, json_t *answer)
{
    int64_t after_us = world_between(world, world->shape.link);

    if (!world->calm && world_coin(world, LATE_EVERY))
        after_us += (int64_t)rng_below(&world->rng, LATE_US);
    if (world->now_us < world->disk.slow_until_us)
        after_us += (int64_t)rng_below(&world->rng, (uint64_t)world->disk.slow_us + 1);
    own->text = json_dumps(answer, JSON_COMPACT);
    if (!own->text)
        PANIC("memory is out");
    json_decref(answer);
    world_after(world, after_us, on_answer, own, NULL, 0);
}

static bool gateway_cut(const struct world *world, const struct world_client *client)
{
    return world->now_us < client->cut_us;
}

/* A request reaches its server. Without a leader the server refuses it, or keeps it for the next
 * leader, which carries it out although the client has given it up, or never sees it. */
static void on_request(struct world *world, struct world_event *event)
{
    struct gateway_request *own = event->who;
    bool lonely = gateway_cut(world, own->client) && own->server == own->client->alone;
    int64_t wait_us = world->etcd.leaderless_us - world->now_us;

    /* The request was lost with the leader, or it does not reach the server. */
    if ((own->held && world_coin(world, 2)) ||
        (gateway_cut(world, own->client) && !lonely && !own->held)) {
        own->status = -1;
    } else if (lonely || (wait_us > 0 && world_coin(world, 3))) {
        own->status = 503;
        gateway_reply(world, own,
                      json_pack("{s:s, s:i}", "error", "etcdserver: no leader", "code", 14));
        return;
    } else if (wait_us > 0) {
        own->held = true;
        world_after(world, wait_us + world_between(world, world->shape.link), on_request, own, NULL,
                    0);
        return;
    } else {
        own->carried_out = true;
        own->carried_out_us = world->now_us;
        gateway_reply(
            world, own,
            etcd_world_carry_out(world, own->client, own->path, own->request, &own->status));
        return;
    }
    if (!own->thread)
        request_free(own);
}

/* ---- planted bugs --------------------------------------------------------------------------- */

/* The key of the journal that the transaction puts, with its whole name. "": it puts none. */
static const char *put_in_journal(const json_t *request, char name[PATH_MAX_])
{
    const json_t *todo = json_object_get(request, "success");

    name[0] = '\0';
    for (size_t i = 0; i < json_array_size(todo) && !*name; i++) {
        const json_t *put = json_object_get(json_array_get(todo, i), "request_put");
        const char *text = json_string_value(json_object_get(put, "key"));
        struct buf key;

        buf_init(&key, PATH_MAX_);
        if (text && !etcd_unbase64(&key, text, strlen(text)) &&
            strstr(buf_text(&key), "/" JOURNAL_KEY))
            snprintf(name, PATH_MAX_, "%s", strstr(buf_text(&key), "/" JOURNAL_KEY) + 1);
        buf_release(&key);
    }
    return name;
}

/* Leaves the comparison with the owner out of a write. */
static void bug_unfenced(json_t *request)
{
    json_t *compares = json_object_get(request, "compare");

    for (size_t i = json_array_size(compares); i-- > 0;)
        if (!strcmp(json_string_value(json_object_get(json_array_get(compares, i), "target")),
                    "MOD"))
            json_array_remove(compares, i);
}

/* Gives every key "journal/N" of the request the next number that is free, as a driver does that
 * takes a write without an answer for one that has failed. */
static void bug_next_key(const struct world_etcd *etcd, json_t *request, const char *name)
{
    static const char *const parts[] = { "compare", "success", "failure" };
    uint64_t number = strtoull(name + strlen(JOURNAL_KEY), NULL, 16);
    char key[PATH_MAX_], whole[2 * PATH_MAX_];
    struct buf old, new;

    snprintf(key, sizeof(key), "%s", name);
    while (etcd_world_has(etcd, key))
        snprintf(key, sizeof(key), JOURNAL_KEY "%016" PRIx64, ++number);
    buf_init(&old, PATH_MAX_ * 4);
    buf_init(&new, PATH_MAX_ * 4);
    snprintf(whole, sizeof(whole), ETCD_WORLD_PREFIX "/" ETCD_WORLD_JOB "/%s", name);
    world_need(etcd_base64(&old, whole, strlen(whole)));
    snprintf(whole, sizeof(whole), ETCD_WORLD_PREFIX "/" ETCD_WORLD_JOB "/%s", key);
    world_need(etcd_base64(&new, whole, strlen(whole)));
    for (size_t part = 0; part < ARRAY_SIZE(parts); part++) {
        json_t *list = json_object_get(request, parts[part]), *one, *inner;
        size_t index;
        const char *kind;

        json_array_foreach(list, index, one)
        {
            if (!part && !strcmp(json_string_value(json_object_get(one, "key")), buf_text(&old)))
                json_object_set_new(one, "key", json_string(buf_text(&new)));
            json_object_foreach(one, kind, inner)
            {
                const char *text = json_string_value(json_object_get(inner, "key"));

                if (text && !strcmp(text, buf_text(&old)))
                    json_object_set_new(inner, "key", json_string(buf_text(&new)));
            }
        }
    }
    buf_release(&old);
    buf_release(&new);
}

static void bug_request(struct world *world, struct world_client *client, json_t *request)
{
    char name[PATH_MAX_];

    put_in_journal(request, name);
    if (world->shape.bug == BUG_ETCD_UNFENCED && *name)
        bug_unfenced(request);
    if (world->shape.bug == BUG_ETCD_UNSURE_FAILED && *name && !strcmp(name, client->unsure_key))
        bug_next_key(&world->etcd, request, name);
}

/* ---- the way there -------------------------------------------------------------------------- */

/* No answer has come in time. A planted bug takes the write for done. */
static int gateway_timeout(struct world *world, struct gateway_request *own,
                           const struct http_request *request, struct http_answer *ret_answer,
                           struct hvd_err *err)
{
    static const char done[] = "{\"succeeded\":true,\"header\":{\"revision\":\"1\"}}";
    struct world_client *client = own->client;
    char name[PATH_MAX_];

    put_in_journal(own->request, name);
    if (*name)
        snprintf(client->unsure_key, sizeof(client->unsure_key), "%s", name);
    own->thread = NULL;
    if (own->status == -1)
        request_free(own);
    if (world->shape.bug == BUG_ETCD_UNSURE_DONE && *name && !client->dead) {
        ret_answer->status = 200;
        return buf_append(request->body_to, done, strlen(done));
    }
    return err_set(err, client->dead ? HVD_E_INVAL : HVD_E_BUSY, "etcd: no answer in time");
}

int http_send(struct http_client *client, const struct http_request *request,
              struct http_answer *ret_answer, struct hvd_err *err)
{
    struct world_client *sender = client->client;
    struct world *world = sender->world;
    struct gateway_request *own;
    int64_t sent_us = clock_now_us(), until_us = sent_us + request->limit_us;
    static const char host[] = "http://10.0.0.", version[] = ":2379/v3/";
    char *path;
    int rc;

    if (sender->dead)
        return err_set(err, HVD_E_INVAL, "the process is dead");
    own = world_alloc(sizeof(*own));
    own->client = sender;
    own->thread = thread_now();
    if (strncmp(request->url, host, strlen(host)) != 0)
        PANIC("%s is no address of a simulated etcd", request->url);
    own->server = (unsigned)strtoul(request->url + strlen(host), &path, 10) - 1;
    if (strncmp(path, version, strlen(version)) != 0)
        PANIC("%s is no path of etcd's gateway", request->url);
    snprintf(own->path, sizeof(own->path), "%s", path + strlen(version));
    own->request = json_loadb(request->body, (size_t)request->body_length, 0, NULL);
    ASSERT(own->request && own->server < ETCD_WORLD_SERVERS);
    list_append(&world->etcd.requests, &own->chain);
    bug_request(world, sender, own->request);
    world_after(world, world_between(world, world->shape.link), on_request, own, NULL, 0);
    while (!own->answered && !sender->dead && clock_now_us() < until_us)
        (void)thread_wait(until_us);
    if (!own->answered)
        return gateway_timeout(world, own, request, ret_answer, err);
    ret_answer->status = own->status;
    /* A planted bug: a standby does not look at what is left of the lease. */
    if (world->shape.bug == BUG_ETCD_EARLY_CLAIM && !sender->scribe &&
        !strcmp(own->path, "lease/timetolive")) {
        rc = buf_append_text(request->body_to, "{\"TTL\":\"1\",\"grantedTTL\":\"9\"}");
        request_free(own);
        return rc;
    }
    claim_answered(world, sender, own->path, own->request, own->text, sent_us);
    rc = buf_append(request->body_to, own->text, strlen(own->text));
    request_free(own);
    return rc;
}
