/*
 * diff.c: the changes between two sets of hosts, for the driver's core, its log and hvd-hosts. A
 * change borrows the name of its host from one of the two sets.
 */
#include "discovery/diff.h"

#include "base/limits.h"
#include "base/vec.h"
#include "discovery/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MORE_TEXT_MAX   32 /* " ... and 32768 more" and its NUL */
#define CHANGE_TEXT_MAX (HOST_NAME_TEXT_MAX + 16)

_Static_assert(CHANGE_TEXT_MAX + MORE_TEXT_MAX <= DIFF_TEXT_MAX,
               "the first change is always shown");

void diff_init(struct diff *diff)
{
    *diff = (struct diff){ .items = NULL };
}

void diff_release(struct diff *diff)
{
    if (!diff)
        return;
    VEC_RELEASE(diff);
    diff->kinds = 0;
}

/* Appends a change to the list, and adds the kind of this change to diff->kinds, the set of all
 * kinds in the list. At most 2 * LIMIT_HOSTS changes exist: each old host may be removed, and each
 * new host added. */
static int diff_add(struct diff *diff, struct host_change change)
{
    int rc = VEC_RESERVE(diff, 1, 2 * (size_t)LIMIT_HOSTS);

    if (rc)
        return rc;
    diff->items[diff->count++] = change;
    diff->kinds |= change.kind;
    return 0;
}

/* Lists what has changed from the set `before` to the set `now`: hosts that were removed, have more
 * or fewer slots, or were added. Returns 0 or an error code; after a failure *ret_diff is
 * unchanged. */
int diff_between(const struct hosts *before, const struct hosts *now, struct diff *ret_diff)
{
    struct diff diff;
    int rc = 0;

    diff_init(&diff);
    /* First come the hosts of `before` that were removed, or have more or fewer slots. A host with
     * the same number of slots is not listed. */
    for (size_t i = 0; i < before->count && !rc; i++) {
        const struct host *old = &before->items[i];
        const struct host *host = hosts_find(now, old->name);

        if (!host)
            rc = diff_add(&diff, (struct host_change){ old->name, DIFF_REMOVED, old->slots, 0 });
        else if (host->slots != old->slots)
            rc = diff_add(&diff,
                          (struct host_change){ host->name,
                                                host->slots > old->slots ? DIFF_GROWN : DIFF_SHRUNK,
                                                old->slots, host->slots });
    }
    /* Then come the hosts that only `now` has, in the order of `now`. */
    for (size_t i = 0; i < now->count && !rc; i++) {
        const struct host *host = &now->items[i];

        if (!hosts_find(before, host->name))
            rc = diff_add(&diff, (struct host_change){ host->name, DIFF_ADDED, 0, host->slots });
    }
    if (rc) {
        diff_release(&diff);
        return rc;
    }
    diff_release(ret_diff);
    *ret_diff = diff;
    return 0;
}

/* Writes the changes for the log: "+a:2" (added), "-b" (removed), "c:1->2" (another number of
 * slots). If `text` is too short for all changes, it ends in "... and N more". Returns `text`. */
const char *diff_describe(const struct diff *diff, char text[DIFF_TEXT_MAX])
{
    char name[HOST_NAME_TEXT_MAX];
    size_t used = 0;

    snprintf(text, DIFF_TEXT_MAX, "no change");
    for (size_t i = 0; i < diff->count; i++) {
        const struct host_change *change = &diff->items[i];
        /* Bytes that this change must leave free: for "... and N more", or after the last change
         * only for the NUL. */
        size_t kept_back = i + 1 < diff->count ? MORE_TEXT_MAX : 1;
        char one[CHANGE_TEXT_MAX];
        int length;

        host_name_format(change->name, name);
        if (change->kind == DIFF_ADDED)
            length = snprintf(one, sizeof(one), "+%s:%" PRIu32, name, change->new_slots);
        else if (change->kind == DIFF_REMOVED)
            length = snprintf(one, sizeof(one), "-%s", name);
        else
            length = snprintf(one, sizeof(one), "%s:%" PRIu32 "->%" PRIu32, name, change->old_slots,
                              change->new_slots);
        if (used + 1 + (size_t)length + kept_back > DIFF_TEXT_MAX) {
            snprintf(text + used, DIFF_TEXT_MAX - used, " ... and %zu more", diff->count - i);
            break;
        }
        used += (size_t)snprintf(text + used, DIFF_TEXT_MAX - used, "%s%s", i ? " " : "", one);
    }
    return text;
}
