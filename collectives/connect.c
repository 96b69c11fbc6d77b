#include "base/mem.h"
#include "base/time.h"
#include "collectives/device.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

#define LOOK_US TIME_S

/* ---- whom it must meet ---- */

static struct coll_partner *add_partner(struct coll *coll, uint32_t rank)
{
    for (size_t i = 0; i < coll->partner_count; i++) {
        if (coll->partners[i].rank == rank)
            return &coll->partners[i];
    }
    if (coll->partner_count == coll->partner_room) {
        size_t room = coll->partner_room ? coll->partner_room * 2 : 8;
        struct coll_partner *partners = mem_resize(coll->partners, room * sizeof(*partners));

        if (!partners)
            return NULL;
        coll->partners = partners;
        coll->partner_room = room;
    }
    coll->partners[coll->partner_count] = (struct coll_partner){ .rank = rank };
    return &coll->partners[coll->partner_count++];
}

/* The lowest rank of a host makes its segment: the others meet it. */
static int add_locals(struct coll *coll)
{
    uint32_t leader = coll->hosts[coll->rank];

    for (uint32_t i = 0; i < coll->size; i++) {
        struct coll_partner *partner;

        if (coll->hosts[i] != leader || i == coll->rank || (i != leader && coll->rank != leader))
            continue;
        partner = add_partner(coll, i);
        if (!partner)
            return HVD_E_NOMEM;
        partner->leads = i == leader;
    }
    return 0;
}

static int add_lane(struct coll *coll, struct coll_group *group)
{
    const struct group *members = &group->group;
    uint32_t places[LANE_PARTNERS_MAX], local;
    size_t count;

    group->lane = (struct lane){ .traffic = &coll->traffic,
                                 .ranks = &coll->everybody[coll->rank],
                                 .size = 1 };
    if (members->place == GROUP_OUTSIDE || members->host_count == 1)
        return 0;
    local = group_local(members);
    if (local >= members->lane_count)
        return 0;
    group->lane.ranks = &members->lane_ranks[(size_t)local * members->host_count];
    group->lane.index = members->host;
    group->lane.size = members->host_count;
    count = lane_partners(members->host, members->host_count, places);
    for (size_t i = 0; i < count; i++) {
        struct coll_partner *partner = add_partner(coll, group->lane.ranks[places[i]]);

        if (!partner)
            return HVD_E_NOMEM;
        partner->linked = true;
    }
    return 0;
}

/* Sums in the order of ranks need everybody's numbers. */
static int add_everybody(struct coll *coll, struct coll_group *group)
{
    const struct group *members = &group->group;

    if (members->place == GROUP_OUTSIDE || members->host_count == 1)
        return 0;
    for (uint32_t i = 0; i < members->size; i++) {
        struct coll_partner *partner;

        if (i == members->place)
            continue;
        partner = add_partner(coll, members->ranks[i]);
        if (!partner)
            return HVD_E_NOMEM;
        partner->linked = true;
    }
    group->mesh_lane = (struct lane){ .traffic = &coll->traffic,
                                      .ranks = members->ranks,
                                      .index = members->place,
                                      .size = members->size };
    return 0;
}

int coll_choose_partners(struct coll *coll)
{
    int rc = add_locals(coll);

    for (size_t i = 0; i < coll->group_count && !rc; i++) {
        rc = add_lane(coll, &coll->groups[i]);
        if (!rc && coll->engine && coll->engine->options.fixed_order)
            rc = add_everybody(coll, &coll->groups[i]);
    }
    return rc;
}

/* ---- what meet says, on its thread ---- */

static void met(void *arg, size_t peer, const uint8_t *address, size_t length)
{
    struct coll *coll = arg;
    struct coll_partner *partner = &coll->partners[peer];

    pthread_mutex_lock(&coll->mutex);
    memcpy(partner->address, address, length);
    partner->address_length = length;
    partner->met = true;
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
}

static void missed(void *arg, size_t peer, int code, const char *why)
{
    struct coll *coll = arg;
    uint32_t rank = coll->partners[peer].rank;

    /* Other groups or settings are no fault of the round's: the next one would come to the same. */
    if (code != HVD_E_NOMEM)
        code = code == HVD_E_MISMATCH ? HVD_E_INVAL : HVD_E_LOST;
    coll_fail(coll, code, rank, "rank %u (incarnation %" PRIu64 ") could not be met: %s", rank,
              coll->members[rank].incarnation, why);
}

