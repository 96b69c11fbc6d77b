/*
 * found.c: the lines of --check-build about GPUs and NCCL; called by driver/options.c. A line says
 * what was found, or why that thing cannot be used.
 */
#include "gpu/device.h"
#include "gpu/nccl.h"

/* Appends to `out` what --check-build shows about GPUs and NCCL (device.h). A GPU or a library that
 * is missing is no error: its line says why. Returns 0, or the code of buf_printf. */
int gpu_found(struct buf *out)
{
    const struct cuda *cuda = NULL;
    const struct nccl *nccl = NULL;
    struct hvd_err err = { .text = "" };
    char version[NCCL_VERSION_TEXT_MAX];
    int count = 0, rc;

    if (cuda_open(&cuda, &err))
        return buf_printf(out, "  [ ] GPUs: %s\n  [ ] NCCL: there is no GPU\n", err.text);
    rc = buf_printf(out, "  [X] GPUs: CUDA driver %d.%d\n", cuda->driver_version / 1000,
                    cuda->driver_version % 1000 / 10);
    if (cuda->device_count(&count))
        count = 0;
    for (int i = 0; i < count && !rc; i++) {
        const struct gpu_device *device = NULL;

        if (gpu_device_get(i, &device, &err))
            rc = buf_printf(out, "  [ ]   %s\n", err.text);
        else
            rc = buf_printf(out, "  [X]   %d: %s\n", i, device->name);
    }
    if (rc)
        return rc;
    if (nccl_open(&nccl, &err))
        return buf_printf(out, "  [ ] %s; collectives of device memory go through the host\n",
                          err.text);
    nccl_version_text(nccl->version, version);
    return buf_printf(out, "  [X] NCCL %s%s%s\n", version,
                      nccl->revoke_comm ? ", with revoke"
                                        : ", without revoke: communicators are aborted",
                      nccl->comm_shrink ? ", with shrink" : "");
}
