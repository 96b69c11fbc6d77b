/*
 * coll_team.c: the engines and rounds of coll_team.h. All engines listen on one loopback address.
 * Hosts are only names, so a test can lay out its members on hosts as it likes.
 */
#include "tests/lib/coll_team.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/loopback.h"

#include <string.h>

const uint8_t coll_team_secret[LIMIT_ROUND_SECRET_BYTES] = "the secret of each round here";

static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };

int team_make(struct team *team, uint64_t round)
{
    team->round = round;
    for (uint32_t i = 0; i < team->size; i++) {
        const struct coll_roster roster = { .round = round,
                                            .rank = i,
                                            .size = team->size,
                                            .peers = team->peers,
                                            .secret = coll_team_secret,
                                            .secret_length = sizeof(coll_team_secret),
                                            .groups = team->groups,
                                            .group_count = team->group_count };
        int rc = coll_create(team->engines[i], &roster, &team->colls[i], &team->err[i]);

        if (rc)
            return rc;
    }
    return 0;
}

void team_part(struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        coll_free(team->colls[i]);
        team->colls[i] = NULL;
    }
}

int team_open(struct team *team, const char *hosts, const struct coll_options *options)
{
    struct coll_options own = { .carrier = COLL_BY_BEST };

    if (options)
        own = *options;
    own.host = loopback_own();
    memset(team, 0, sizeof(*team));
    team->timeout_us = COLL_TEAM_LONG_US;
    team->size = (uint32_t)strlen(hosts);
    for (uint32_t i = 0; i < team->size; i++) {
        int rc = coll_engine_open(&own, &team->engines[i], &team->err[i]);

        if (rc)
            return rc;
        team->peers[i].incarnation = 100 + i;
        team->peers[i].host = names[hosts[i] - 'a'];
        team->peers[i].contact = coll_engine_contact(team->engines[i]);
    }
    return team_make(team, 1);
}

int team_open_layout(struct team *team, const char *layout)
{
    const char *space = strchr(layout, ' ');
    struct coll_options options = { .carrier = COLL_BY_BEST };

    if (space) {
        options.fixed_order = *layout == 'o';
        options.flat = !options.fixed_order;
        if (options.flat)
            options.carrier = *layout == 'g' && gloo_here() ? COLL_BY_GLOO : COLL_BY_TCP;
    }
    return team_open(team, space ? space + 1 : layout, &options);
}

void team_close(struct team *team)
{
    team_part(team);
    for (uint32_t i = 0; i < team->size; i++)
        coll_engine_close(team->engines[i]);
    team->size = 0;
}

static void act_one(void *arg, uint32_t rank)
{
    struct team *team = arg;

    team->act(team, rank);
}

void team_start(struct team *team, void (*act)(struct team *team, uint32_t rank))
{
    team->act = act;
    threads_start(&team->threads, team->size, team->away, act_one, team);
}

void team_await(struct team *team)
{
    threads_await(&team->threads);
}

void team_run(struct team *team, void (*act)(struct team *team, uint32_t rank))
{
    team_start(team, act);
    team_await(team);
}

void team_act_connect(struct team *team, uint32_t rank)
{
    team->rc[rank] = coll_connect(team->colls[rank], team->timeout_us, &team->err[rank]);
}
