/*
 * driver_link.c: the agent's one connection to its driver, and the list of addresses where the
 * driver may be. Called by the files of the event loop, and by the connection. Invariant: there is
 * at most one connection, dialled or open; after driver_link_hang_up no callback of that connection
 * comes.
 */
#include "agent/io/driver_link.h"

#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

struct driver_link {
    struct event_base *base;
    struct tls *tls;
    const struct driver_link_ops *ops;
    void *arg;

    /* first the addresses of drivers, then the addresses of standbys */
    char *addresses[LIMIT_ADDRESSES];
    size_t count;
    size_t drivers; /* the number of addresses of drivers */
    size_t first;   /* index of the address at which the next attempt begins */
    bool failed;    /* the last attempt brought no welcome: the next one moves `first` on */

    struct conn *conn; /* the connection that is being dialled or is open; NULL: none */
    bool open;         /* the connection is made, and the TLS handshake is over */
    bool welcomed;     /* the driver has said welcome on this connection */
    bool full;         /* too many bytes are unsent: no output of workers may be added */
};

static void link_free_all(char **addresses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mem_free(addresses[i]);
}

/* Appends copies of the addresses that are new to the list, as long as there is room. HVD_E_NOMEM:
 * the copies so far stay in the list, and the caller frees them. */
static int link_append(char **list, size_t *count, const char *const *addresses, size_t more)
{
    for (size_t i = 0; i < more && *count < LIMIT_ADDRESSES; i++) {
        size_t known = 0;

        while (known < *count && strcmp(list[known], addresses[i]) != 0)
            known++;
        if (known < *count)
            continue;
        list[*count] = mem_strdup(addresses[i]);
        if (!list[*count])
            return HVD_E_NOMEM;
        (*count)++;
    }
    return 0;
}

/* Makes the link with these addresses, and does not dial yet. */
int driver_link_create(struct event_base *base, struct tls *tls, const struct msg_texts *addresses,
                       const struct driver_link_ops *ops, void *arg, struct driver_link **ret_link,
                       struct hvd_err *err)
{
    struct driver_link *link = mem_zalloc(sizeof(*link));

    if (!link)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the link to the driver; free memory on this host");
    *link = (struct driver_link){ .base = base, .tls = tls, .ops = ops, .arg = arg };
    if (link_append(link->addresses, &link->count, addresses->items, addresses->count)) {
        driver_link_free(link);
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the driver's addresses; free memory on this host");
    }
    link->drivers = link->count;
    *ret_link = link;
    return 0;
}

void driver_link_free(struct driver_link *link)
{
    if (!link)
        return;
    driver_link_hang_up(link);
    link_free_all(link->addresses, link->count);
    mem_free(link);
}

/* The link has no connection any more. The caller closes `conn`, or it has closed by itself. */
static void link_forget_conn(struct driver_link *link)
{
    link->conn = NULL;
    link->open = false;
    link->full = false;
    link->welcomed = false;
}

/* Closes the connection to the driver, or ends the attempt to connect. The link forgets the
 * connection first, so no callback follows. */
void driver_link_hang_up(struct driver_link *link)
{
    struct conn *conn = link->conn;
    bool open = link->open;

    if (!conn)
        return;
    link_forget_conn(link);
    if (open) /* unsent messages, such as a BYE, are still sent */
        conn_close(conn);
    else
        conn_drop(conn);
}

/* The dial has succeeded, and both sides have proved the host's key. */
static void link_on_opened(void *arg)
{
    struct driver_link *link = arg;

    link->open = true;
    link->ops->up(link->arg);
}

static void link_on_msg(void *arg, const struct msg *msg)
{
    struct driver_link *link = arg;

    link->ops->msg(link->arg, msg);
}

/* The connection to the driver is lost, or the dial has failed; `conn` frees itself. */
static void link_on_closed(void *arg, const char *why)
{
    struct driver_link *link = arg;

    link_forget_conn(link);
    link->ops->down(link->arg, why);
}

/* All bytes to the driver are sent: the driver takes output of workers again. */
static void link_on_drained(void *arg)
{
    struct driver_link *link = arg;

    link->full = false;
    link->ops->drained(link->arg);
}

static const struct conn_ops link_conn_ops = { link_on_opened, link_on_msg, link_on_closed,
                                               link_on_drained };

/* Dials the driver: tries the addresses in turn, from `first` on. If the attempt before this one
 * brought no welcome, `first` is moved one address further. */
int driver_link_dial(struct driver_link *link, struct hvd_err *err)
{
    const char *turned[LIMIT_ADDRESSES];
    struct msg_texts list = { turned, link->count };
    int rc;

    driver_link_hang_up(link); /* an attempt that is still under way ends */
    if (link->failed)
        link->first = (link->first + 1) % link->count;
    link->failed = true; /* until the driver says welcome (driver_link_welcomed) */
    for (size_t i = 0; i < link->count; i++)
        turned[i] = link->addresses[(link->first + i) % link->count];
    rc = conn_dial(link->base, &list, link->tls, &link_conn_ops, link, &link->conn, err);
    if (rc)
        link_forget_conn(link);
    return rc;
}

