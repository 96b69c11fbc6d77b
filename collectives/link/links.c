#include "collectives/link/links.h"

#include "base/mem.h"
#include "collectives/link/gloo_link.h"
#include "collectives/link/tcp_link.h"

struct link_device {
    enum link_kind kind;
    struct gloo_device *gloo; /* one of them */
    struct tcp_device *tcp;
};

const char *link_kind_name(enum link_kind kind)
{
    return kind == LINK_GLOO ? "gloo" : "tcp";
}

int link_device_open(enum link_kind kind, const char *host, struct link_device **ret_device,
                     struct hvd_err *err)
{
    struct link_device *device = mem_zalloc(sizeof(*device));
    int rc;

    if (!device)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    device->kind = kind;
    if (kind == LINK_GLOO)
        rc = gloo_device_open(host, &device->gloo, err);
    else
        rc = tcp_device_open(host, &device->tcp, err);
    if (rc) {
        mem_free(device);
        return rc;
    }
    *ret_device = device;
    return 0;
}

void link_device_close(struct link_device *device)
{
    if (!device)
        return;
    if (device->kind == LINK_GLOO)
        gloo_device_close(device->gloo);
    else
        tcp_device_close(device->tcp);
    mem_free(device);
}

int link_create(struct link_device *device, struct reaper *reaper, uint32_t rank, uint32_t size,
                const uint32_t *peers, size_t peer_count, struct link **ret_link,
                struct hvd_err *err)
{
    if (device->kind == LINK_GLOO)
        return gloo_link_create(device->gloo, reaper, rank, size, peers, peer_count, ret_link, err);
    return tcp_link_create(device->tcp, rank, peers, peer_count, ret_link, err);
}
