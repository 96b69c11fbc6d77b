#include "tests/lib/lane_crew.h"

#include "base/mem.h"
#include "base/panic.h"
#include "collectives/link/reaper.h"
#include "os/clock.h"
#include "os/thread.h"

#include <stdio.h>
#include <string.h>

#define CONNECT_US INT64_C(60000000)

struct crew_links {
    struct link_device *device;
    struct reaper *reaper;
    struct link *links[CREW_MAX];
};

static void cancel_all(struct crew *crew)
{
    if (crew->net)
        fake_net_cancel(crew->net);
    for (uint32_t i = 0; crew->real && i < crew->size; i++)
        crew->real->links[i]->ops->cancel(crew->real->links[i]);
}

/* As the owner of a round does: all are told. */
static int lost(void *arg, uint32_t rank)
{
    struct crew_member *member = arg;

    member->lost = rank;
    cancel_all(member->crew);
    return HVD_E_LOST;
}

static void seat(struct crew *crew, uint32_t index, struct link *link)
{
    struct crew_member *member = &crew->members[index];

    member->crew = crew;
    member->index = index;
    member->lost = TRAFFIC_NOBODY;
    traffic_init(&member->traffic, lost, member);
    member->traffic.link = link;
    member->lane.traffic = &member->traffic;
    member->lane.ranks = crew->ranks;
    member->lane.index = index;
    member->lane.size = crew->size;
}

void crew_open_among(struct crew *crew, uint32_t size, const uint32_t *ranks, uint32_t rank_count)
{
    memset(crew, 0, sizeof(*crew));
    crew->size = size;
    crew->net = fake_net_create(rank_count);
    for (uint32_t i = 0; i < size; i++) {
        crew->ranks[i] = ranks ? ranks[i] : i;
        seat(crew, i, fake_net_link(crew->net, crew->ranks[i]));
    }
}

void crew_open(struct crew *crew, uint32_t size)
{
    crew_open_among(crew, size, NULL, size);
}

static void connect_both(struct crew_links *real, uint32_t from, uint32_t to)
{
    uint8_t bytes[LINK_ADDRESS_MAX];
    size_t length;

    ASSERT(!real->links[from]->ops->address(real->links[from], to, bytes, &length, NULL));
    ASSERT(!real->links[to]->ops->connect(real->links[to], from, bytes, length, NULL));
}

static void connect_own(struct crew_member *member)
{
    struct link *link = member->traffic.link;
    struct hvd_err err = { .text = "" };
    uint32_t rank = 0;
    int rc = link->ops->connected(link, clock_now_us() + CONNECT_US, &rank, &err);

    if (rc)
        PANIC("member %u is not connected to rank %u: %s: %s", member->lane.index, rank,
              err_name(rc), err.text);
}

void crew_open_links(struct crew *crew, uint32_t size, enum link_kind kind)
{
    struct crew_links *real = mem_zalloc(sizeof(*real));
    uint32_t peers[CREW_MAX];

    memset(crew, 0, sizeof(*crew));
    ASSERT(real && !reaper_open(&real->reaper, NULL));
    ASSERT(!link_device_open(kind, "127.0.0.1", &real->device, NULL));
    crew->size = size;
    crew->real = real;
    for (uint32_t i = 0; i < size; i++) {
        size_t count = 0;

        for (uint32_t j = 0; j < size; j++) {
            if (j != i)
                peers[count++] = j;
        }
        crew->ranks[i] = i;
        ASSERT(
            !link_create(real->device, real->reaper, i, size, peers, count, &real->links[i], NULL));
        seat(crew, i, real->links[i]);
    }
    for (uint32_t i = 0; i < size * size; i++) {
        if (i / size != i % size)
            connect_both(real, i / size, i % size);
    }
    crew_run(crew, connect_own, NULL); /* each on its thread: a link may need it */
}

void crew_close(struct crew *crew)
{
    if (!crew->size)
        return;
    fake_net_free(crew->net);
    if (crew->real) {
        reaper_close(crew->real->reaper); /* what a cancel has begun is done before it is freed */
        for (uint32_t i = 0; i < crew->size; i++)
            crew->real->links[i]->ops->free(crew->real->links[i]);
        link_device_close(crew->real->device);
        mem_free(crew->real);
    }
    crew->size = 0;
}

/* ---- playing ---- */

struct role {
    struct crew_member *member;
    void (*act)(struct crew_member *member);
};

static void *play(void *arg)
{
    struct role *role = arg;

    role->act(role->member);
    return NULL;
}

void crew_run(struct crew *crew, void (*act)(struct crew_member *member), const void *arg)
{
    struct role roles[CREW_MAX];

    crew->arg = arg;
    for (uint32_t i = 0; i < crew->size; i++) {
        roles[i] = (struct role){ &crew->members[i], act };
        crew->members[i].wrong[0] = 0;
        crew->members[i].rc = 0;
        crew->members[i].sum = 0;
        ASSERT(!thread_start(&crew->members[i].thread, 0, play, &roles[i]));
    }
    for (uint32_t i = 0; i < crew->size; i++)
        pthread_join(crew->members[i].thread, NULL);
}

const char *crew_wrong(const struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        if (crew->members[i].wrong[0])
            return crew->members[i].wrong;
        if (crew->members[i].rc < 0)
            return err_name(crew->members[i].rc);
        if (crew->members[i].sum != crew->members[0].sum)
            return "results that are not the same bits";
    }
    return crew->net && fake_net_left(crew->net) ? "requests are left" : NULL;
}

/* ---- operations ---- */

struct accord crew_accord(struct crew_member *member, enum coll_kind kind, hvd_dtype type,
                          hvd_op op, uint64_t count)
{
    return (struct accord){
        .number = ++member->number,
        .group = 7,
        .kind = (uint32_t)kind,
        .type = (uint16_t)type,
        .op = (uint32_t)op,
        .count = count,
        .prescale = 1,
        .postscale = 1,
        .rank = member->crew->ranks[member->index],
    };
}

int crew_begin(struct crew_member *member, const struct accord *ours, const void *first,
               size_t length)
{
    struct accord theirs;
    int rc = lane_open_with(&member->lane, ours, first, length, &theirs);

    if (rc || ours->kind == COLL_JOIN || accord_same(ours, &theirs))
        return rc;
    cancel_all(member->crew);
    return HVD_E_MISMATCH;
}