/* Sends a message to the driver. Without a connection it returns 0, and the message is lost: the
 * agent's core repeats what a later driver must hear. When the driver reads too slowly, `full` is
 * set, and the output of workers is not read until the unsent bytes are sent. */
int driver_link_send(struct driver_link *link, const struct msg *msg, struct hvd_err *err)
{
    int rc;

    if (!link->open)
        return 0;
    rc = conn_send(link->conn, msg, err);
    if (!rc && conn_unsent(link->conn) > CONN_HIGH_BYTES)
        link->full = true;
    return rc;
}

/* Makes the next attempt begin at the address of this connection, if the list has that address in
 * the same form. */
static void link_remember_peer(struct driver_link *link)
{
    const char *peer = conn_peer(link->conn);

    for (size_t i = 0; i < link->count; i++) {
        if (!strcmp(link->addresses[i], peer))
            link->first = i;
    }
}

/* Called for each heartbeat of the driver, which names its standbys: replaces their addresses
 * behind those of drivers. The next attempt begins at the same address as before, if it is still in
 * the list. Returns true if the list of standbys has changed. */
bool driver_link_learn(struct driver_link *link, const struct msg_texts *standbys)
{
    bool same = standbys->count == link->count - link->drivers;
    const char *first = link->count ? link->addresses[link->first] : NULL;
    char *list[LIMIT_ADDRESSES];
    size_t count = link->drivers;

    for (size_t i = 0; i < standbys->count && same; i++)
        same = !strcmp(standbys->items[i], link->addresses[link->drivers + i]);
    if (same)
        return false;
    memcpy(list, link->addresses, count * sizeof(list[0]));
    /* without memory the list is shorter; the driver's next heartbeat brings the addresses again */
    (void)!link_append(list, &count, standbys->items, standbys->count);
    link->first = 0;
    for (size_t i = 0; i < count && first; i++)
        if (!strcmp(list[i], first))
            link->first = i;
    link_free_all(link->addresses + link->drivers, link->count - link->drivers);
    memcpy(link->addresses, list, count * sizeof(list[0]));
    link->count = count;
    return true;
}

/* Called when the driver has said welcome: the greeting is over, and the next attempt begins at the
 * address of this driver. */
void driver_link_welcomed(struct driver_link *link)
{
    char *address;

    if (!link->open) /* the core has closed the connection in the step for this welcome */
        return;
    conn_greeted(link->conn);
    link->welcomed = true;
    link->failed = false;
    link_remember_peer(link);
    /* A standby that has said welcome is a driver: its address moves before those of the standbys,
     * and stays when the standbys are replaced. */
    if (link->first >= link->drivers) {
        address = link->addresses[link->first];
        link->addresses[link->first] = link->addresses[link->drivers];
        link->addresses[link->drivers] = address;
        link->first = link->drivers++;
    }
}

bool driver_link_is_open(const struct driver_link *link)
{
    return link->open;
}

/* false: output of workers would not reach a driver now, or would fill the memory of this agent. */
bool driver_link_takes_output(const struct driver_link *link)
{
    return link->open && link->welcomed && !link->full;
}

/* Puts the new addresses first. The old addresses stay, because the new ones may belong to an older
 * driver. *ret_moved: the present connection, if any, goes to none of the new addresses, so the
 * caller must dial. */
int driver_link_point(struct driver_link *link, const struct msg_texts *addresses, bool *ret_moved)
{
    char *list[LIMIT_ADDRESSES];
    size_t count = 0, drivers;
    int rc = link_append(list, &count, addresses->items, addresses->count);

    if (!rc)
        rc = link_append(list, &count, (const char *const *)link->addresses, link->drivers);
    drivers = count;
    if (!rc)
        rc = link_append(list, &count, (const char *const *)link->addresses + link->drivers,
                         link->count - link->drivers);
    if (rc) {
        link_free_all(list, count);
        return rc;
    }
    link_free_all(link->addresses, link->count);
    memcpy(link->addresses, list, count * sizeof(list[0]));
    link->count = count;
    link->drivers = drivers;
    link->first = 0;
    link->failed = false;
    /* The driver has not moved if the open connection, with its welcome, goes to one of the new
     * addresses. */
    *ret_moved = true;
    for (size_t i = 0; link->welcomed && i < addresses->count; i++) {
        if (!strcmp(addresses->items[i], conn_peer(link->conn)))
            *ret_moved = false;
    }
    /* the list has changed its order: find the address of the present connection in it again */
    if (!*ret_moved)
        link_remember_peer(link);
    return 0;
}

/* Returns the address of the driver for the log, also while it is only being dialled. */
const char *driver_link_peer(const struct driver_link *link)
{
    if (link->open)
        return conn_peer(link->conn);
    return link->count ? link->addresses[link->first] : "nowhere";
}

int driver_link_local_host(const struct driver_link *link, char text[ADDRESS_TEXT_MAX])
{
    return link->open ? conn_local_host(link->conn, text) : HVD_E_STATE;
}
