/*
 * connect.c: connects the members of a round (coll_connect). A member opens a control connection to
 * each of its partners (partners.c), at the address that came with the round; over it the two
 * exchange the addresses of their links and shared memory:
 *
 *     link_create ──► segment_create ──► meet_join ──► a partner is met ──► its segment is opened,
 *                     (lowest rank of                                       its link is connected
 *                      the host)                                            ──► all links are there
 *
 * The control connections stay open as long as the round. After this they carry only the reason why
 * the round ends. A group that its members alone open connects in the same way, with a circle of
 * its own (circle.c: members that meet, their link and segment). The callbacks at the top run on
 * the thread of meet/, everything else on the owner's thread.
 */
#include "base/mem.h"
#include "collectives/device.h"
#include "os/clock.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

/* Called on meet's thread when a peer is met: keeps what the peer has sent, where its segment and
 * its link are (meet_all reads it), and wakes the owner. */
static void connect_on_met(void *arg, size_t peer, const uint8_t *address, size_t length)
{
    struct coll_circle *circle = arg;
    struct coll *coll = circle->coll;
    struct coll_partner *partner = &circle->partners.items[peer];

    pthread_mutex_lock(&coll->mutex);
    memcpy(partner->address, address, length);
    partner->address_length = length;
    partner->met = true;
    pthread_cond_broadcast(&coll->changed);
    pthread_mutex_unlock(&coll->mutex);
}

/* Called on meet's thread when a peer cannot be connected: fails the round. `why`: meet's reason.
 */
static void connect_on_missed(void *arg, size_t peer, int code, const char *why)
{
    struct coll_circle *circle = arg;
    struct coll *coll = circle->coll;
    uint32_t rank = circle->partners.items[peer].rank;
    char name[COLL_NAME_MAX];

    /* After HVD_E_LOST and similar codes a new round is tried. But if the peer has other groups or
     * other settings, the new round would fail too: that is an error of the program. */
    if (code != HVD_E_NOMEM)
        code = code == HVD_E_MISMATCH ? HVD_E_INVAL : HVD_E_LOST;
    coll_fail(coll, code, rank, "%s cannot be connected to this worker: %s",
              coll_name(coll, rank, name), why);
}

/* Called on meet's thread when a peer sends why the round has failed. `rank` caused the failure;
 * `peer` only passes the reason on. A mismatch has the same text on all members. Another reason
 * gets the name of the member that it is about, unless it names ranks itself: "no descriptor is
 * left" is about that member, not about this one. */
static void connect_on_failure(void *arg, size_t peer, int code, uint32_t rank, const char *why)
{
    struct coll_circle *circle = arg;
    struct coll *coll = circle->coll;
    char name[COLL_NAME_MAX];

    (void)peer;
    if (code == HVD_E_MISMATCH)
        coll_fail(coll, code, rank, "%s", why);
    else if (rank >= coll->size || rank == coll->rank || strstr(why, "rank "))
        coll_fail(coll, HVD_E_LOST, rank, "%s", why);
    else
        coll_fail(coll, HVD_E_LOST, rank, "%s: %s", coll_name(coll, rank, name), why);
}

/* Called on meet's thread when the control connection to a peer has ended without a BYE: the peer
 * has died. */
static void connect_on_parted(void *arg, size_t peer)
{
    struct coll_circle *circle = arg;
    struct coll *coll = circle->coll;
    uint32_t rank = circle->partners.items[peer].rank;
    char name[COLL_NAME_MAX];

    coll_fail(coll, HVD_E_LOST, rank, "%s has ended, or its host is gone",
              coll_name(coll, rank, name));
}

/* Called on meet's thread after meet_leave, when all control connections of the circle are closed.
 */
static void connect_on_left(void *arg)
{
    struct coll_circle *circle = arg;

    coll_circle_left(circle->coll);
}

static const struct meet_ops meet_ops = { connect_on_met, connect_on_missed, connect_on_failure,
                                          connect_on_parted, connect_on_left };

/* Plans the boards of the segment. The segment is the memory that all members on this host share; a
 * board is the part of it through which the members of one group exchange data, chunk by chunk. The
 * boards have the order of the groups. A group gets a board here if the group has a member on
 * this host, and if at least one host (this one or another) has two or more members of the group;
 * whether this process is a member does not matter. So a member that is alone on its host has a
 * board too: all members of the group must cut the data into the same chunks. The segment of the
 * circle of one group has one board, for the members of the group on this host. */
