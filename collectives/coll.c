#include "collectives/coll.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "collectives/device.h"
#include "os/thread.h"

#include <inttypes.h>
#include <string.h>

/* ---- making one ---- */

/* Who runs with other options, or other groups, means another round. */
static uint64_t sum_roster(const struct coll_engine *engine, const struct coll_roster *roster)
{
    uint64_t sum = accord_mix(roster->round, roster->size);

    for (uint32_t i = 0; i < roster->size; i++)
        sum = accord_mix(sum, roster->peers[i].incarnation);
    for (size_t i = 0; i < roster->group_count; i++) {
        sum = accord_mix(sum, roster->groups[i].count);
        for (uint32_t k = 0; k < roster->groups[i].count; k++)
            sum = accord_mix(sum, roster->groups[i].items[k]);
    }
    if (engine) {
        sum = accord_mix(sum, (uint64_t)engine->options.carrier |
                                  (uint64_t)engine->options.flat << 8 |
                                  (uint64_t)engine->options.fixed_order << 9 |
                                  (uint64_t)engine->options.gpu << 10);
        sum = accord_mix(sum, engine->options.fusion_bytes);
    }
    return sum;
}

static int copy_members(struct coll *coll, const struct coll_roster *roster)
{
    coll->members = mem_zalloc_array(roster->size, sizeof(*coll->members));
    coll->everybody = mem_zalloc_array(roster->size, sizeof(*coll->everybody));
    coll->hosts = mem_zalloc_array(roster->size, sizeof(*coll->hosts));
    if (!coll->members || !coll->everybody || !coll->hosts)
        return HVD_E_NOMEM;
    coll->devices_told = true;
    for (uint32_t i = 0; i < roster->size; i++) {
        coll->devices_told = coll->devices_told && roster->peers[i].device;
        coll->everybody[i] = i;
        coll->members[i].incarnation = roster->peers[i].incarnation;
        if (!roster->peers[i].contact)
            continue;
        coll->members[i].contact = mem_strdup(roster->peers[i].contact);
        if (!coll->members[i].contact)
            return HVD_E_NOMEM;
    }
    return 0;
}

/* A host's number is the lowest rank on it. Neighbours are mostly on one host. */
static void number_hosts(struct coll *coll, const struct coll_roster *roster)
{
    for (uint32_t i = 0; i < roster->size; i++) {
        const char *host = roster->peers[i].host;
        uint32_t first = i ? coll->hosts[i - 1] : 0;

        if (coll->engine && coll->engine->options.flat)
            first = i;
        else if (strcmp(host, roster->peers[first].host) != 0)
            for (first = 0; strcmp(host, roster->peers[first].host) != 0;)
                first++;
        coll->hosts[i] = first;
    }
}

static int make_groups(struct coll *coll, const struct coll_roster *roster)
{
    const struct coll_ranks all = { coll->everybody, roster->size };
    int rc = 0;

    coll->groups = mem_zalloc_array(roster->group_count + 1, sizeof(*coll->groups));
    if (!coll->groups)
        return HVD_E_NOMEM;
    for (size_t i = 0; i <= roster->group_count && !rc; i++) {
        const struct coll_ranks *ranks = i ? &roster->groups[i - 1] : &all;
        struct coll_group *group = &coll->groups[i];

        rc = group_init(&group->group, ranks->items, ranks->count, coll->hosts, coll->rank);
        if (rc)
            break;
        coll->group_count++;
        traffic_init(&group->mesh, coll_lost, coll);
        group->sources = mem_zalloc_array(group->group.local_count + 1, sizeof(*group->sources));
        rc = group->sources ? 0 : HVD_E_NOMEM;
    }
    return rc;
}

void coll_release(struct coll *coll)
{
    for (uint32_t i = 0; coll->members && i < coll->size; i++)
        mem_free(coll->members[i].contact);
    for (size_t i = 0; i < coll->group_count; i++) {
        group_release(&coll->groups[i].group);
        mem_free(coll->groups[i].sources);
    }
    if (!coll->engine)
        staging_close(coll->staging);
    segment_free(coll->segment);
    pool_views_free(coll->views);
    mem_free(coll->members);
    mem_free(coll->everybody);
    mem_free(coll->hosts);
    mem_free(coll->groups);
    mem_free(coll->partners);
    mem_free(coll->scratch);
    pthread_cond_destroy(&coll->changed);
    pthread_mutex_destroy(&coll->mutex);
    mem_free(coll);
}

