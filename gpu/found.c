#include "gpu/found.h"

#include "gpu/device.h"
#include "gpu/nccl.h"

static int show_devices(const struct cuda *cuda, struct buf *out)
{
    int count = 0;
    int rc = buf_printf(out, "  [X] GPUs: CUDA driver %d.%d\n", cuda->driver_version / 1000,
                        cuda->driver_version % 1000 / 10);

    if (cuda->device_count(&count))
        count = 0;
    for (int i = 0; i < count && !rc; i++) {
        const struct gpu_device *device = NULL;
        struct hvd_err err = { .text = "" };

        if (gpu_device_get(i, &device, &err))
            rc = buf_printf(out, "  [ ]   %s\n", err.text);
        else
            rc = buf_printf(out, "  [X]   %d: %s\n", i, device->name);
    }
    return rc;
}

static int show_nccl(struct buf *out)
{
    const struct nccl *nccl = NULL;
    struct hvd_err err = { .text = "" };
    char version[NCCL_VERSION_TEXT_MAX];

    if (nccl_open(&nccl, &err))
        return buf_printf(out, "  [ ] %s; collectives of device memory go through the host\n",
                          err.text);
    nccl_version_text(nccl->version, version);
    return buf_printf(out, "  [X] NCCL %s%s%s\n", version,
                      nccl->comm_revoke ? ", with revoke" : ", without revoke: it is aborted",
                      nccl->comm_shrink ? ", with shrink" : "");
}

int gpu_found(struct buf *out)
{
    const struct cuda *cuda = NULL;
    struct hvd_err err = { .text = "" };
    int rc;

    if (cuda_open(&cuda, &err))
        return buf_printf(out, "  [ ] GPUs: %s\n  [ ] NCCL: there is no GPU for it\n", err.text);
    rc = show_devices(cuda, out);
    return rc ? rc : show_nccl(out);
}
