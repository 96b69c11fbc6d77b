#include "agent/io/driver_link.h"

#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

struct driver_link {
    struct event_base *base;
    struct tls *tls;
    const struct driver_link_ops *ops;
    void *arg;

    char *addresses[LIMIT_ADDRESSES];
    size_t count;
    size_t first;  /* where an attempt begins */
    bool was_vain; /* the last attempt led to no welcome: the next begins one further */

    struct conn *conn; /* being dialled, or open */
    bool open;
    bool welcomed;
    bool full; /* more was sent than output may be added to */
};

static void free_all(char **addresses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mem_free(addresses[i]);
}

static bool is_among(char *const *addresses, size_t count, const char *address)
{
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(addresses[i], address))
            return true;
    }
    return false;
}

/* Those that are new to the list, as long as there is room. */
static int append(char **list, size_t *count, const char *const *addresses, size_t more)
{
    for (size_t i = 0; i < more && *count < LIMIT_ADDRESSES; i++) {
        if (is_among(list, *count, addresses[i]))
            continue;
        list[*count] = mem_strdup(addresses[i]);
        if (!list[*count])
            return HVD_E_NOMEM;
        (*count)++;
    }
    return 0;
}

int driver_link_create(struct event_base *base, struct tls *tls, const struct msg_texts *addresses,
                       const struct driver_link_ops *ops, void *arg, struct driver_link **ret_link,
                       struct hvd_err *err)
{
    struct driver_link *link = mem_zalloc(sizeof(*link));

    if (!link)
        return err_set(err, HVD_E_NOMEM, "no memory for the link to the driver");
    *link = (struct driver_link){ .base = base, .tls = tls, .ops = ops, .arg = arg };
    if (append(link->addresses, &link->count, addresses->items, addresses->count)) {
        driver_link_free(link);
        return err_set(err, HVD_E_NOMEM, "no memory for the driver's addresses");
    }
    *ret_link = link;
    return 0;
}

void driver_link_free(struct driver_link *link)
{
    if (!link)
        return;
    driver_link_hang_up(link);
    free_all(link->addresses, link->count);
    mem_free(link);
}

static void forget_conn(struct driver_link *link)
{
    link->conn = NULL;
    link->open = false;
    link->full = false;
    link->welcomed = false;
}

void driver_link_hang_up(struct driver_link *link)
{
    struct conn *conn = link->conn;
    bool open = link->open;

    if (!conn)
        return;
    forget_conn(link);
    if (open)
        conn_close(conn);
    else
        conn_drop(conn);
}

static void on_opened(void *arg)
{
    struct driver_link *link = arg;

    link->open = true;
    link->ops->up(link->arg);
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct driver_link *link = arg;

    link->ops->msg(link->arg, msg);
}

static void on_closed(void *arg, const char *why)
{
    struct driver_link *link = arg;

    forget_conn(link);
    link->ops->down(link->arg, why);
}

static void on_drained(void *arg)
{
    struct driver_link *link = arg;

    link->full = false;
    link->ops->drained(link->arg);
}

static const struct conn_ops conn_ops = { on_opened, on_msg, on_closed, on_drained };

int driver_link_dial(struct driver_link *link, struct hvd_err *err)
{
    const char *turned[LIMIT_ADDRESSES];
    struct msg_texts list = { turned, link->count };
    int rc;

    driver_link_hang_up(link);
    if (link->was_vain)
        link->first = (link->first + 1) % link->count;
    link->was_vain = true;
    for (size_t i = 0; i < link->count; i++)
        turned[i] = link->addresses[(link->first + i) % link->count];
    rc = conn_dial(link->base, &list, link->tls, &conn_ops, link, &link->conn, err);
    if (rc)
        forget_conn(link);
    return rc;
}

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

/* What the address was called in the list, if the connection's own name for it is the same. */
static void remember_peer(struct driver_link *link)
{
    const char *peer = conn_peer(link->conn);

    for (size_t i = 0; i < link->count; i++) {
        if (!strcmp(link->addresses[i], peer))
            link->first = i;
    }
}

void driver_link_welcomed(struct driver_link *link)
{
    if (!link->open)
        return;
    conn_greeted(link->conn);
    link->welcomed = true;
    link->was_vain = false;
    remember_peer(link);
}

bool driver_link_is_open(const struct driver_link *link)
{
    return link->open;
}

bool driver_link_takes_output(const struct driver_link *link)
{
    return link->open && link->welcomed && !link->full;
}

/* Is the driver that has welcomed us at one of them? */
static bool is_connected_to(const struct driver_link *link, const struct msg_texts *addresses)
{
    for (size_t i = 0; link->welcomed && i < addresses->count; i++) {
        if (!strcmp(addresses->items[i], conn_peer(link->conn)))
            return true;
    }
    return false;
}

int driver_link_point(struct driver_link *link, const struct msg_texts *addresses, bool *ret_moved)
{
    char *list[LIMIT_ADDRESSES];
    size_t count = 0;
    int rc = append(list, &count, addresses->items, addresses->count);

    if (!rc)
        rc = append(list, &count, (const char *const *)link->addresses, link->count);
    if (rc) {
        free_all(list, count);
        return rc;
    }
    free_all(link->addresses, link->count);
    memcpy(link->addresses, list, count * sizeof(list[0]));
    link->count = count;
    link->first = 0;
    link->was_vain = false;
    *ret_moved = !is_connected_to(link, addresses);
    if (!*ret_moved)
        remember_peer(link);
    return 0;
}

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