static int fill(struct coll *coll, struct coll_engine *engine, const struct coll_roster *roster)
{
    int rc;

    coll->engine = engine;
    coll->round = roster->round;
    coll->timeline = roster->timeline;
    coll->rank = roster->rank;
    coll->size = roster->size;
    coll->roster = sum_roster(engine, roster);
    traffic_init(&coll->traffic, coll_lost, coll);
    pthread_mutex_init(&coll->mutex, NULL);
    if (thread_cond_init(&coll->changed))
        return HVD_E_NOMEM;
    rc = copy_members(coll, roster);
    if (rc)
        return rc;
    number_hosts(coll, roster);
    rc = make_groups(coll, roster);
    return rc ? rc : coll_choose_partners(coll);
}

static int check_roster(const struct coll_roster *roster, struct hvd_err *err)
{
    if (!roster->size || roster->rank >= roster->size || roster->size > LIMIT_WORKERS)
        return err_set(err, HVD_E_INVAL, "rank %u of %u is no place in a round", roster->rank,
                       roster->size);
    for (size_t i = 0; i < roster->group_count; i++) {
        const struct coll_ranks *ranks = &roster->groups[i];

        for (uint32_t k = 0; k < ranks->count; k++) {
            if (ranks->items[k] >= roster->size || (k && ranks->items[k] <= ranks->items[k - 1]))
                return err_set(err, HVD_E_INVAL, "group %zu: its ranks must rise, and be below %u",
                               i, roster->size);
        }
    }
    return 0;
}

int coll_create(struct coll_engine *engine, const struct coll_roster *roster,
                struct coll **ret_coll, struct hvd_err *err)
{
    struct coll *coll;
    int rc = check_roster(roster, err);

    if (rc)
        return rc;
    coll = mem_zalloc(sizeof(*coll));
    if (!coll)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    if (fill(coll, engine, roster)) {
        coll_release(coll);
        return err_set(err, HVD_E_NOMEM, "out of memory");
    }
    if (engine) {
        pthread_mutex_lock(&engine->mutex);
        engine->colls++;
        pthread_mutex_unlock(&engine->mutex);
    }
    *ret_coll = coll;
    return 0;
}

void *coll_scratch(struct coll *coll, size_t bytes)
{
    if (bytes <= coll->scratch_bytes)
        return coll->scratch;
    mem_free(coll->scratch);
    coll->scratch = mem_alloc(bytes);
    coll->scratch_bytes = coll->scratch ? bytes : 0;
    return coll->scratch;
}

/* ---- failing ---- */

/* Whoever waits in a link or a board, and whoever waits for our peers, is woken. */
static void fail_locked(struct coll *coll, int code, uint32_t rank, const char *why)
{
    atomic_store(&coll->failed, true);
    (void)err_set(&coll->failure, code, "%s", why);
    if (coll->segment)
        segment_fail(coll->segment, code, rank, coll->failure.text);
    if (coll->link)
        coll->link->ops->cancel(coll->link);
    for (size_t i = 0; i < coll->group_count; i++) {
        struct link *mesh = coll->groups[i].mesh_link;

        if (mesh)
            mesh->ops->cancel(mesh);
    }
    device_revoke_all(coll);
    if (coll->party && !coll->finished)
        meet_tell(coll->party, code, rank, coll->failure.text);
    pthread_cond_broadcast(&coll->changed);
}

int coll_fail(struct coll *coll, int code, uint32_t rank, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    text_line(why, sizeof(why), format, args);
    va_end(args);
    pthread_mutex_lock(&coll->mutex);
    if (!coll_has_failed(coll))
        fail_locked(coll, code, rank, why);
    pthread_mutex_unlock(&coll->mutex);
    return code;
}

