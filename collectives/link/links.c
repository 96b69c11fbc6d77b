/*
 * links.c: the kinds of links, each behind the operations of link.h; called by engine.c and
 * partners.c. A new kind gets a branch in each of the three functions here.
 */
#include "collectives/link/links.h"

#include "base/mem.h"
#include "collectives/link/gloo_module.h"
#include "collectives/link/links_internal.h"
#include "collectives/link/tcp_speed.h"

struct link_device {
    enum link_kind kind;
    const struct gloo_module *module; /* used for LINK_GLOO, as is the field `gloo` */
    struct gloo_device *gloo;
    struct endpoint tcp; /* used for LINK_TCP, as are the next two fields */
    struct endpoint
        told; /* the address that peers are told: that of `tcp`, or the other side of a NAT */
    struct tcp_speed *speed;
};

/* Prepares this process for links of one kind at the address `host`, once for all rounds. TCP has
 * nothing to open: it only checks the address, and measures speeds later. */
int link_device_open(enum link_kind kind, const char *host, struct link_device **ret_device,
                     struct hvd_err *err)
{
    struct link_device *device = mem_zalloc(sizeof(*device));
    int rc;

    if (!device)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the links between workers; free memory on this host");
    device->kind = kind;
    if (kind == LINK_GLOO)
        rc = gloo_module_find(&device->module, err);
    else
        rc = tcp_link_host(host, &device->tcp, err);
    if (!rc)
        device->told = device->tcp;
    if (!rc && kind == LINK_GLOO)
        rc = device->module->device_open(host, &device->gloo, err);
    if (!rc && kind != LINK_GLOO && speed_create(&device->speed))
        rc = err_set(
            err, HVD_E_NOMEM,
            "no memory for the speeds of the links between workers; free memory on this host");
    if (rc)
        mem_free(device);
    else
        *ret_device = device;
    return rc;
}

/* Tells peers another address than the one at which the links listen (links.h). */
int link_device_announce(struct link_device *device, const char *host, struct hvd_err *err)
{
    if (device->kind != LINK_TCP || endpoint_parse(host, 0, &device->told))
        return err_set(err, HVD_E_INVAL, "\"%s\" is no numeric address; give an IP address", host);
    return 0;
}

/* Closes the device, after all its links were freed. NULL is allowed. */
void link_device_close(struct link_device *device)
{
    if (!device)
        return;
    if (device->kind == LINK_GLOO)
        device->module->device_close(device->gloo);
    speed_free(device->speed);
    mem_free(device);
}

/* Makes a link of the kind of this device (links.h). It is not connected yet. */
int link_create(struct link_device *device, const struct link_spec *spec, struct link **ret_link,
                struct hvd_err *err)
{
    if (device->kind == LINK_GLOO)
        return device->module->link_create(device->gloo, spec, ret_link, err);
    return tcp_link_create(&device->tcp, &device->told, device->speed, spec, ret_link, err);
}