static void plan_boards(const struct coll_circle *circle, struct segment_board *boards,
                        uint32_t *places, struct segment_spec *spec)
{
    struct coll *coll = circle->coll;
    const struct coll_members *members = &coll->members;
    const struct group *all = &coll->groups[0].group;

    spec->boards = boards;
    if (circle->group) {
        for (uint32_t i = 0; i < circle->group->group.local_count; i++)
            places[i] = i;
        *boards = (struct segment_board){ places, circle->group->group.local_count };
        spec->board_count = 1;
        circle->group->board_index = 0;
        return;
    }
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

/* Creates or opens the segment, the memory that the circle's members on this host share. locator:
 * says where the segment is that the first of these members has created; NULL: this process is the
 * first, and creates it. */
static int get_segment(struct coll_circle *circle, const uint8_t *locator, struct hvd_err *err)
{
    struct coll *coll = circle->coll;
    struct coll_group *first = circle->group ? circle->group : &coll->groups[0];
    size_t group_count = circle->group ? 1 : coll->group_count;
    struct segment_spec spec = { .round = circle->round,
                                 .roster = circle->roster,
                                 .count = first->group.local_count,
                                 .place = first->group.local };
    struct segment_board *boards = mem_zalloc_array(group_count, sizeof(*boards));
    struct segment *segment = NULL;
    uint32_t *places;
    size_t room = 1;
    int rc = 0;

    for (size_t i = 0; i < group_count; i++)
        room += first[i].group.size;
    places = mem_zalloc_array(room, sizeof(*places));
    if (boards && places)
        plan_boards(circle, boards, places, &spec);
    else
        rc = err_set(
            err, HVD_E_NOMEM,
            "no memory for the plan of the shared memory of a host; free memory on this host");
    if (!rc)
        rc = locator ? segment_open(&spec, locator, &segment, err)
                     : segment_create(&spec, &segment, err);
    mem_free(boards);
    mem_free(places);
    if (rc)
        return rc;
    if (!locator)
        segment_locate(segment, circle->locator);
    for (size_t i = 0; i < group_count; i++) {
        if (first[i].board_index != SIZE_MAX)
            first[i].board = segment_board(segment, first[i].board_index);
    }
    /* From now on coll_fail also fails the segment. If the round has failed before, this thread
     * fails the segment. */
    pthread_mutex_lock(&coll->mutex);
    circle->segment = segment;
    if (coll_has_failed(coll))
        segment_fail(segment, coll->failure.code, MEET_NOBODY, coll->failure.text);
    pthread_mutex_unlock(&coll->mutex);
    return 0;
}

_Static_assert(SEGMENT_LOCATOR_BYTES + LINK_ADDRESS_MAX <= MEET_ADDRESS_MAX,
               "a partner can be told both the locator and the address of a link");

/* Begins to meet the partners (meet_join). Each partner will get the segment's locator, if this
 * member has created the segment, and then the address of this member's link, if the two members
 * need a link. */
int coll_circle_join(struct coll_circle *circle, struct hvd_err *err)
{
    struct coll *coll = circle->coll;
    const uint32_t *hosts = coll->members.hosts;
    struct meet_peer *peers = mem_zalloc_array(circle->partners.count, sizeof(*peers));
    const struct meet_spec spec = {
        .round = circle->round,
        .incarnation = coll->members.incarnations[coll->rank],
        .rank = coll->rank,
        .roster = circle->roster,
        .secret = coll->members.secret,
        .peers = peers,
        .peer_count = circle->partners.count,
        .ops = &meet_ops,
        .arg = circle,
    };
    int rc = 0;

    if (!peers)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the list of the peers of a round; free memory on this host");
    for (size_t i = 0; i < circle->partners.count && !rc; i++) {
        const struct coll_partner *partner = &circle->partners.items[i];
        struct meet_peer *peer = &peers[i];
        size_t length = 0;

        peer->rank = partner->rank;
        peer->incarnation = coll->members.incarnations[partner->rank];
        peer->contact = coll->members.contacts[partner->rank];
        /* only the member that creates the segment has a segment before it meets the partners */
        if (circle->segment && hosts[partner->rank] == hosts[coll->rank]) {
            memcpy(peer->address, circle->locator, sizeof(circle->locator));
            peer->address_length = sizeof(circle->locator);
        }
        if (partner->linked)
            rc = circle->link->ops->address(circle->link, partner->rank,
                                            peer->address + peer->address_length, &length, err);
        peer->address_length += length;
    }
    if (!rc) {
        pthread_mutex_lock(&coll->mutex);
        rc = meet_join(coll->engine->meet, &spec, &circle->meeting, err);
        pthread_mutex_unlock(&coll->mutex);
    }
    mem_free(peers);
    return rc;
}

/* Waits until each partner is met. When a partner is met, opens the segment that the partner has
 * created, and begins to connect the link to the partner. Returns 0 also when the round has failed
 * meanwhile: the failure is kept in `coll`. */
static int meet_all(struct coll_circle *circle, int64_t deadline_us, struct hvd_err *err)
{
    struct coll *coll = circle->coll;
    char name[COLL_NAME_MAX];
    bool late = false; /* true: the deadline is over */
    int rc = 0;

    pthread_mutex_lock(&coll->mutex);
    while (!rc && !coll_has_failed(coll)) {
        struct coll_partner *met = NULL, *missing = NULL;
        size_t link_at;

        for (size_t i = 0; i < circle->partners.count && !met; i++) {
            struct coll_partner *partner = &circle->partners.items[i];

            if (partner->met && !partner->connecting)
                met = partner;
            else if (!partner->met && !missing)
                missing = partner;
        }
        if (!met && !missing)
            break;
        if (!met && late) {
            pthread_mutex_unlock(&coll->mutex);
            return coll_fail(
                coll, HVD_E_TIMEOUT, missing->rank,
                "%s did not connect to this worker in time; look for a firewall between the hosts",
                coll_name(coll, missing->rank, name));
        }
        if (!met) {
            atomic_store(&circle->shown->awaited, missing->rank);
            late = thread_cond_wait(&coll->changed, &coll->mutex, deadline_us);
            atomic_store(&circle->shown->awaited, TRAFFIC_NOBODY);
            continue;
        }
        met->connecting = true;
        atomic_fetch_add(&circle->shown->progress, 1);
        pthread_mutex_unlock(&coll->mutex);
        /* what the creator of the segment has sent begins with the locator; the link's address
         * follows */
        link_at = met->leads ? SEGMENT_LOCATOR_BYTES : 0;
        if (met->address_length < link_at)
            rc = err_set(
                err, HVD_E_PROTO,
                "rank %u has sent no address of its shared memory; all workers must use the "
                "same release of libhvd",
                met->rank);
        else if (met->leads)
            rc = get_segment(circle, met->address, err);
        if (!rc && met->linked)
            rc = circle->link->ops->connect(circle->link, met->rank, met->address + link_at,
                                            met->address_length - link_at, err);
        pthread_mutex_lock(&coll->mutex);
    }
    pthread_mutex_unlock(&coll->mutex);
    return rc;
}

/* Makes the link of the circle to those partners that need one, and the segment of this host if
 * this member is the first of the circle on this host. */
int coll_circle_make(struct coll_circle *circle, struct hvd_err *err)
{
    struct coll *coll = circle->coll;
    const struct group *group = &(circle->group ? circle->group : &coll->groups[0])->group;
    uint32_t *linked = mem_zalloc_array(circle->partners.count + 1, sizeof(*linked));
    size_t count = 0;
    int rc = linked ? 0
                    : err_set(err, HVD_E_NOMEM,
                              "no memory for the list of the linked peers of a round; free memory "
                              "on this host");

    for (size_t i = 0; linked && i < circle->partners.count; i++) {
        if (circle->partners.items[i].linked)
            linked[count++] = circle->partners.items[i].rank;
    }
    if (!rc && count)
        rc = coll_make_link(coll, linked, count, &circle->link, err);
    mem_free(linked);
    if (!rc && !group_is_apart(group) && group->local == 0)
        rc = get_segment(circle, NULL /* this process creates it */, err);
    return rc;
}

/* Meets all partners of the circle, and connects the circle's link to them (coll_circle.h). */
int coll_circle_connect(struct coll_circle *circle, int64_t deadline_us, struct hvd_err *err)
{
    int rc = meet_all(circle, deadline_us, err);

    if (!rc && circle->link)
        rc = coll_await_link(circle->coll, circle->link, circle->shown, deadline_us);
    circle->connected = !rc;
    return rc;
}

/* Connects this member with its partners: meets them, opens the shared memory of the host, and
 * connects the links. Returns 0, or the code of the round's failure; `err` gets its text. */
int coll_connect(struct coll *coll, int64_t timeout_us, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + timeout_us;
    struct coll_circle *circle = &coll->circle;
    struct hvd_err local = { .text = "" };
    int rc = 0;

    if (coll->size > 1 && !coll->engine)
        return err_set(err, HVD_E_INVAL,
                       "this process has no port for other workers, so it cannot connect a round "
                       "of %u members; this is a bug of hvd-elastic, please report it",
                       coll->size);
    if (circle->connected)
        return err_set(err, HVD_E_STATE,
                       "the round was connected a second time, which is a bug of hvd-elastic; "
                       "please report it");
    atomic_store(&coll->activity.operation, "connect");
    /* Make the link to the partners, meet all partners, and wait until the link is connected. */
    if (coll->size > 1) {
        circle->round = coll->round;
        circle->roster = coll->members.hash;
        rc = coll_circle_make(circle, &local);
        coll->traffic.link = circle->link;
        coll->traffic.segment_bytes = coll_segment_bytes(coll->engine);
        if (!rc)
            rc = coll_circle_join(circle, &local);
        if (!rc)
            rc = coll_circle_connect(circle, deadline_us, &local);
    }
    circle->connected = true;
    /* If all members have a GPU, begin the NCCL communicator of the group of all members now. */
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
