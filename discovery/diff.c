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

/* Appends a change, and adds its kind to `kinds`, the set of all kinds in the list. */
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
 * or fewer slots, or were added. Returns 0 or an error code; after a failure *ret_diff is as
 * before. */
int diff_between(const struct hosts *before, const struct hosts *now, struct diff *ret_diff)
{
    struct diff diff;
    int rc = 0;

    diff_init(&diff);
    /* First come the hosts of the old set: removed, grown, shrunk or unchanged. */
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
    /* Then come the hosts that only the new set has, in its order. */
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
 * slots). Changes for which there is no room are counted at the end. Returns `text`. */
const char *diff_describe(const struct diff *diff, char text[DIFF_TEXT_MAX])
{
    char name[HOST_NAME_TEXT_MAX];
    size_t used = 0;

    snprintf(text, DIFF_TEXT_MAX, "no change");
    for (size_t i = 0; i < diff->count; i++) {
        const struct host_change *change = &diff->items[i];
        /* Room that is kept for the text "... and N more"; after the last change only for the
         * NUL. */
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
