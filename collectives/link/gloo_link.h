/*
 * gloo_link.h: a link over Gloo's TCP pairs. One device in a process, one link in a round.
 */
#ifndef COLLECTIVES_LINK_GLOO_LINK_H
#define COLLECTIVES_LINK_GLOO_LINK_H

#include "collectives/link/link.h"
#include "collectives/link/reaper.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gloo's thread. It inherits the signals and the priority of the thread that calls this. */
struct gloo_device;
int gloo_device_open(const char *host, struct gloo_device **ret_device,
                     struct hvd_err *err) MUST_CHECK;
void gloo_device_close(struct gloo_device *device);

/* Connects these peers only (ranks, borrowed), and no others can be sent to. What a cancel leaves
 * to be closed is done by the reaper. */
int gloo_link_create(struct gloo_device *device, struct reaper *reaper, uint32_t rank,
                     uint32_t size, const uint32_t *peers, size_t peer_count,
                     struct link **ret_link, struct hvd_err *err) MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
