/*
 * discover.c: the table of sources, and the parts that all sources share: giving the answer from
 * the event loop, and reading a source's text. The driver's event loop calls discover_ask; the file
 * of the source (list.c, file.c, script.c, watch.c, batch.c) answers with discover_answer. The
 * owner's callbacks are never called from within discover_ask.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "discovery/parse.h"
#include "discovery/sources/source_internal.h"

#include <string.h>

static const struct discover_source *const sources[] = {
    [DISCOVER_LIST] = &discover_list,     [DISCOVER_FILE] = &discover_file,
    [DISCOVER_SCRIPT] = &discover_script, [DISCOVER_WATCH] = &discover_watch,
    [DISCOVER_BATCH] = &discover_batch,
};
_Static_assert(ARRAY_SIZE(sources) == DISCOVER_KINDS, "every kind of source has its row");

const char *discover_option(enum discover_kind kind)
{
    return sources[kind]->option;
}

/* Called by a source that has an answer: hosts (`rc` is 0), which are moved out of *hosts, or a
 * failure, `err`. The owner's callback is called later, by the event loop (discover_tell_owner). */
void discover_answer(struct discoverer *discoverer, int rc, struct hosts *hosts,
                     const struct hvd_err *err)
{
    if (rc) {
        discoverer->failure = *err;
    } else {
        hosts_move(hosts, &discoverer->hosts);
        discoverer->has_hosts = true;
    }
    /* Hosts that come now replace an earlier failure of which the owner has not been told yet: the
     * owner is then told of the hosts only. */
    discoverer->has_failure = rc != 0;
    hosts_release(hosts);
    event_active(&discoverer->tell_event, EV_TIMEOUT, 1);
}

/* Gives the owner a copy of `hosts` as the answer. Without memory for the copy the answer is the
 * failure HVD_E_NOMEM. */
void discover_answer_copy(struct discoverer *discoverer, const struct hosts *hosts)
{
    struct hosts copy;
    struct hvd_err err;
    int rc;

    hosts_init(&copy);
    rc = hosts_copy(hosts, &copy);
    if (rc)
        err_set(&err, rc, "%s: %s", discoverer->name, err_text(rc));
    discover_answer(discoverer, rc, &copy, &err);
}

/* Called by the event loop soon after discover_answer: calls the owner's callback for the hosts or
 * for the failure. If there are both, the hosts came first and are told first; another call of this
 * function follows for the failure. The owner may free the discoverer in its callback, so nothing
 * here uses the discoverer after a callback. */
static void discover_tell_owner(evutil_socket_t fd, short what, void *arg)
{
    struct discoverer *discoverer = arg;
    struct hvd_err failure;
    struct hosts hosts;

    (void)fd;
    (void)what;
    if (discoverer->has_hosts) {
        hosts_init(&hosts);
        hosts_move(&discoverer->hosts, &hosts);
        discoverer->has_hosts = false;
        if (discoverer->has_failure)
            event_active(&discoverer->tell_event, EV_TIMEOUT, 1);
        discoverer->ops.hosts(discoverer->arg, &hosts);
        hosts_release(&hosts);
    } else if (discoverer->has_failure) {
        failure = discoverer->failure;
        discoverer->has_failure = false;
        discoverer->ops.failed(discoverer->arg, failure.text);
    }
}

/* Appends the first line of a program's standard error to the text of err. err_set copies its text
 * before it changes err. */
void discover_quote_stderr(struct hvd_err *err, const struct stderr_tail *stderr_tail)
{
    struct span line = stderr_tail_first(stderr_tail);

    if (line.length)
        err_set(err, err->code, "%s (standard error: %.*s)", err->text, (int)line.length, line.at);
}

/* Reads the hosts in `text`, which a program has printed or a file has. stderr_tail: the program's
 * standard error, which an error quotes; NULL: there is none. */
