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

static int add(struct diff *diff, struct host_change change)
{
    int rc = VEC_RESERVE(diff, 1, 2 * (size_t)LIMIT_HOSTS);

    if (rc)
        return rc;
    diff->items[diff->count++] = change;
    diff->kinds |= change.kind;
    return 0;
}

static int add_old(struct diff *diff, const struct host *host, const struct host *now)
{
    struct host_change change = { host->name, DIFF_REMOVED, host->slots, 0 };

    if (now) {
        change.name = now->name;
        change.kind = now->slots > host->slots ? DIFF_GROWN : DIFF_SHRUNK;
        change.new_slots = now->slots;
        if (now->slots == host->slots)
            return 0;
    }
    return add(diff, change);
}

int diff_between(const struct hosts *before, const struct hosts *now, struct diff *ret_diff)
{
    struct diff diff;
    int rc = 0;

    diff_init(&diff);
    for (size_t i = 0; i < before->count && !rc; i++)
        rc = add_old(&diff, &before->items[i], hosts_find(now, before->items[i].name));
    for (size_t i = 0; i < now->count && !rc; i++) {
        const struct host *host = &now->items[i];

        if (!hosts_find(before, host->name))
            rc = add(&diff, (struct host_change){ host->name, DIFF_ADDED, 0, host->slots });
    }
    if (rc) {
        diff_release(&diff);
        return rc;
    }
    diff_release(ret_diff);
    *ret_diff = diff;
    return 0;
}

static size_t describe_change(const struct host_change *change, char text[CHANGE_TEXT_MAX])
{
    char name[HOST_NAME_TEXT_MAX];
    int length;

    host_name_format(change->name, name);
    switch (change->kind) {
    case DIFF_ADDED:
        length = snprintf(text, CHANGE_TEXT_MAX, "+%s:%" PRIu32, name, change->new_slots);
        break;
    case DIFF_REMOVED: length = snprintf(text, CHANGE_TEXT_MAX, "-%s", name); break;
    default:
        length = snprintf(text, CHANGE_TEXT_MAX, "%s:%" PRIu32 "->%" PRIu32, name,
                          change->old_slots, change->new_slots);
        break;
    }
    return (size_t)length;
}

const char *diff_describe(const struct diff *diff, char text[DIFF_TEXT_MAX])
{
    size_t used = 0;

    snprintf(text, DIFF_TEXT_MAX, "no change");
    for (size_t i = 0; i < diff->count; i++) {
        char change[CHANGE_TEXT_MAX];
        size_t length = describe_change(&diff->items[i], change);
        size_t kept_back = i + 1 < diff->count ? MORE_TEXT_MAX : 1;

        if (used + 1 + length + kept_back > DIFF_TEXT_MAX) {
            snprintf(text + used, DIFF_TEXT_MAX - used, " ... and %zu more", diff->count - i);
            break;
        }
        used += (size_t)snprintf(text + used, DIFF_TEXT_MAX - used, "%s%s", i ? " " : "", change);
    }
    return text;
}
