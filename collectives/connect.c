/*
 * connect.c: connects the members of a round (coll_connect). A member opens a control connection to
 * each of its partners (partners.c), at the address that came with the round; there the two
 * exchange the addresses of their links and shared memory:
 *
 *     link_create ──► segment_create ──► meet_join ──► a partner is met ──► its segment is opened,
 *                     (lowest rank of                                       its link is connected
 *                      the host)                                            ──► all links are there
 *
 * The control connections stay open as long as the round. After this they carry only the reason why
 * the round ends. The callbacks at the top run on the thread of meet/, everything else on the
 * owner's thread.
 */
#include "base/mem.h"
#include "collectives/device.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

/* Called on meet's thread when a peer is met: keeps the peer's address, which is for the segment
 * and for the link (meet_all), and wakes the owner. */
static void on_met(void *arg, size_t peer, const uint8_t *address, size_t length)
{
    struct coll *coll = arg;
    struct coll_partner *partner = &coll->partners.items[peer];

    pthread_mutex_lock(&coll->mutex);
    memcpy(partner->address, address, length);
    partner->address_length = length;
    partner->met = true;
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
}

/* Called on meet's thread when a peer cannot be connected: fails the round. */
static void on_missed(void *arg, size_t peer, int code, const char *why)
{
    struct coll *coll = arg;
    uint32_t rank = coll->partners.items[peer].rank;

    /* After HVD_E_LOST and similar codes a new round is tried. But if the peer has other groups or
     * other settings, the new round would fail too: that is an error of the program. */
    if (code != HVD_E_NOMEM)
        code = code == HVD_E_MISMATCH ? HVD_E_INVAL : HVD_E_LOST;
    coll_fail(coll, code, rank,
              "rank %u (incarnation %" PRIu64 ") cannot be connected to this worker: %s", rank,
              coll->members.incarnations[rank], why);
}

/* Called when a peer sends why the round has failed. `rank` caused the failure; `peer` only passes
 * the reason on. */
static void on_failure(void *arg, size_t peer, int code, uint32_t rank, const char *why)
{
    struct coll *coll = arg;

    (void)peer;
    coll_fail(coll, code == HVD_E_MISMATCH ? code : HVD_E_LOST, rank, "%s", why);
}

/* Called on meet's thread when the control connection to a peer has ended without a BYE: the peer
 * has died. */
static void on_parted(void *arg, size_t peer)
{
    struct coll *coll = arg;
    uint32_t rank = coll->partners.items[peer].rank;

    coll_fail(coll, HVD_E_LOST, rank,
              "rank %u (incarnation %" PRIu64 ") has ended, or its host is gone", rank,
              coll->members.incarnations[rank]);
}

/* Called after meet_leave, when all control connections are closed. */
static void on_left(void *arg)
{
    struct coll *coll = arg;

    reaper_add(coll->engine->reaper, &coll->freeing);
}

static const struct meet_ops meet_ops = { on_met, on_missed, on_failure, on_parted, on_left };

/* Plans the boards of the segment. The segment is the memory that all members on this host share; a
 * board is the part of it through which the members of one group exchange data, chunk by chunk. The
 * boards stand in the order of the groups. A group gets a board here if it has members on this host
 * and several members on any host; whether this process is a member does not matter. So a member
 * that is alone on its host has a board too: all members of the group must cut the data into the
 * same chunks. */
static void plan_boards(struct coll *coll, struct segment_board *boards, uint32_t *places,
                        struct segment_spec *spec)
{
    const struct coll_members *members = &coll->members;
    const struct group *all = &coll->groups[0].group;

    spec->boards = boards;
    for (size_t i = 0; i < coll->group_count; i++) {
        struct coll_group *group = &coll->groups[i];
        uint32_t count = 0;

        for (uint32_t k = 0; k < group->group.size; k++) {
            uint32_t rank = group->group.ranks[k];

            if (members->hosts[rank] == members->hosts[coll->rank])
                places[count++] = all->local_of[rank];
        }
        group->board_index = SIZE_MAX;
        if (!count || group_is_apart(&group->group))
            continue;
        if (group->group.place != GROUP_OUTSIDE)
            group->board_index = spec->board_count;
        boards[spec->board_count++] = (struct segment_board){ places, count };
        places += count;
    }
}

