#include "driver/hosts/discover_own.h"

#include "base/mem.h"
#include "base/time.h"
#include "discovery/parse.h"
#include "os/file.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_NAME "host list"

static void tell(struct discoverer *discoverer)
{
    event_active(&discoverer->telling, EV_TIMEOUT, 1);
}

void discover_tell(struct discoverer *discoverer, struct hosts *hosts)
{
    hosts_move(hosts, &discoverer->hosts);
    discoverer->has_hosts = true;
    discoverer->has_failure = false; /* it was before them */
    tell(discoverer);
}

void discover_tell_failure(struct discoverer *discoverer, const struct hvd_err *failure)
{
    discoverer->failure = *failure;
    discoverer->has_failure = true;
    tell(discoverer);
}

/* The owner may free the discoverer in here, so nothing of it is touched after the call. */
static void telling(evutil_socket_t fd, short what, void *arg)
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
            tell(discoverer);
        discoverer->ops.hosts(discoverer->arg, &hosts);
        hosts_release(&hosts);
    } else if (discoverer->has_failure) {
        failure = discoverer->failure;
        discoverer->has_failure = false;
        discoverer->ops.failed(discoverer->arg, failure.text);
    }
}

/* Puts what the program complained of first behind a text, which may be that of err. */
static void add_complaint(struct hvd_err *err, const struct complaint *complaint)
{
    struct span said = complaint ? complaint_first(complaint) : (struct span){ NULL, 0 };

    if (said.length)
        err_set(err, err->code, "%s (standard error: %.*s)", err->text, (int)said.length, said.at);
}

/* One that prints nothing at all has rather failed silently than found that all hosts are gone. */
int discover_read(const struct discoverer *discoverer, struct span text,
                  const struct complaint *complaint, struct hosts *ret_hosts, struct hvd_err *err)
{
    bool blank = true;
    int rc;

    for (size_t i = 0; i < text.length && blank; i++)
        blank = strchr(" \t\r\n", text.at[i]) && text.at[i];
    if (blank)
        rc = err_set(err, HVD_E_INVAL,
                     "%s: %s; write name:n, one host a line, or a line that begins with # when "
                     "there is no host",
                     discoverer->path,
                     discoverer->config.kind == DISCOVER_FILE ? "is empty" : "printed nothing");
    else
        rc = hosts_parse_text(text, discoverer->path, discoverer->config.slots_per_host, ret_hosts,
                              err);
    if (rc)
        add_complaint(err, complaint);
    return rc;
}

void discover_blame(const struct discoverer *discoverer, const struct command_end *end,
                    const char *remedy, struct hvd_err *err)
{
    char how[COMMAND_HOW_MAX];

    if (end->how == COMMAND_FAILED)
        err_set(err, HVD_E_IO, "%s", end->why);
    else
        err_set(err, HVD_E_IO, "%s: %s; %s", discoverer->path,
                command_how(&discoverer->spec, end, how), remedy);
    add_complaint(err, end->complaint);
}

static const char *remedy_for(enum command_how how)
{
    switch (how) {
    case COMMAND_TOO_LATE: return "make it faster, or allow it more time";
    case COMMAND_TOO_LONG: return "write each host once, one a line";
    default: return "run it by hand to see why";
    }
}

static void script_ended(void *arg, const struct command_end *end)
{
    struct discoverer *discoverer = arg;
    struct hosts hosts;
    struct hvd_err err;
    int rc = HVD_E_IO;

    hosts_init(&hosts);
    complaint_log_run(&discoverer->log, end->complaint);
    if (end->how == COMMAND_EXITED && end->value == 0)
        rc = discover_read(discoverer, (struct span){ buf_text(end->output), end->output->length },
                           end->complaint, &hosts, &err);
    else
        discover_blame(discoverer, end, remedy_for(end->how), &err);
    if (rc)
        discover_tell_failure(discoverer, &err);
    else
        discover_tell(discoverer, &hosts);
    hosts_release(&hosts);
    command_free(discoverer->run);
    discoverer->run = NULL;
}

static void ask_script(struct discoverer *discoverer)
{
    static const struct command_ops ops = { .ended = script_ended };
    struct hvd_err err;

    if (!discoverer->run &&
        command_run(discoverer->base, &discoverer->spec, &ops, discoverer, &discoverer->run, &err))
        discover_tell_failure(discoverer, &err);
}

/* Another kind of file may block the loop, or cannot be read twice. */
static int check_file(const char *path, struct hvd_err *err)
{
    struct stat st;

    if (stat(path, &st))
        return err_set(err, errno == EACCES ? HVD_E_DENIED : HVD_E_NOTFOUND,
                       "%s: %s; write the hosts there, one a line", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, HVD_E_INVAL, "%s: not a regular file; name one that can be read again",
                       path);
    return 0;
}