static void heard(void *arg, size_t peer, int code, uint32_t rank, const char *why)
{
    struct coll *coll = arg;

    (void)peer; /* whoever passes it on is not whose fault it is */
    coll_fail(coll, code == HVD_E_MISMATCH ? code : HVD_E_LOST, rank, "%s", why);
}

static void parted(void *arg, size_t peer)
{
    struct coll *coll = arg;
    uint32_t rank = coll->partners[peer].rank;

    coll_fail(coll, HVD_E_LOST, rank, "rank %u (incarnation %" PRIu64 ") is gone", rank,
              coll->members[rank].incarnation);
}

/* A peer that has a reason says it on the line where it was met; its connection breaks at the same
 * time. So long the reason is waited for. */
#define REASON_US TIME_S

void coll_await_reason(struct coll *coll)
{
    int64_t until_us = clock_now_us() + REASON_US;
    bool late = false;

    pthread_mutex_lock(&coll->mutex);
    while (!coll_has_failed(coll) && !late)
        late = thread_cond_wait(&coll->changed, &coll->mutex, until_us);
    pthread_mutex_unlock(&coll->mutex);
}

int coll_lost(void *arg, uint32_t rank)
{
    struct coll *coll = arg;

    coll_await_reason(coll);
    return coll_fail(coll, HVD_E_LOST, rank,
                     "the connection to rank %u (incarnation %" PRIu64 ") broke", rank,
                     coll->members[rank].incarnation);
}

static void gone(void *arg)
{
    struct coll *coll = arg;

    reaper_add(coll->engine->reaper, &coll->freeing);
}

static const struct meet_ops meet_ops = { met, missed, heard, parted, gone };

/* ---- the memory of this host ---- */

/* Boards of each group that has members here, in the order of the groups, whether this member is
 * one of them or not. A group whose members are all apart needs none; in the others also a member
 * that is alone on its host has one, so that all go by the same chunks. */
struct board_plan {
    struct segment_board *boards;
    uint32_t *places; /* of all of them */
    size_t board_count, place_count;
};

static void plan_free(struct board_plan *plan)
{
    mem_free(plan->boards);
    mem_free(plan->places);
}

static int plan_room(const struct coll *coll, struct board_plan *plan)
{
    size_t places = 0;

    for (size_t i = 0; i < coll->group_count; i++)
        places += coll->groups[i].group.size;
    plan->boards = mem_zalloc_array(coll->group_count, sizeof(*plan->boards));
    plan->places = mem_zalloc_array(places + 1, sizeof(*plan->places));
    return plan->boards && plan->places ? 0 : HVD_E_NOMEM;
}

static void plan_board(const struct coll *coll, struct coll_group *group, struct board_plan *plan)
{
    const struct group *all = &coll->groups[0].group;
    uint32_t *places = plan->places + plan->place_count;
    uint32_t count = 0;

    group->board_index = SIZE_MAX;
    for (uint32_t i = 0; i < group->group.size; i++) {
        uint32_t rank = group->group.ranks[i];

        if (coll->hosts[rank] == coll->hosts[coll->rank])
            places[count++] = all->local_of[rank];
    }
    if (!count || group_is_apart(&group->group))
        return;
    if (group->group.place != GROUP_OUTSIDE)
        group->board_index = plan->board_count;
    plan->boards[plan->board_count++] = (struct segment_board){ places, count };
    plan->place_count += count;
}

