#include "driver/hosts/reach.h"

#include "base/mem.h"
#include "discovery/hosts.h"
#include "driver/hosts/lookups.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <string.h>

struct reach {
    char *interface; /* NULL: any */
    reach_fn *answered;
    void *arg;
    struct lookups *lookups;
    struct event looked_up;
    struct list ready;
    struct event telling;
};

static void tell_soon(struct reach *reach)
{
    event_active(&reach->telling, EV_TIMEOUT, 1);
}

static int judge(const struct reach *reach, const struct lookup *lookup,
                 struct reach_answer *ret_answer, struct hvd_err *err)
{
    if (lookup->code == EAI_SYSTEM)
        return err_set(err, HVD_E_NOTFOUND, "%s: %s; check its name, and this machine's DNS",
                       lookup->host, strerror(lookup->number));
    if (lookup->code)
        return err_set(err, HVD_E_NOTFOUND, "%s: %s; check its name, and this machine's DNS",
                       lookup->host, gai_strerror(lookup->code));
    return route_find(lookup->host, lookup->addresses, lookup->count, reach->interface, ret_answer,
                      err);
}

/* One a turn: its owner may free the reach in there, so nothing of it is touched after that. */
static void telling(evutil_socket_t fd, short what, void *arg)
{
    struct reach *reach = arg;
    struct reach_answer answer;
    struct lookup *lookup;
    struct hvd_err err;

    (void)fd;
    (void)what;
    if (list_empty(&reach->ready))
        return;
    lookup = CONTAINER_OF(reach->ready.next, struct lookup, link);
    list_remove(&lookup->link);
    if (!list_empty(&reach->ready))
        tell_soon(reach);
    if (judge(reach, lookup, &answer, &err))
        reach->answered(reach->arg, lookup->host, NULL, err.text);
    else
        reach->answered(reach->arg, lookup->host, &answer, NULL);
    mem_free(lookup);
}

static void looked_up(evutil_socket_t fd, short what, void *arg)
{
    struct reach *reach = arg;

    (void)fd;
    (void)what;
    lookups_take(reach->lookups, &reach->ready);
    tell_soon(reach);
}

/* What is known without asking anybody. */
static bool answer_at_once(struct lookup *lookup)
{
    if (!strcmp(lookup->host, "localhost")) {
        lookup->count = 2;
        return route_parse(&lookup->addresses[0], "127.0.0.1") &&
               route_parse(&lookup->addresses[1], "::1");
    }
    lookup->count = 1;
    return route_parse(&lookup->addresses[0], lookup->host);
}

int reach_ask(struct reach *reach, const char *host)
{
    struct lookup *lookup = mem_zalloc(sizeof(*lookup));
    size_t length = strlen(host);
    bool known;

    if (!lookup)
        return HVD_E_NOMEM;
    list_init(&lookup->link);
    if (host_name_check(host, length, NULL)) {
        lookup->code = EAI_NONAME;
        length = length < sizeof(lookup->host) ? length : sizeof(lookup->host) - 1;
    }
    memcpy(lookup->host, host, length);
    known = lookup->code || answer_at_once(lookup);
    if (!known) {
        lookup->count = 0;
        if (!lookups_add(reach->lookups, lookup))
            return 0;
        lookup->code = EAI_MEMORY;
    }
    list_append(&reach->ready, &lookup->link);
    tell_soon(reach);
    return 0;
}

static int prepare(struct reach *reach, struct event_base *base, const char *interface,
                   struct hvd_err *err)
{
    int rc = interface ? route_check_interface(interface, err) : 0;

    if (!rc && interface) {
        reach->interface = mem_strdup(interface);
        if (!reach->interface)
            rc = err_set(err, HVD_E_NOMEM, "%s: no memory to look for hosts", interface);
    }
    if (!rc)
        rc = lookups_create(&reach->lookups, err);
    if (rc)
        return rc;
    if (event_assign(&reach->looked_up, base, lookups_fd(reach->lookups), EV_READ | EV_PERSIST,
                     looked_up, reach) ||
        event_add(&reach->looked_up, NULL))
        return err_set(err, HVD_E_NOMEM, "no memory to look for hosts");
    return 0;
}

int reach_create(struct event_base *base, const char *interface, reach_fn *answered, void *arg,
                 struct reach **ret_reach, struct hvd_err *err)
{
    struct reach *reach = mem_zalloc(sizeof(*reach));
    int rc;

    if (!reach)
        return err_set(err, HVD_E_NOMEM, "no memory to look for hosts");
    reach->answered = answered;
    reach->arg = arg;
    list_init(&reach->ready);
    event_assign(&reach->telling, base, -1, 0, telling, reach);
    rc = prepare(reach, base, interface, err);
    if (rc)
        reach_free(reach);
    else
        *ret_reach = reach;
    return rc;
}

void reach_free(struct reach *reach)
{
    if (!reach)
        return;
    if (event_initialized(&reach->looked_up))
        event_del(&reach->looked_up);
    event_del(&reach->telling);
    lookups_free(reach->lookups);
    LIST_EACH_SAFE (it, after, &reach->ready) {
        list_remove(it);
        mem_free(CONTAINER_OF(it, struct lookup, link));
    }
    mem_free(reach->interface);
    mem_free(reach);
}
