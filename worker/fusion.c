/*
 * fusion.c: joins started requests into batches (fusion.h has the rules). A batch becomes one
 * collective call, whose pieces are the buffers of its requests.
 *
 * Called by requests.c. Invariant: the requests of a batch follow each other in the order of the
 * program's calls, and only calls of the program close a batch, never the time: so all ranks make
 * the same batches.
 */
#include "worker/fusion.h"

#include "collectives/reduce/reduce.h"
#include "worker/call.h"
#include "worker/rounds_internal.h"

#include <math.h>

_Static_assert(FUSION_SHARE >= 2, "a batch and one more request are below the threshold");
_Static_assert(REQUESTS_FUSED_MAX <= FINGERPRINT_FUSED_MAX,
               "the fingerprint has room for this number of requests");

/* Begins a new era, in which the requests are counted from 0; a request of an earlier era does not
 * count any more. */
void fusion_begin(struct requests *requests)
{
    requests->era++;
    requests->room = 1;
    requests->unawaited = 0;
}

/* Returns the bytes that a request reads; it also writes as many. */
static size_t fusion_bytes_of(const struct request *request)
{
    return request->call.count * reduce_type_bytes(request->call.type);
}

/* Compares two scales. A scale of 0 means 1, so one rank may write 0 and another 1. */
static bool is_same_scale(double left, double right)
{
    return !islessgreater(left != 0 ? left : 1, right != 0 ? right : 1);
}

/* true: the request may join the open batch: it computes the same thing as the first request of the
 * batch, in the same kind of memory. Two requests may not be in one batch if one of them writes
 * memory that the other reads or writes: in one operation the later one would not run after the
 * earlier one. */
static bool belongs(const struct requests *requests, const struct request *request)
{
    const struct coll_call *call = &request->call;
    const struct coll_call *first = &requests->open.first->call;
    size_t bytes = fusion_bytes_of(request);

    if (call->type != first->type || call->op != first->op || call->device != first->device ||
        call->by_host != first->by_host || !is_same_scale(call->prescale, first->prescale) ||
        !is_same_scale(call->postscale, first->postscale))
        return false;
    for (const struct request *other = requests->open.first; other; other = other->next) {
        size_t others = fusion_bytes_of(other);

        if (!call_are_apart(call->in, bytes, other->call.out, others) ||
            !call_are_apart(call->out, bytes, other->call.out, others) ||
            !call_are_apart(call->out, bytes, other->call.in, others))
            return false;
    }
    return true;
}

/* Returns the sum of `counts`; without counts (NULL) each member has `each`. */
static size_t fusion_sum_of(const size_t *counts, size_t each, uint32_t members)
{
    size_t sum = 0;

    if (!counts)
        return each * members;
    for (uint32_t i = 0; i < members; i++)
        sum += counts[i];
    return sum;
}

/* Called before a call of a group that its members alone have opened is queued: such a call is made
 * before the open batch, though the program may have started the requests of the batch earlier.
 * true: that would change a result, because the call and a request of the batch use the same
 * memory, and one of them writes to it. */
bool fusion_is_torn(const struct rounds *rounds, const struct request *request)
{
    const struct coll_call *call = &request->call;
    uint32_t members = roll_size(rounds->roll, call->group);
    size_t each = reduce_type_bytes(call->type);
    bool gathers = call->kind == COLL_ALLGATHER || call->kind == COLL_GATHER;
    bool deals = call->kind == COLL_REDUCESCATTER || call->kind == COLL_SCATTER ||
                 call->kind == COLL_ALLTOALL || call->kind == COLL_ALLTOALL_RAGGED;
    size_t in = each * (deals ? fusion_sum_of(call->counts, call->count, members) : call->count);
    size_t out = each * (gathers ? fusion_sum_of(call->counts, call->count, members)
                         : call->kind == COLL_ALLTOALL
                             ? fusion_sum_of(call->out_counts, call->count, members)
                             : call->count);
    bool torn = false;

    if (!roll_is_apart(rounds->roll, call->group))
        return false;
    /* "Torn" means: the call reads or writes memory into which a request of the open batch will
     * write, or writes memory that such a request will read. */
    for (const struct request *open = rounds->requests.open.first; open && !torn;
         open = open->next) {
        const struct coll_call *other = &open->call;
        size_t others = fusion_bytes_of(open);

        torn = (call->in && !call_are_apart(call->in, in, other->out, others)) ||
               (call->out && (!call_are_apart(call->out, out, other->out, others) ||
                              !call_are_apart(call->out, out, other->in, others)));
        for (size_t i = 0; i < call->piece_count && call->pieces && !torn; i++) {
            const struct coll_piece *piece = &call->pieces[i];
            size_t bytes = piece->count * each;

            torn = !call_are_apart(piece->in, bytes, other->out, others) ||
                   !call_are_apart(piece->out, bytes, other->out, others) ||
                   !call_are_apart(piece->out, bytes, other->in, others);
        }
    }
    return torn;
}