/* Creates or opens the segment, the shared memory of this host. locator: tells where the segment is
 * that the lowest rank of this host has created; NULL: we are that rank. */
static int get_segment(struct coll *coll, const uint8_t *locator, struct hvd_err *err)
{
    const struct group *all = &coll->groups[0].group;
    struct segment_spec spec = { .round = coll->round,
                                 .roster = coll->members.hash,
                                 .count = all->local_count,
                                 .place = all->local };
    struct segment_board *boards = mem_zalloc_array(coll->group_count, sizeof(*boards));
    struct segment *segment = NULL;
    uint32_t *places;
    size_t room = 1;
    int rc = 0;

    for (size_t i = 0; i < coll->group_count; i++)
        room += coll->groups[i].group.size;
    places = mem_zalloc_array(room, sizeof(*places));
    if (boards && places)
        plan_boards(coll, boards, places, &spec);
    else
        rc = err_set(err, HVD_E_NOMEM, "out of memory; free memory on this host");
    if (!rc)
        rc = locator ? segment_open(&spec, locator, &segment, err)
                     : segment_create(&spec, &segment, err);
    mem_free(boards);
    mem_free(places);
    if (rc)
        return rc;
    if (!locator)
        segment_locate(segment, coll->locator);
    for (size_t i = 0; i < coll->group_count; i++) {
        struct coll_group *group = &coll->groups[i];

        if (group->board_index != SIZE_MAX)
            group->board = segment_board(segment, group->board_index);
    }
    /* From now on coll_fail also fails the segment. If the round has failed before, fail the
     * segment here. */
    pthread_mutex_lock(&coll->mutex);
    coll->segment = segment;
    if (coll_has_failed(coll))
        segment_fail(segment, coll->failure.code, MEET_NOBODY, coll->failure.text);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

_Static_assert(SEGMENT_LOCATOR_BYTES + LINK_ADDRESS_MAX <= MEET_ADDRESS_MAX,
               "a partner can be told both");

/* Begins to connect with the partners (meet_join). Each partner gets the segment's locator, if we
 * created the segment, and then the address of our link, if the two members need a link. */
static int join_meeting(struct coll *coll, struct hvd_err *err)
{
    struct meet_peer *peers = mem_zalloc_array(coll->partners.count, sizeof(*peers));
    const struct meet_spec spec = {
        .round = coll->round,
        .incarnation = coll->members.incarnations[coll->rank],
        .rank = coll->rank,
        .roster = coll->members.hash,
        .secret = coll->members.secret,
        .peers = peers,
        .peer_count = coll->partners.count,
        .ops = &meet_ops,
        .arg = coll,
    };
    int rc = 0;

    if (!peers)
        return err_set(err, HVD_E_NOMEM, "out of memory; free memory on this host");
    for (size_t i = 0; i < coll->partners.count && !rc; i++) {
        const struct coll_partner *partner = &coll->partners.items[i];
        struct meet_peer *peer = &peers[i];
        size_t length = 0;

        peer->rank = partner->rank;
        peer->incarnation = coll->members.incarnations[partner->rank];
        peer->contact = coll->members.contacts[partner->rank];
        if (coll->segment && coll->members.hosts[partner->rank] == coll->rank) {
            memcpy(peer->address, coll->locator, sizeof(coll->locator));
            peer->address_length = sizeof(coll->locator);
        }
        if (partner->linked)
            rc = coll->link->ops->address(coll->link, partner->rank,
                                          peer->address + peer->address_length, &length, err);
        peer->address_length += length;
    }
    if (!rc) {
        pthread_mutex_lock(&coll->mutex);
        rc = meet_join(coll->engine->meet, &spec, &coll->meeting, err);
        pthread_mutex_unlock(&coll->mutex);
    }
    mem_free(peers);
    return rc;
}

/* Waits for the address of each partner. When the address has arrived, opens the segment that the
 * partner has created, and begins to connect the link to the partner. */
static int meet_all(struct coll *coll, int64_t deadline_us, struct hvd_err *err)
{
    bool late = false;
    int rc = 0;

    pthread_mutex_lock(&coll->mutex);
    while (!rc && !coll_has_failed(coll)) {
        struct coll_partner *met = NULL, *missing = NULL;
        size_t link_at;

        for (size_t i = 0; i < coll->partners.count && !met; i++) {
            struct coll_partner *partner = &coll->partners.items[i];

            if (partner->met && !partner->connecting)
                met = partner;
            else if (!partner->met && !missing)
                missing = partner;
        }
        if (!met && !missing)
            break;
        if (!met && late) {
            pthread_mutex_unlock(&coll->mutex);
            return coll_fail(coll, HVD_E_TIMEOUT, missing->rank,
                             "rank %u (incarnation %" PRIu64
                             ") did not connect to this worker in time",
                             missing->rank, coll->members.incarnations[missing->rank]);
        }
        if (!met) {
            atomic_store(&coll->traffic.awaited, missing->rank);
            late = thread_cond_wait(&coll->changed, &coll->mutex, deadline_us);
            atomic_store(&coll->traffic.awaited, TRAFFIC_NOBODY);
            continue;
        }
        met->connecting = true;
        atomic_fetch_add(&coll->traffic.progress, 1);
        pthread_mutex_unlock(&coll->mutex);
        /* the address of the member that has created the segment begins with the locator */
        link_at = met->leads ? SEGMENT_LOCATOR_BYTES : 0;
        if (met->address_length < link_at)
            rc = err_set(err, HVD_E_PROTO,
                         "rank %u has not said where its shared memory is; all workers must use "
                         "one release of libhvd",
                         met->rank);
        else if (met->leads)
            rc = get_segment(coll, met->address, err);
        if (!rc && met->linked)
            rc = coll->link->ops->connect(coll->link, met->rank, met->address + link_at,
                                          met->address_length - link_at, err);
        pthread_mutex_lock(&coll->mutex);
    }
    pthread_mutex_unlock(&coll->mutex);
    return rc;
}

/* Connects this member with its partners: meets them, opens the shared memory of the host, and
 * connects the links. Returns 0, or the code of the round's failure; `err` gets its text. */
int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + timeout_us;
    struct hvd_err local = { .text = "" };
    uint32_t *linked = NULL;
    size_t linked_count = 0;
    int rc = 0;

    if (coll->size > 1 && !coll->engine)
        return err_set(err, HVD_E_INVAL, "a round of %u members needs an engine for collectives",
                       coll->size);
    if (coll->connected)
        return err_set(err, HVD_E_STATE, "the round has been connected already");
    coll->connected = true;
    atomic_store(&coll->activity.operation, "connect");
    /* Makes the link to the partners, meets all members, and waits until the link is connected. */
    if (coll->size > 1) {
        linked = mem_zalloc_array(coll->partners.count + 1, sizeof(*linked));
        if (!linked)
            rc = err_set(&local, HVD_E_NOMEM, "out of memory; free memory on this host");
        for (size_t i = 0; linked && i < coll->partners.count; i++) {
            if (coll->partners.items[i].linked)
                linked[linked_count++] = coll->partners.items[i].rank;
        }
        if (linked_count)
            rc = coll_make_link(coll, linked, linked_count, &coll->link, &local);
        mem_free(linked);
        coll->traffic.link = coll->link;
        coll->traffic.segment_bytes = coll_segment_bytes(coll->engine);
        if (!rc && !group_is_apart(&coll->groups[0].group) &&
            coll->members.hosts[coll->rank] == coll->rank)
            rc = get_segment(coll, NULL, &local);
        if (!rc)
            rc = join_meeting(coll, &local);
        if (!rc)
            rc = meet_all(coll, deadline_us, &local);
        if (!rc && coll->link)
            rc = coll_await_link(coll, coll->link, deadline_us);
    }
    /* If all members have a GPU, begin the NCCL communicator of all members now. */
    if (coll->size > 1 && !rc && coll->devices_told && !coll_has_failed(coll)) {
        atomic_store(&coll->activity.group, &coll->groups[0]);
        rc = device_begin_comm(coll, &coll->groups[0]);
    }
    atomic_store(&coll->traffic.awaited, TRAFFIC_NOBODY);
    atomic_store(&coll->activity.operation, NULL);
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