static int use_segment(struct coll *coll, struct segment *segment)
{
    for (size_t i = 0; i < coll->group_count; i++) {
        struct coll_group *group = &coll->groups[i];

        if (group->board_index != SIZE_MAX)
            group->board = segment_board(segment, group->board_index);
    }
    pthread_mutex_lock(&coll->mutex);
    coll->segment = segment;
    if (coll_has_failed(coll))
        segment_fail(segment, coll->failure.code, MEET_NOBODY, coll->failure.text);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

/* locator NULL: this member makes it. */
static int get_segment(struct coll *coll, const uint8_t *locator, struct hvd_err *err)
{
    const struct group *all = &coll->groups[0].group;
    struct board_plan plan = { .boards = NULL };
    struct segment *segment = NULL;
    struct segment_spec spec = { .round = coll->round,
                                 .roster = coll->roster,
                                 .count = all->local_count,
                                 .place = group_local(all) };
    int rc = plan_room(coll, &plan);

    if (rc) {
        plan_free(&plan);
        return err_set(err, rc, "out of memory");
    }
    for (size_t i = 0; i < coll->group_count; i++)
        plan_board(coll, &coll->groups[i], &plan);
    spec.boards = plan.boards;
    spec.board_count = plan.board_count;
    rc = locator ? segment_open(&spec, locator, &segment, err)
                 : segment_create(&spec, &segment, err);
    plan_free(&plan);
    if (rc)
        return rc;
    if (!locator)
        segment_locate(segment, coll->locator);
    return use_segment(coll, segment);
}

/* ---- what it tells each of its peers ---- */

_Static_assert(SEGMENT_LOCATOR_BYTES + LINK_ADDRESS_MAX <= MEET_ADDRESS_MAX,
               "both have room in what a peer is told");

/* The segment's locator from the one that has made it, then the link's address to those that it
 * links to. */
static int tell_address(struct coll *coll, const struct coll_partner *partner,
                        struct meet_peer *peer, struct hvd_err *err)
{
    size_t length = 0;
    int rc;

    peer->rank = partner->rank;
    peer->incarnation = coll->members[partner->rank].incarnation;
    peer->contact = coll->members[partner->rank].contact;
    if (coll->segment && coll->hosts[partner->rank] == coll->rank) {
        memcpy(peer->address, coll->locator, sizeof(coll->locator));
        peer->address_length = sizeof(coll->locator);
    }
    if (!partner->linked)
        return 0;
    rc = coll->link->ops->address(coll->link, partner->rank, peer->address + peer->address_length,
                                  &length, err);
    peer->address_length += length;
    return rc;
}

static int join(struct coll *coll, struct hvd_err *err)
{
    struct meet_peer *peers = mem_zalloc_array(coll->partner_count, sizeof(*peers));
    const struct meet_spec spec = {
        .round = coll->round,
        .incarnation = coll->members[coll->rank].incarnation,
        .rank = coll->rank,
        .roster = coll->roster,
        .peers = peers,
        .peer_count = coll->partner_count,
        .ops = &meet_ops,
        .arg = coll,
    };
    int rc = 0;

    if (!peers)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    for (size_t i = 0; i < coll->partner_count && !rc; i++)
        rc = tell_address(coll, &coll->partners[i], &peers[i], err);
    if (!rc) {
        pthread_mutex_lock(&coll->mutex);
        rc = meet_join(coll->engine->meet, &spec, &coll->party, err);
        pthread_mutex_unlock(&coll->mutex);
    }
    mem_free(peers);
    return rc;
}

/* ---- connecting ---- */

static int make_link(struct coll *coll, struct hvd_err *err)
{
    uint32_t *ranks = mem_zalloc_array(coll->partner_count + 1, sizeof(*ranks));
    struct link_device *device = NULL;
    struct link *link = NULL;
    size_t count = 0;
    int rc = 0;

    if (!ranks)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    for (size_t i = 0; i < coll->partner_count; i++) {
        if (coll->partners[i].linked)
            ranks[count++] = coll->partners[i].rank;
    }
    if (count)
        rc = coll_engine_device(coll->engine, &device, err);
    if (!rc && count)
        rc = link_create(device, coll->engine->reaper, coll->rank, coll->size, ranks, count, &link,
                         err);
    mem_free(ranks);
    if (rc || !count)
        return rc;
    pthread_mutex_lock(&coll->mutex);
    coll->link = link;
    if (coll_has_failed(coll))
        link->ops->cancel(link);
    pthread_mutex_unlock(&coll->mutex);
    coll->traffic.link = link;
    coll->traffic.segment_bytes = coll_segment_bytes(coll->engine);
    return 0;
}

/* What a peer that has been met is good for. */
static int use_partner(struct coll *coll, const struct coll_partner *partner, struct hvd_err *err)
{
    const uint8_t *address = partner->address;
    size_t left = partner->address_length;
    int rc = 0;

    if (partner->leads) {
        if (left < SEGMENT_LOCATOR_BYTES)
            return err_set(err, HVD_E_PROTO, "rank %u does not say where its memory is",
                           partner->rank);
        rc = get_segment(coll, address, err);
        address += SEGMENT_LOCATOR_BYTES;
        left -= SEGMENT_LOCATOR_BYTES;
    }
    if (!rc && partner->linked)
        rc = coll->link->ops->connect(coll->link, partner->rank, address, left, err);
    return rc;
}

/* One that is met and not begun to be connected; NULL: none, and *ret_missing is one that is not
 * met either, or NULL. Locked. */
static struct coll_partner *next_met(struct coll *coll, struct coll_partner **ret_missing)
{
    *ret_missing = NULL;
    for (size_t i = 0; i < coll->partner_count; i++) {
        struct coll_partner *partner = &coll->partners[i];

        if (partner->met && !partner->connecting)
            return partner;
        if (!partner->met && !*ret_missing)
            *ret_missing = partner;
    }
    return NULL;
}

static int not_met(struct coll *coll, uint32_t rank, int code, const char *why)
{
    return coll_fail(coll, code, rank, "rank %u (incarnation %" PRIu64 "): %s", rank,
                     coll->members[rank].incarnation, why);
}

/* Each is connected as soon as it is met. */
static int meet_all(struct coll *coll, int64_t deadline_us, struct hvd_err *err)
{
    struct coll_partner *partner, *missing;
    bool late = false;
    int rc = 0;

    pthread_mutex_lock(&coll->mutex);
    while (!rc && !coll_has_failed(coll)) {
        partner = next_met(coll, &missing);
        if (!partner && !missing)
            break;
        if (!partner && late) {
            pthread_mutex_unlock(&coll->mutex);
            return not_met(coll, missing->rank, HVD_E_TIMEOUT, "it did not come in time");
        }
        if (!partner) {
            atomic_store(&coll->traffic.awaited, missing->rank);
            late = thread_cond_wait(&coll->changed, &coll->mutex, deadline_us);
            atomic_store(&coll->traffic.awaited, TRAFFIC_NOBODY);
            continue;
        }
        partner->connecting = true;
        atomic_fetch_add(&coll->traffic.progress, 1);
        pthread_mutex_unlock(&coll->mutex);
        rc = use_partner(coll, partner, err);
        pthread_mutex_lock(&coll->mutex);
    }
    pthread_mutex_unlock(&coll->mutex);
    return rc;
}

/* The link says who is missing when time is over: it gets it in slices, for whoever looks on. */
static int await_connections(struct coll *coll, int64_t deadline_us, uint32_t *ret_rank,
                             struct hvd_err *err)
{
    int64_t until_us;
    int rc;

    do {
        until_us = clock_now_us() + LOOK_US;
        rc = coll->link->ops->connected(coll->link, until_us < deadline_us ? until_us : deadline_us,
                                        ret_rank, err);
        if (rc == HVD_E_TIMEOUT)
            atomic_store(&coll->traffic.awaited, *ret_rank);
    } while (rc == HVD_E_TIMEOUT && until_us < deadline_us);
    return rc;
}

static int connect_all(struct coll *coll, int64_t deadline_us, struct hvd_err *err)
{
    const struct group *all = &coll->groups[0].group;
    struct hvd_err why = { .text = "" };
    uint32_t rank = 0;
    int rc = make_link(coll, err);

    if (!rc && !group_is_apart(all) && coll->hosts[coll->rank] == coll->rank)
        rc = get_segment(coll, NULL, err);
    if (!rc)
        rc = join(coll, err);
    if (!rc)
        rc = meet_all(coll, deadline_us, err);
    if (rc || !coll->link)
        return rc;
    rc = await_connections(coll, deadline_us, &rank, &why);
    if (rc == HVD_E_LOST) /* it may have had a reason: it can be ahead of us */
        return coll_lost(coll, rank);
    return rc == HVD_E_TIMEOUT ? not_met(coll, rank, rc, why.text) : rc;
}

int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err)
{
    struct hvd_err local = { .text = "" };
    int rc = 0;

    if (coll->size > 1 && !coll->engine)
        return err_set(err, HVD_E_INVAL, "a round of %u needs an engine", coll->size);
    if (coll->connected)
        return err_set(err, HVD_E_STATE, "the round has been connected");
    coll->connected = true;
    atomic_store(&coll->operation, "connect");
    if (coll->size > 1)
        rc = connect_all(coll, clock_now_us() + timeout_us, &local);
    if (coll->size > 1 && !rc && coll->devices_told && !coll_has_failed(coll)) {
        atomic_store(&coll->current, &coll->groups[0]);
        rc = device_tie(coll, &coll->groups[0]);
    }
    atomic_store(&coll->traffic.awaited, TRAFFIC_NOBODY);
    atomic_store(&coll->operation, NULL);
    if (rc)
        coll_fail(coll, rc, MEET_NOBODY, "%s", local.text[0] ? local.text : err_text(rc));
    if (!coll_has_failed(coll))
        return 0;
    pthread_mutex_lock(&coll->mutex);
    rc = err_set(err, coll->failure.code, "round %" PRIu64 ": %s", coll->round, coll->failure.text);
    coll->reported = true;
    pthread_mutex_unlock(&coll->mutex);
    return rc;
}