/* Moves the open batch, if there is one, to the end of the queue, and wakes the thread that makes
 * its call. */
void fusion_close(struct requests *requests)
{
    struct request *first = requests->open.first;

    if (!first)
        return;
    if (requests->first)
        requests->last->next = first;
    else
        requests->first = first;
    requests->last = requests->open.last;
    requests->open.first = NULL;
    atomic_store_explicit(&requests->holds, false, memory_order_relaxed);
    pthread_cond_signal(&requests->work);
}

/* Appends a request to the open batch if the rules of fusion.h allow that. Otherwise closes the
 * open batch, and opens a new batch with this request. waits: the program waits for this call at
 * once (hvd_run), so the request has a batch of its own. */
void fusion_append(struct rounds *rounds, struct request *request, bool waits)
{
    struct requests *requests = &rounds->requests;
    struct batch *open = &requests->open;
    const struct roll *roll = rounds->roll;
    /* true: the request may share a batch with others: a small allreduce that is not waited for at
     * once, in a round of several ranks without groups. */
    bool fusible = !waits && request->call.kind == COLL_ALLREDUCE && !request->call.pieces &&
                   roll->size > 1 && !roll->group_count && !roll->shared_count &&
                   rounds->fusion_bytes &&
                   fusion_bytes_of(request) <= rounds->fusion_bytes / FUSION_SMALL;

    /* The group was opened by its members alone, so the other ranks do not see this request. All
     * ranks must make the same batches: so this request leaves the open batch and the counts as
     * they are, and is queued before the open batch. */
    if (roll_is_apart(roll, request->call.group)) {
        request->next = NULL;
        request->batch = FUSION_APART | ++requests->apart;
        request->era = 0;
        if (requests->first)
            requests->last->next = request;
        else
            requests->first = request;
        requests->last = request;
        pthread_cond_signal(&requests->work);
        return;
    }
    /* no earlier request is unawaited (the program has waited for all), so the next batch starts
     * small */
    if (!waits && !requests->unawaited++)
        requests->room = 1;
    if (open->first && !(fusible && belongs(requests, request)))
        fusion_close(requests);
    if (!open->first) {
        *open = (struct batch){ .first = request, .number = open->number + 1 };
        atomic_store_explicit(&requests->holds, true, memory_order_relaxed);
    } else {
        open->last->next = request;
    }
    open->last = request;
    request->next = NULL;
    request->batch = open->number;
    request->era = requests->era;
    open->count++;
    open->bytes += fusion_bytes_of(request);
    if (fusible && open->count == requests->room) {
        fusion_close(requests); /* the batch is full, so the next batch may have more requests */
        requests->room *= FUSION_GROWTH;
        if (requests->room > REQUESTS_FUSED_MAX)
            requests->room = REQUESTS_FUSED_MAX;
    } else if (!fusible || open->bytes >= rounds->fusion_bytes / FUSION_SHARE) {
        fusion_close(requests);
    }
    if (request->call.kind == COLL_JOIN)
        fusion_begin(requests);
}

/* true: the request is in the open batch, so its call is not queued yet. */
bool fusion_holds(const struct requests *requests, const struct request *request)
{
    return requests->open.first && request->batch == requests->open.number;
}

/* Called when the program waits for a request for the first time. If the request is in the open
 * batch, the batch is closed: the thread that makes the calls waits for that. */
void fusion_await(struct requests *requests, const struct request *request)
{
    if (request->era == requests->era)
        requests->unawaited--;
    if (fusion_holds(requests, request))
        fusion_close(requests);
}

/* Makes one call of all requests in the first batch of the queue; their buffers become the pieces
 * of that call. Returns the number of these requests. */
size_t fusion_take(struct requests *requests, struct coll_call *ret_call)
{
    const struct request *first = requests->first;
    size_t count = 0;

    /* one tag for the whole batch, mixed from the tags of its requests; 0: none has one */
    uint64_t tags = 0;

    *ret_call = first->call;
    for (struct request *each = requests->first; each && each->batch == first->batch;
         each = each->next) {
        requests->pieces[count] =
            (struct coll_piece){ each->call.in, each->call.out, each->call.count };
        requests->batch[count++] = each;
        if (each->call.tag || tags)
            tags = fingerprint_mix(tags, each->call.tag + count);
        /* If one request is not ordered in a stream, its caller waits for the result: then the
         * whole operation must be waited for. */
        ret_call->streamed = ret_call->streamed && each->call.streamed;
    }
    if (count == 1)
        return count;
    ret_call->tag = tags;
    ret_call->in = NULL;
    ret_call->out = NULL;
    ret_call->count = 0;
    ret_call->pieces = requests->pieces;
    ret_call->piece_count = count;
    ret_call->fused = (uint32_t)count;
    return count;
}
