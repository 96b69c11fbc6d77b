/*
 * lane_team.c: the lanes and links of lane_team.h. A member that loses a peer, or that finds
 * another operation than its own, cancels all links, so that no member waits for ever.
 */
#include "tests/lib/lane_team.h"

#include "base/mem.h"
#include "base/panic.h"
#include "collectives/link/reaper.h"
#include "os/clock.h"
#include "seal/seal.h"
#include "tests/lib/loopback.h"
#include "tests/lib/threads.h"

#include <stdio.h>
#include <string.h>

#define CONNECT_US INT64_C(60000000)

struct team_links {
    struct link_device *device;
    struct reaper *reaper;
    struct link *links[TEAM_MAX];
};

static void cancel_all(struct team *team)
{
    if (team->net)
        fake_net_cancel(team->net);
    for (uint32_t i = 0; team->real && i < team->size; i++)
        team->real->links[i]->ops->cancel(team->real->links[i]);
}

/* Called when a link is lost: tells all members, as the owner of a round does. */
static int lost(void *arg, uint32_t rank)
{
    struct team_member *member = arg;

    member->lost = rank;
    cancel_all(member->team);
    return HVD_E_LOST;
}

static void place_member(struct team *team, uint32_t index, struct link *link)
{
    struct team_member *member = &team->members[index];

    member->team = team;
    member->index = index;
    member->lost = TRAFFIC_NOBODY;
    traffic_init(&member->traffic, lost, member);
    member->traffic.link = link;
    member->lane.traffic = &member->traffic;
    member->lane.ranks = team->ranks;
    member->lane.index = index;
    member->lane.size = team->size;
}

void team_open_among(struct team *team, uint32_t size, const uint32_t *ranks, uint32_t rank_count)
{
    memset(team, 0, sizeof(*team));
    team->size = size;
    team->net = fake_net_create(rank_count);
    for (uint32_t i = 0; i < size; i++) {
        team->ranks[i] = ranks ? ranks[i] : i;
        place_member(team, i, fake_net_link(team->net, team->ranks[i]));
    }
}

void team_open(struct team *team, uint32_t size)
{
    team_open_among(team, size, NULL, size);
}

static void connect_own(struct team_member *member)
{
    struct link *link = member->traffic.link;
    struct hvd_err err = { .text = "" };
    uint32_t rank = 0;
    int rc = link->ops->connected(link, clock_now_us() + CONNECT_US, &rank, &err);

    if (rc)
        PANIC("member %u is not connected to rank %u: %s: %s", member->lane.index, rank,
              err_name(rc), err.text);
}

void team_open_links(struct team *team, uint32_t size, enum link_kind kind)
{
    struct team_links *real = mem_zalloc(sizeof(*real));
    uint32_t peers[TEAM_MAX];
    static const uint64_t incarnations[TEAM_MAX] = { 0 };
    static const uint8_t secret[SEAL_KEY_BYTES] = "the secret of this round";
    static const struct link_round round = { .round = 1,
                                             .incarnations = incarnations,
                                             .secret = secret };

    memset(team, 0, sizeof(*team));
    ASSERT(real && !reaper_open(&real->reaper, NULL));
    ASSERT(!link_device_open(kind, loopback_own(), &real->device, NULL));
    team->size = size;
    team->real = real;
    for (uint32_t i = 0; i < size; i++) {
        size_t count = 0;

        for (uint32_t j = 0; j < size; j++) {
            if (j != i)
                peers[count++] = j;
        }
        team->ranks[i] = i;
        ASSERT(!link_create(real->device,
                            &(struct link_spec){ .round = &round,
                                                 .reaper = real->reaper,
                                                 .rank = i,
                                                 .size = size,
                                                 .peers = peers,
                                                 .peer_count = count },
                            &real->links[i], NULL));
        place_member(team, i, real->links[i]);
    }
    for (uint32_t i = 0; i < size * size; i++) {
        if (i / size != i % size) {
            uint32_t from = i / size;
            uint32_t to = i % size;
            uint8_t bytes[LINK_ADDRESS_MAX];
            size_t length;

            ASSERT(!real->links[from]->ops->address(real->links[from], to, bytes, &length, NULL));
            ASSERT(!real->links[to]->ops->connect(real->links[to], from, bytes, length, NULL));
        }
    }
    /* each member connects on its own thread, because a link may need that */
    team_run(team, connect_own, NULL);
}

void team_close(struct team *team)
{
    if (!team->size)
        return;
    fake_net_free(team->net);
    if (team->real) {
        reaper_close(
            team->real->reaper); /* closed first: it closes what cancelled links have left */
        for (uint32_t i = 0; i < team->size; i++)
            team->real->links[i]->ops->free(team->real->links[i]);
        link_device_close(team->real->device);
        mem_free(team->real);
    }
    team->size = 0;
}

struct lane_act {
    struct team *team;
    void (*act)(struct team_member *member);
};

static void act_one(void *arg, uint32_t rank)
{
    struct lane_act *lane_act = arg;

    lane_act->act(&lane_act->team->members[rank]);
}

void team_run(struct team *team, void (*act)(struct team_member *member), const void *arg)
{
    team->arg = arg;
    for (uint32_t i = 0; i < team->size; i++) {
        team->members[i].wrong[0] = 0;
        team->members[i].rc = 0;
        team->members[i].sum = 0;
    }
    threads_run(team->size, NULL, act_one, &(struct lane_act){ team, act });
}

const char *team_wrong(const struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        if (team->members[i].wrong[0])
            return team->members[i].wrong;
        if (team->members[i].rc < 0)
            return err_name(team->members[i].rc);
        if (team->members[i].sum != team->members[0].sum)
            return "results that are not the same bits";
    }
    return team->net && fake_net_left(team->net) ? "requests are left" : NULL;
}

/* ---- operations ---- */

struct fingerprint team_fingerprint(struct team_member *member, enum coll_kind kind, hvd_dtype type,
                                    hvd_op op, uint64_t count)
{
    return (struct fingerprint){
        .number = ++member->number,
        .group = 7,
        .kind = (uint32_t)kind,
        .type = (uint16_t)type,
        .op = (uint16_t)op,
        .count = count,
        .prescale = 1,
        .postscale = 1,
        .rank = member->team->ranks[member->index],
    };
}

int team_begin(struct team_member *member, const struct fingerprint *ours, const void *first,
               size_t length)
{
    struct fingerprint theirs;
    int rc = lane_open_with(&member->lane, ours, first, length, &theirs);

    if (rc || ours->kind == COLL_JOIN || fingerprint_same(ours, &theirs))
        return rc;
    cancel_all(member->team);
    return HVD_E_MISMATCH;
}
