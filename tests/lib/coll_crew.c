#include "tests/lib/coll_crew.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };

int crew_make(struct crew *crew, uint64_t round)
{
    crew->round = round;
    for (uint32_t i = 0; i < crew->size; i++) {
        const struct coll_roster roster = { .round = round,
                                            .rank = i,
                                            .size = crew->size,
                                            .peers = crew->peers,
                                            .groups = crew->groups,
                                            .group_count = crew->group_count };
        int rc = coll_create(crew->engines[i], &roster, &crew->colls[i], &crew->err[i]);

        if (rc)
            return rc;
    }
    return 0;
}

void crew_part(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        coll_free(crew->colls[i]);
        crew->colls[i] = NULL;
    }
}

int crew_open(struct crew *crew, const char *hosts, const struct coll_options *options)
{
    struct coll_options own = { .host = "127.0.0.1" };

    if (options)
        own = *options;
    own.host = "127.0.0.1";
    memset(crew, 0, sizeof(*crew));
    crew->timeout_us = COLL_CREW_LONG_US;
    crew->size = (uint32_t)strlen(hosts);
    for (uint32_t i = 0; i < crew->size; i++) {
        int rc = coll_engine_open(&own, &crew->engines[i], &crew->err[i]);

        if (rc)
            return rc;
        crew->peers[i].incarnation = 100 + i;
        crew->peers[i].host = names[hosts[i] - 'a'];
        crew->peers[i].contact = coll_engine_contact(crew->engines[i]);
    }
    return crew_make(crew, 1);
}

void crew_close(struct crew *crew)
{
    crew_part(crew);
    for (uint32_t i = 0; i < crew->size; i++)
        coll_engine_close(crew->engines[i]);
    crew->size = 0;
}

static void *play(void *arg)
{
    struct crew_seat *seat = arg;

    seat->crew->act(seat->crew, seat->rank);
    return NULL;
}

void crew_start(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank))
{
    crew->act = act;
    for (uint32_t i = 0; i < crew->size; i++) {
        struct crew_seat *seat = &crew->seats[i];

        seat->crew = crew;
        seat->rank = i;
        if (!crew->away[i] && pthread_create(&seat->thread, NULL, play, seat))
            abort();
    }
}

void crew_await(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++) {
        if (!crew->away[i])
            pthread_join(crew->seats[i].thread, NULL);
    }
}

void crew_run(struct crew *crew, void (*act)(struct crew *crew, uint32_t rank))
{
    crew_start(crew, act);
    crew_await(crew);
}

void crew_act_connect(struct crew *crew, uint32_t rank)
{
    crew->rc[rank] = coll_connect(crew->colls[rank], crew->timeout_us, &crew->err[rank]);
}
