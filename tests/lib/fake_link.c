/*
 * fake_link.c: links between members in one process, with messages that are kept until they are
 * received. A fault can strike at any call, so the lane tests can break off an operation at every
 * point.
 */
#include "tests/lib/fake_link.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/panic.h"

#include <pthread.h>
#include <string.h>

struct fake_link {
    struct link base;
    struct fake_net *net;
    uint32_t rank;
    bool cancelled, dead;
    uint64_t calls_left; /* calls until the fault; 0: no fault is planned */
    enum fake_fault fault;
};

struct fake_request {
    struct list place;
    uint32_t from, to;
    uint64_t tag;
    const void *out;
    void *in; /* NULL: this request is a send */
    size_t length;
    bool done;
};

struct fake_net {
    uint32_t size;
    struct fake_link *links;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list sent;
    uint64_t messages, left;
    bool broken, strayed, faulted;
};

static struct fake_link *of(struct link *link)
{
    return (struct fake_link *)(void *)link;
}

static void nothing(struct link *link)
{
    (void)link;
}

static bool is_partner(const struct fake_net *net, uint32_t from, uint32_t to)
{
    uint32_t ahead = (to + net->size - from) % net->size, behind = net->size - ahead;

    return from != to && (!(ahead & (ahead - 1)) || !(behind & (behind - 1)));
}

static struct fake_request *request_of(struct fake_link *link, uint32_t from, uint32_t to,
                                       uint64_t tag, size_t length)
{
    struct fake_request *request = mem_zalloc(sizeof(*request));

    ASSERT(request && from < link->net->size && to < link->net->size);
    list_init(&request->place);
    request->from = from;
    request->to = to;
    request->tag = tag;
    request->length = length;
    return request;
}

static void cancel_all(struct fake_net *net)
{
    for (uint32_t i = 0; i < net->size; i++)
        net->links[i].cancelled = true;
    pthread_cond_broadcast(&net->changed);
}

/* Counts a call, and lets the planned fault happen in it. The caller holds the mutex. */
static void count_call(struct fake_link *link)
{
    if (!link->calls_left || --link->calls_left)
        return;
    link->net->faulted = true;
    if (link->fault == FAKE_CANCEL_ALL) {
        cancel_all(link->net);
        return;
    }
    link->cancelled = true;
    link->dead = true;
    pthread_cond_broadcast(&link->net->changed);
}

/* Begins a send or receive with this rank: 0, HVD_E_REVOKED, or HVD_E_LOST. */
static int post(struct fake_link *link, struct fake_request *request, uint32_t rank)
{
    int rc = 0;

    pthread_mutex_lock(&link->net->mutex);
    count_call(link);
    if (link->cancelled)
        rc = HVD_E_REVOKED;
    else if (link->net->links[rank].dead)
        rc = HVD_E_LOST;
    if (!rc)
        link->net->left++;
    if (!rc && request->out) {
        list_append(&link->net->sent, &request->place);
        link->net->messages++;
        link->net->strayed |= !is_partner(link->net, link->rank, rank);
        pthread_cond_broadcast(&link->net->changed);
    }
    pthread_mutex_unlock(&link->net->mutex);
    if (rc)
        mem_free(request);
    return rc;
}

static int fake_send(struct link *base, uint32_t rank, uint64_t tag, const void *bytes,
                     size_t length, struct link_request **ret_request)
{
    struct fake_link *link = of(base);
    struct fake_request *request = request_of(link, link->rank, rank, tag, length);
    int rc;

    request->out = bytes;
    rc = post(link, request, rank);
    if (rc)
        return rc;
    *ret_request = (struct link_request *)(void *)request;
    return 0;
}

static int fake_receive(struct link *base, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                        struct link_request **ret_request)
{
    struct fake_link *link = of(base);
    struct fake_request *request = request_of(link, rank, link->rank, tag, length);
    int rc;

    request->in = bytes;
    rc = post(link, request, rank);
    if (rc)
        return rc;
    *ret_request = (struct link_request *)(void *)request;
    return 0;
}