int discover_read(const struct discoverer *discoverer, struct span text,
                  const struct stderr_tail *stderr_tail, struct hosts *ret_hosts,
                  struct hvd_err *err)
{
    bool blank = true;
    int rc;

    /* span_trim cannot be used here, because it does not cut newlines. strchr also finds a NUL
     * byte, which is no blank. */
    for (size_t i = 0; i < text.length && blank; i++)
        blank = strchr(" \t\r\n", text.at[i]) && text.at[i];
    /* A program that prints nothing counts as failed: an empty text does not mean that all hosts
     * have left. */
    if (blank)
        rc = err_set(err, HVD_E_INVAL,
                     "%s: %s; write name:slots, one host a line, or a line that begins with # to "
                     "say that there are no hosts",
                     discoverer->name, discoverer->source->when_empty);
    else
        rc = (discoverer->source->is_hostfile ? hosts_parse_hostfile : hosts_parse_text)(
            text, discoverer->name, discoverer->config.slots_per_host, ret_hosts, err);
    if (rc && stderr_tail)
        discover_quote_stderr(err, stderr_tail);
    return rc;
}

/* Called by a source whose option names a file or program: sets `path`, and also `name`, under
 * which errors speak of the source. */
int discover_take_path(struct discoverer *discoverer, struct hvd_err *err)
{
    const char *value = discoverer->config.value;
    struct buf path;
    int rc;

    if (!*value)
        return err_set(err, HVD_E_INVAL, "--%s: the path is empty; name a file",
                       discoverer->source->option);
    buf_init(&path, LIMIT_PATH_BYTES);
    /* A name without "/" gets "./" in front: a program is looked for in the working folder, not in
     * PATH. */
    rc = buf_printf(&path, "%s%s", strchr(value, '/') ? "" : "./", value);
    if (rc) {
        buf_release(&path);
        return err_set(err, rc, "%s: %s", value, err_text(rc));
    }
    discoverer->path = path.data;
    discoverer->name = path.data;
    return 0;
}

/* Makes a discoverer of the kind in `config`, and opens its source, which checks the path or the
 * list now. The owner gets answers through `ops`, with `arg`. */
int discover_create(struct event_base *base, const struct discover_config *config,
                    const struct discover_ops *ops, void *arg, struct discoverer **ret_discoverer,
                    struct hvd_err *err)
{
    struct discoverer *discoverer = mem_zalloc(sizeof(*discoverer));
    int rc;

    ASSERT(config->kind < DISCOVER_KINDS);
    if (!discoverer)
        return err_set(err, HVD_E_NOMEM,
                       "no memory to read the list of hosts; free memory on this host");
    discoverer->source = sources[config->kind];
    discoverer->base = base;
    discoverer->config = *config;
    discoverer->ops = *ops;
    discoverer->arg = arg;
    hosts_init(&discoverer->hosts);
    event_assign(&discoverer->tell_event, base, -1, 0, discover_tell_owner, discoverer);
    discoverer->state = mem_zalloc(discoverer->source->state_bytes);
    rc = discoverer->state
             ? discoverer->source->open(discoverer, err)
             : err_set(err, HVD_E_NOMEM,
                       "no memory to read the list of hosts; free memory on this host");
    if (rc)
        discover_free(discoverer);
    else
        *ret_discoverer = discoverer;
    return rc;
}

void discover_ask(struct discoverer *discoverer)
{
    discoverer->source->ask(discoverer);
}

/* Frees the discoverer, and ends what its source has started. discover_create also calls this
 * function when the source's `open` has failed. */
void discover_free(struct discoverer *discoverer)
{
    if (!discoverer)
        return;
    if (discoverer->state && discoverer->source->close)
        discoverer->source->close(discoverer);
    event_del(&discoverer->tell_event);
    hosts_release(&discoverer->hosts);
    mem_free(discoverer->state);
    mem_free(discoverer->path);
    mem_free(discoverer);
}
