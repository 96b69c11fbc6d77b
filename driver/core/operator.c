/*
 * operator.c: the operator's requests drain, undrain and clear. core.c calls it. Each request gets
 * exactly one ACTION_REPLY. A host or slot that does not exist is an error of the operator and
 * changes nothing.
 */
#include "driver/core/operator.h"

#include "driver/core/drain.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <string.h>

/* Returns the host of the request if the host is known and has the slot. NULL: the host or the slot
 * does not exist; the operator has got that answer, so the caller must not answer again. */
static struct core_host *operator_find_slot(struct core *core, const struct event *event)
{
    struct core_host *host = roster_find_host(core, event->host);
    bool whole = event->slot == EVENT_WHOLE_HOST;
    const char *why;

    if (host && (whole || event->slot < host->slot_count))
        return host;
    if (whole)
        why = tell_text(core, "%s: no such host in this job; see 'hvd-elastic hosts'", event->host);
    else
        why = tell_text(core, "%s:%" PRIu32 ": no such %s in this job; see 'hvd-elastic hosts'",
                        event->host, event->slot, host ? "slot" : "host");
    tell_reply(core, event->ask, HVD_E_NOTFOUND, why);
    return NULL;
}

/* An operator drains a host or a slot within left_us. The empty answer means that the driver has
 * accepted the request. */
void operator_on_drain(struct core *core, const struct event *event)
{
    struct core_host *host = operator_find_slot(core, event);

    if (!host) /* operator_find_slot has answered the operator */
        return;
    drain_begin(core, host, event->slot, event->left_us, "an operator");
    tell_reply(core, event->ask, 0, "");
}

/* An operator ends a drain: of a host with all its slots, or of one slot. */
void operator_on_undrain(struct core *core, const struct event *event)
{
    struct core_host *host = operator_find_slot(core, event);
    bool whole = event->slot == EVENT_WHOLE_HOST;
    char key[BLACKLIST_KEY_TEXT_MAX];

    if (!host) /* operator_find_slot has answered the operator */
        return;
    if (whole ? host->draining || roster_is_drained(host) : host->slots[event->slot].draining)
        CORE_TRACE(core,
                   FACTS(.kind = KIND_DRAIN_ENDED, .host = host->name, .has_slot = !whole,
                         .slot = event->slot, .cause = "an operator"),
                   "the drain of %s is over: an operator",
                   blacklist_key_format(host->name, event->slot, key));
    if (whole)
        drain_end_all(core, host);
    else
        drain_end(core, host, event->slot);
    tell_reply(core, event->ask, 0, "");
}

/* Clears the blacklist entry of one slot, or of the host itself (BLACKLIST_WHOLE_HOST). */
static int operator_clear(struct core *core, const char *host, uint32_t slot, struct hvd_err *err)
{
    struct blacklist_change change;
    int rc = blacklist_clear(&core->blacklist, host, slot, core_moment(core), &change, err);

    if (!rc)
        tell_blacklist(core, &change);
    return rc;
}

/* An operator clears a host or slot from the blacklist: its failures are forgotten, and it may be
 * used again. */
void operator_on_clear(struct core *core, const struct event *event)
{
    bool whole = event->slot == EVENT_WHOLE_HOST;
    struct core_host *host = roster_find_host(core, event->host);
    struct hvd_err err;
    int rc = operator_clear(core, event->host, whole ? BLACKLIST_WHOLE_HOST : event->slot, &err);

    /* A clear of a host also clears all its slots. The host itself may have no entry: then one
     * cleared slot is enough for success. A cleared entry stays in the list with no failures, so
     * the indices stay valid. */
    for (size_t i = 0; whole && i < blacklist_count(&core->blacklist); i++) {
        struct blacklist_record record;

        blacklist_record_at(&core->blacklist, i, core_moment(core), &record);
        if (record.slot != BLACKLIST_WHOLE_HOST && !strcmp(record.host, event->host))
            rc = operator_clear(core, event->host, record.slot, &err);
    }
    /* The wait after a failed start of this host's agent ends, too. */
    if (host)
        host->again_us = core->now_us;
    core_want_slots(core);
    tell_reply(core, event->ask, rc, rc ? tell_text(core, "%s", err.text) : "");
}