static void ask_file(struct discoverer *discoverer)
{
    struct hosts hosts;
    struct hvd_err err;
    struct buf text;
    int rc = check_file(discoverer->path, &err);

    buf_init(&text, LIMIT_HOST_TEXT_BYTES + 1);
    hosts_init(&hosts);
    if (!rc)
        rc = file_read(discoverer->path, &text, &err);
    if (!rc)
        rc = discover_read(discoverer, (struct span){ buf_text(&text), text.length }, NULL, &hosts,
                           &err);
    if (rc)
        discover_tell_failure(discoverer, &err);
    else
        discover_tell(discoverer, &hosts);
    hosts_release(&hosts);
    buf_release(&text);
}

static void ask_list(struct discoverer *discoverer)
{
    struct hosts hosts;
    struct hvd_err err;
    int rc;

    hosts_init(&hosts);
    rc = hosts_copy(&discoverer->newest, &hosts);
    if (rc) {
        err_set(&err, rc, LIST_NAME ": %s", err_text(rc));
        discover_tell_failure(discoverer, &err);
    } else {
        discover_tell(discoverer, &hosts);
    }
    hosts_release(&hosts);
}

void discover_ask(struct discoverer *discoverer)
{
    switch (discoverer->config.kind) {
    case DISCOVER_LIST: ask_list(discoverer); break;
    case DISCOVER_FILE: ask_file(discoverer); break;
    case DISCOVER_SCRIPT: ask_script(discoverer); break;
    case DISCOVER_WATCH: watch_ask(discoverer); break;
    }
}

static int check_program(const char *path, struct hvd_err *err)
{
    struct stat st;

    if (stat(path, &st) && errno != EACCES)
        return err_set(err, HVD_E_NOTFOUND, "%s: %s; %s", path, strerror(errno),
                       strpbrk(path, " \t")
                           ? "give only the path of a program; one that needs arguments can be "
                             "called by a script"
                           : "give the path of a program that prints the hosts");
    if (access(path, X_OK) || !S_ISREG(st.st_mode))
        return err_set(err, HVD_E_DENIED, "%s: not executable; make it a file with chmod +x", path);
    return 0;
}

/* A bare name is a file of the working folder, also when it is a program: nothing is looked up. */
static int take_path(struct discoverer *discoverer, struct hvd_err *err)
{
    const char *source = discoverer->config.source;
    const char *folder = strchr(source, '/') ? "" : "./";
    struct buf path;
    int rc;

    if (!*source)
        return err_set(err, HVD_E_INVAL, "hosts: the path is empty; name a file");
    buf_init(&path, LIMIT_PATH_BYTES);
    rc = buf_printf(&path, "%s%s", folder, source);
    if (rc) {
        buf_release(&path);
        return err_set(err, rc, "%s: %s", source, err_text(rc));
    }
    discoverer->path = path.data;
    return discoverer->config.kind == DISCOVER_FILE ? check_file(discoverer->path, err)
                                                    : check_program(discoverer->path, err);
}

static int take_list(struct discoverer *discoverer, struct hvd_err *err)
{
    const char *source = discoverer->config.source;
    int rc = hosts_parse_list((struct span){ source, strlen(source) }, LIST_NAME,
                              discoverer->config.slots_per_host, &discoverer->newest, err);

    if (!rc && discoverer->newest.count == 0)
        rc = err_set(err, HVD_E_INVAL, LIST_NAME ": no hosts; write name:n,name:n");
    return rc;
}

static void set_spec(struct discoverer *discoverer)
{
    bool watch = discoverer->config.kind == DISCOVER_WATCH;

    discoverer->argv[0] = discoverer->path;
    discoverer->argv[1] = NULL;
    discoverer->spec =
        (struct command_spec){ .argv = discoverer->argv,
                               .output_max = LIMIT_HOST_TEXT_BYTES,
                               .limit_us = watch ? TIME_NEVER : discoverer->config.limit_us,
                               .linger_us = watch ? discoverer->config.limit_us : TIME_NEVER,
                               .dies_with_us = SIGKILL };
}

int discover_create(struct event_base *base, const struct discover_config *config,
                    const struct discover_ops *ops, void *arg, struct discoverer **ret_discoverer,
                    struct hvd_err *err)
{
    struct discoverer *discoverer = mem_zalloc(sizeof(*discoverer));
    int rc;

    if (!discoverer)
        return err_set(err, HVD_E_NOMEM, "hosts: no memory to look for them");
    discoverer->base = base;
    discoverer->config = *config;
    discoverer->ops = *ops;
    discoverer->arg = arg;
    hosts_init(&discoverer->newest);
    hosts_init(&discoverer->hosts);
    event_assign(&discoverer->telling, base, -1, 0, telling, discoverer);
    watch_init(discoverer);
    if (config->kind == DISCOVER_LIST)
        rc = take_list(discoverer, err);
    else
        rc = take_path(discoverer, err);
    if (rc) {
        discover_free(discoverer);
        return rc;
    }
    complaint_log_init(&discoverer->log, discoverer->path);
    set_spec(discoverer);
    *ret_discoverer = discoverer;
    return 0;
}

void discover_free(struct discoverer *discoverer)
{
    if (!discoverer)
        return;
    command_free(discoverer->run);
    watch_release(discoverer);
    event_del(&discoverer->telling);
    hosts_release(&discoverer->hosts);
    hosts_release(&discoverer->newest);
    mem_free(discoverer->path);
    mem_free(discoverer);
}