bool coll_has_failed(const struct coll *coll)
{
    return atomic_load(&coll->failed);
}

void coll_cancel(struct coll *coll)
{
    coll_fail(coll, HVD_E_REVOKED, MEET_NOBODY, "round %" PRIu64 " was revoked", coll->round);
}

int coll_refuse(struct coll *coll, struct hvd_err *err, const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    text_line(why, sizeof(why), format, args);
    va_end(args);
    coll_fail(coll, HVD_E_INVAL, coll->rank, "rank %u: %s", coll->rank, why);
    return coll_failure(coll, err);
}

/* What has happened elsewhere has revoked the round; what has happened here is told once. */
int coll_failure(struct coll *coll, struct hvd_err *err)
{
    int code;

    if (!coll_has_failed(coll))
        return 0;
    pthread_mutex_lock(&coll->mutex);
    code = coll->failure.code;
    if (coll->reported || code == HVD_E_LOST || code == HVD_E_TIMEOUT)
        code = HVD_E_REVOKED;
    coll->reported = true;
    (void)err_set(err, code, "%s", coll->failure.text);
    pthread_mutex_unlock(&coll->mutex);
    return code;
}

/* ---- the end ---- */

void coll_bye(struct coll *coll)
{
    struct meet_party *party = NULL;

    pthread_mutex_lock(&coll->mutex);
    if (!coll_has_failed(coll) && !coll->finished) {
        coll->finished = true;
        party = coll->party;
    }
    pthread_mutex_unlock(&coll->mutex);
    if (party)
        meet_bye(party);
}

static void free_on_reaper(void *arg)
{
    struct coll *coll = arg;
    struct coll_engine *engine = coll->engine;

    device_free_all(coll);
    if (coll->link)
        coll->link->ops->free(coll->link);
    for (size_t i = 0; i < coll->group_count; i++) {
        struct link *mesh = coll->groups[i].mesh_link;

        if (mesh)
            mesh->ops->free(mesh);
    }
    coll_release(coll);
    pthread_mutex_lock(&engine->mutex);
    engine->colls--;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

void coll_free(struct coll *coll)
{
    bool failed;

    if (!coll)
        return;
    if (!coll->engine) {
        coll_release(coll);
        return;
    }
    coll->freeing = (struct reaper_job){ .run = free_on_reaper, .arg = coll };
    failed = coll_has_failed(coll);
    if (coll->party)
        meet_leave(coll->party, !failed); /* then on to the reaper: see connect.c */
    else
        reaper_add(coll->engine->reaper, &coll->freeing);
}

/* ---- looking ---- */

static void add_missing(const struct coll *coll, struct coll_wait *wait, uint32_t rank)
{
    if (rank < coll->size && wait->missing_count < COLL_MISSING_MAX)
        wait->missing[wait->missing_count++] = coll->members[rank].incarnation;
}

/* Who is awaited on a board, or else over a link. */
void coll_wait_look(struct coll *coll, struct coll_wait *ret_wait)
{
    struct coll_group *group = atomic_load(&coll->current);
    uint32_t seats[COLL_MISSING_MAX];
    uint64_t steps = 0;
    size_t behind = 0;

    memset(ret_wait, 0, sizeof(*ret_wait));
    ret_wait->operation = atomic_load(&coll->operation);
    ret_wait->round = coll->round;
    ret_wait->number = atomic_load(&coll->number);
    if (group && group->board)
        behind = board_behind(group->board, seats, ARRAY_SIZE(seats), &steps);
    ret_wait->progress = steps + atomic_load(&coll->traffic.progress);
    if (group)
        ret_wait->progress += atomic_load(&group->mesh.progress) + device_progress(group);
    if (!ret_wait->operation)
        return;
    for (size_t i = 0; i < behind; i++)
        add_missing(coll, ret_wait, group->group.ranks[group->group.locals[seats[i]]]);
    if (!behind) {
        add_missing(coll, ret_wait, (uint32_t)atomic_load(&coll->traffic.awaited));
        if (group)
            add_missing(coll, ret_wait, (uint32_t)atomic_load(&group->mesh.awaited));
    }
}