static struct fake_request *find_sent(struct fake_net *net, const struct fake_request *wanted)
{
    LIST_EACH (it, &net->sent) {
        struct fake_request *sent = CONTAINER_OF(it, struct fake_request, place);

        if (sent->from == wanted->from && sent->to == wanted->to && sent->tag == wanted->tag)
            return sent;
    }
    return NULL;
}

static void try_receive(struct fake_net *net, struct fake_request *request)
{
    struct fake_request *sent = find_sent(net, request);

    if (!sent)
        return;
    ASSERT(sent->length <= request->length);
    memcpy(request->in, sent->out, sent->length);
    list_remove(&sent->place);
    sent->done = true;
    request->done = true;
    pthread_cond_broadcast(&net->changed);
}

static int fake_wait(struct link *base, struct link_request *awaited)
{
    struct fake_link *link = of(base);
    struct fake_request *request = (struct fake_request *)(void *)awaited;
    uint32_t peer = request->in ? request->from : request->to;
    int rc = 0;

    pthread_mutex_lock(&link->net->mutex);
    count_call(link);
    while (!link->cancelled) {
        if (request->in && !request->done)
            try_receive(link->net, request);
        if (request->done || link->net->broken || link->net->links[peer].dead)
            break;
        pthread_cond_wait(&link->net->changed, &link->net->mutex);
    }
    if (link->cancelled || !request->done)
        rc = link->cancelled ? HVD_E_REVOKED : HVD_E_LOST;
    list_remove(&request->place);
    link->net->left--;
    pthread_mutex_unlock(&link->net->mutex);
    mem_free(request);
    return rc;
}

static void fake_drop(struct link *base, struct link_request *dropped)
{
    struct fake_request *request = (struct fake_request *)(void *)dropped;

    pthread_mutex_lock(&of(base)->net->mutex);
    list_remove(&request->place);
    of(base)->net->left--;
    pthread_mutex_unlock(&of(base)->net->mutex);
    mem_free(request);
}

/* Cancels this link; other members find this rank lost. */
static void fake_cancel(struct link *base)
{
    struct fake_link *link = of(base);

    pthread_mutex_lock(&link->net->mutex);
    link->cancelled = true;
    link->net->broken = true;
    pthread_cond_broadcast(&link->net->changed);
    pthread_mutex_unlock(&link->net->mutex);
}

static const struct link_ops fake_ops = {
    .enter = nothing,
    .leave = nothing,
    .send = fake_send,
    .receive = fake_receive,
    .wait = fake_wait,
    .drop = fake_drop,
    .cancel = fake_cancel,
    .free = nothing,
};

struct fake_net *fake_net_create(uint32_t size)
{
    struct fake_net *net = mem_zalloc(sizeof(*net));

    ASSERT(net);
    net->links = mem_zalloc_array(size, sizeof(*net->links));
    ASSERT(net->links);
    net->size = size;
    pthread_mutex_init(&net->mutex, NULL);
    pthread_cond_init(&net->changed, NULL);
    list_init(&net->sent);
    for (uint32_t i = 0; i < size; i++)
        net->links[i] = (struct fake_link){ .base.ops = &fake_ops, .net = net, .rank = i };
    return net;
}

void fake_net_free(struct fake_net *net)
{
    if (!net)
        return;
    pthread_cond_destroy(&net->changed);
    pthread_mutex_destroy(&net->mutex);
    mem_free(net->links);
    mem_free(net);
}

struct link *fake_net_link(struct fake_net *net, uint32_t rank)
{
    return &net->links[rank].base;
}

uint64_t fake_net_messages(const struct fake_net *net)
{
    return net->messages;
}

bool fake_net_strayed(const struct fake_net *net)
{
    return net->strayed;
}

void fake_net_plan(struct fake_net *net, uint32_t rank, uint64_t call, enum fake_fault fault)
{
    net->links[rank].calls_left = call;
    net->links[rank].fault = fault;
}

bool fake_net_faulted(const struct fake_net *net)
{
    return net->faulted;
}

void fake_net_cancel(struct fake_net *net)
{
    pthread_mutex_lock(&net->mutex);
    cancel_all(net);
    pthread_mutex_unlock(&net->mutex);
}

uint64_t fake_net_left(const struct fake_net *net)
{
    return net->left;
}
