/*
 * gpu_team.c: devices and memory for the members of coll_team.h, over the stand-ins.
 */
#include "tests/lib/gpu_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gpu_team_open(struct team *team, const char *hosts, const struct coll_options *options,
                  bool told)
{
    struct coll_options own = { .carrier = COLL_BY_BEST };
    int rc;

    fake_gpu_use(COLL_TEAM_MAX);
    fake_gpu_load();
    fake_gpu_faults(NULL);
    if (options)
        own = *options;
    if (!own.gpu_bound_us)
        own.gpu_bound_us = COLL_TEAM_LONG_US;
    rc = team_open(team, hosts, &own);
    for (uint32_t i = 0; i < team->size && !rc; i++) {
        const struct gpu_device *device;

        rc = gpu_device_get((int)i, &device, &team->err[i]);
        if (!rc && told)
            rc = coll_engine_use_device(team->engines[i], device, &team->err[i]);
        if (!rc && told)
            team->peers[i].device = coll_engine_device_text(team->engines[i]);
    }
    team_part(team);
    return rc ? rc : team_make(team, 1);
}

void gpu_team_act_connect(struct team *team, uint32_t rank)
{
    team_act_connect(team, rank);
    if (!team->rc[rank])
        coll_await_device(team->colls[rank], COLL_TEAM_LONG_US);
}

void gpu_team_show(const struct team *team)
{
    for (uint32_t i = 0; i < team->size; i++)
        if (team->rc[i])
            printf("rank %u: %d: %s\n", i, team->rc[i], team->err[i].text);
}

const struct gpu_device *gpu_team_device(uint32_t rank)
{
    const struct gpu_device *device;

    if (gpu_device_get((int)rank, &device, NULL))
        abort(); /* cannot fail: the device was found before */
    return device;
}

int gpu_twin_make(uint32_t rank, size_t bytes, struct gpu_twin *ret_twin)
{
    int rc = fake_gpu_alloc(rank, bytes, &ret_twin->device);

    if (!rc)
        ret_twin->host = fake_gpu_memory(ret_twin->device);
    return rc;
}

void gpu_twin_free(uint32_t rank, struct gpu_twin *twin)
{
    fake_gpu_free(rank, twin->device);
    *twin = (struct gpu_twin){ NULL, NULL };
}
