#include "tests/lib/gpu_crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gpu_crew_open(struct crew *crew, const char *hosts, const struct coll_options *options,
                  bool told)
{
    int rc;

    fake_gpu_use(COLL_CREW_MAX);
    fake_gpu_load();
    fake_gpu_faults(NULL);
    rc = crew_open(crew, hosts, options);
    for (uint32_t i = 0; i < crew->size && !rc; i++) {
        const struct gpu_device *device;

        rc = gpu_device_get((int)i, &device, &crew->err[i]);
        if (!rc && told)
            rc = coll_engine_use_device(crew->engines[i], device, &crew->err[i]);
        if (!rc && told)
            crew->peers[i].device = coll_engine_device_text(crew->engines[i]);
    }
    crew_part(crew);
    return rc ? rc : crew_make(crew, 1);
}

void gpu_crew_act_connect(struct crew *crew, uint32_t rank)
{
    crew_act_connect(crew, rank);
    if (!crew->rc[rank])
        coll_await_device(crew->colls[rank], COLL_CREW_LONG_US);
}

void gpu_crew_show(const struct crew *crew)
{
    for (uint32_t i = 0; i < crew->size; i++)
        if (crew->rc[i])
            printf("rank %u: %d: %s\n", i, crew->rc[i], crew->err[i].text);
}

const struct gpu_device *gpu_crew_device(uint32_t rank)
{
    const struct gpu_device *device;

    if (gpu_device_get((int)rank, &device, NULL))
        abort(); /* it has been there before */
    return device;
}

int gpu_twin_make(uint32_t rank, size_t bytes, struct gpu_twin *ret_twin)
{
    const struct gpu_device *device = gpu_crew_device(rank);
    cuda_address at = 0;
    int rc = gpu_enter(device, NULL);

    if (rc)
        return rc;
    rc = cuda_judge(device->cuda, device->cuda->memory_alloc(&at, bytes ? bytes : 1), "a twin",
                    NULL);
    gpu_leave(device);
    if (rc)
        return rc;
    memcpy(&ret_twin->device, &at, sizeof(at));
    ret_twin->host = fake_gpu_memory(ret_twin->device);
    return 0;
}

void gpu_twin_free(uint32_t rank, struct gpu_twin *twin)
{
    const struct gpu_device *device = gpu_crew_device(rank);
    cuda_address at;

    memcpy(&at, &twin->device, sizeof(at));
    if (at && !gpu_enter(device, NULL)) {
        (void)device->cuda->memory_free(at);
        gpu_leave(device);
    }
    *twin = (struct gpu_twin){ NULL, NULL };
}
