/*
 * notice.c: the table of givers, a thread for each one that is wanted, and the way of a notice from
 * its thread to the event loop. Called by agent/io/loop.c. Invariants: the loop never waits for a
 * thread, except in notice_stop, which ends what the threads wait for; and on a machine without a
 * giver no thread runs and no request is sent.
 */
#include "agent/notice/notice_internal.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* the address at which all three clouds serve metadata, and the folder of the firmware's texts */
#define NOTICE_SERVER     "http://169.254.169.254"
#define NOTICE_DMI        "/sys/class/dmi/id"
#define NOTICE_CONNECT_US TIME_S
#define NOTICE_REQUEST_US (5 * TIME_S)
#define NOTICE_DMI_BYTES  4096
/* longest pause between two looks at a service that has never answered */
#define NOTICE_PAUSE_MAX_US TIME_MIN

/* All givers (sources of notices that this machine will go away). */
static const struct notice_giver *const notice_table[] = {
    &notice_aws,   &notice_gcp_preempted, &notice_gcp_maintenance,
    &notice_azure, &notice_file,          &notice_command,
};

/* true: the option --preemption names this giver, or is "auto" and the firmware of this machine
 * names the cloud of this giver. HVD_DMI names another folder of the firmware's texts, for tests.
 */
static bool notice_is_wanted(const struct notice *notice, const struct notice_giver *giver)
{
    const char *folder = getenv("HVD_DMI"), *disabled = getenv("AWS_EC2_METADATA_DISABLED");
    char path[LIMIT_PATH_BYTES];
    struct buf text;
    bool here;

    if (giver == &notice_file)
        return notice->wanted.file.length > 0;
    if (giver == &notice_command)
        return notice->wanted.command.length > 0;
    if (!notice->wanted.automatic)
        return (notice->wanted.givers & giver->bit) != 0;
    /* this variable of Amazon's tools forbids requests to the metadata service */
    if (giver == &notice_aws && disabled && !strcmp(disabled, "true"))
        return false;
    snprintf(path, sizeof(path), "%s/%s", folder ? folder : NOTICE_DMI, giver->dmi_file);
    buf_init(&text, NOTICE_DMI_BYTES);
    here = !file_read(path, &text, NULL) &&
           !strncmp(buf_text(&text), giver->dmi_text, strlen(giver->dmi_text));
    buf_release(&text);
    return here;
}

/* Handles the result of one look at a giver, in the giver's thread, and passes a new notice to the
 * event loop. Of several failures in a row only the first is logged. A notice that the giver
 * withdraws still holds: the driver uses the machine again when the time of the notice is over and
 * the machine is still there. */
static void notice_looked(struct notice_watch *watch, int rc, const struct notice_said *said,
                          const struct hvd_err *err)
{
    const char *name = watch->giver->name;

    if (rc && !watch->failures)
        log_warning(
            AGENT,
            "%s was asked whether this machine will go away, and gave no usable answer: %s; the "
            "agent asks again; --preemption none ends the asking",
            name, err->text);
    watch->failures += rc && watch->failures < UINT32_MAX;
    if (rc)
        return;
    if (watch->failures)
        log_info(AGENT, "%s is asked for notices again, and answers", name);
    watch->failures = 0;
    watch->answered = true;
    /* the same notice as at the last look, or still none */
    if (!strcmp(watch->said, said->text))
        return;
    if (!said->given)
        log_warning(AGENT,
                    "%s: the notice is withdrawn (%s); the host is used again when the time of the "
                    "notice is over",
                    name, watch->said);
    memcpy(watch->said, said->text, sizeof(watch->said));
    watch->told_empty = false;
    if (!said->given)
        return;
    pthread_mutex_lock(&watch->notice->mutex);
    watch->given = *said;
    watch->until_us = time_add(clock_now_us(), said->left_us);
    watch->waits = true;
    pthread_mutex_unlock(&watch->notice->mutex);
    (void)eventfd_write(watch->notice->to_loop, 1);
}

/* Waits until the time of the next look. If the host becomes empty (no worker runs) after a notice,
 * and this giver wants to know that, the giver is told, once for each notice, and the wait ends
 * early. false: notice_stop was called. */
static bool notice_rest(struct notice_watch *watch, int64_t until_us)
{
    struct notice *notice = watch->notice;
    bool tell = false, stopping;
    struct hvd_err err = { .code = 0 };

    pthread_mutex_lock(&notice->mutex);
    while (!notice->stopping && !tell) {
        tell = watch->giver->empty && *watch->said && !watch->told_empty && !watch->waits &&
               notice->empty;
        if (!tell && thread_cond_wait(&notice->changed, &notice->mutex, until_us))
            break;
    }
    stopping = notice->stopping;
    pthread_mutex_unlock(&notice->mutex);
    if (tell && !stopping && watch->giver->empty(watch, &err)) {
        log_warning(
            AGENT, "%s cannot be told that no worker runs here any more: %s; the agent tries again",
            watch->giver->name, err.text);
    } else if (tell && !stopping) {
        watch->told_empty = true;
        log_info(AGENT, "%s was told that no worker runs here any more (%s)", watch->giver->name,
                 watch->said);
    }
    return !stopping;
}

/* The thread of one giver: looks, then waits for pause_us, until notice_stop. HVD_NOTICE_PAUSE sets
 * another pause, for tests. */
static void *notice_main(void *arg)
{
    struct notice_watch *watch = arg;
    bool goes_on = true;

    while (goes_on) {
        struct notice_said said = { .given = false };
        struct hvd_err err = { .code = 0 };
        int rc = watch->giver->look(watch, &said, &err);
        int64_t pause_us = watch->notice->pause_us, until_us;

        pthread_mutex_lock(&watch->notice->mutex);
        goes_on = !watch->notice->stopping;
        pthread_mutex_unlock(&watch->notice->mutex);
        if (goes_on)
            notice_looked(watch, rc, &said, &err);
        pause_us = pause_us ? pause_us : watch->giver->pause_us;
        /* A service that has never answered is asked less and less often. */
        for (unsigned i = 1; !watch->answered && i < watch->failures; i++)
            pause_us = 2 * pause_us < NOTICE_PAUSE_MAX_US ? 2 * pause_us : NOTICE_PAUSE_MAX_US;
        until_us = time_add(clock_now_us(), pause_us);
        /* notice_rest may return before the pause is over */
        while (goes_on && clock_now_us() < until_us)
            goes_on = notice_rest(watch, until_us);
    }
    return NULL;
}

/* Called in the event loop when a thread has a notice: passes it to the agent. */
static void notice_on_told(evutil_socket_t fd, short what, void *arg)
{
    struct notice *notice = arg;
    eventfd_t ignored;

    (void)what;
    (void)eventfd_read(fd, &ignored);
    for (size_t i = 0; i < notice->count; i++) {
        struct notice_watch *watch = &notice->watches[i];
        struct notice_said said;
        int64_t until_us;
        bool waits;

        pthread_mutex_lock(&notice->mutex);
        said = watch->given;
        until_us = watch->until_us;
        waits = watch->waits;
        pthread_mutex_unlock(&notice->mutex);
        if (!waits)
            continue;
        notice->ops->given(notice->arg,
                           until_us == TIME_NEVER ? TIME_NEVER : until_us - clock_now_us(),
                           said.text);
        /* Only after the core of the agent has the notice, its giver may be told that the host is
         * empty (notice_rest looks at `waits`). */
        pthread_mutex_lock(&notice->mutex);
        watch->waits = false;
        pthread_cond_broadcast(&notice->changed);
        pthread_mutex_unlock(&notice->mutex);
    }
}

/* The event loop says whether a worker runs on this host: a change wakes the threads, because some
 * givers are told that the host is empty. */
void notice_host_empty(struct notice *notice, bool empty)
{
    if (!notice)
        return;
    pthread_mutex_lock(&notice->mutex);
    if (notice->empty != empty)
        pthread_cond_broadcast(&notice->changed);
    notice->empty = empty;
    pthread_mutex_unlock(&notice->mutex);
}

/* Ends all threads and frees the watches. First everything that the threads may wait for is ended
 * (the pause, a command, a request), so that the wait for the threads is short. */
void notice_stop(struct notice *notice)
{
    if (!notice)
        return;
    pthread_mutex_lock(&notice->mutex);
    notice->stopping = true;
    pthread_cond_broadcast(&notice->changed);
    pthread_mutex_unlock(&notice->mutex);
    if (notice->stop_fd >= 0)
        (void)eventfd_write(notice->stop_fd, 1);
    for (size_t i = 0; i < notice->count; i++)
        if (notice->watches[i].client)
            http_client_stop(notice->watches[i].client);
    for (size_t i = 0; i < notice->count; i++) {
        if (notice->watches[i].started)
            thread_join(notice->watches[i].thread);
        http_client_free(notice->watches[i].client);
        explicit_bzero(notice->watches[i].token, sizeof(notice->watches[i].token));
    }
    if (notice->told)
        event_free(notice->told);
    if (notice->to_loop >= 0)
        close(notice->to_loop);
    if (notice->stop_fd >= 0)
        close(notice->stop_fd);
    pthread_cond_destroy(&notice->changed);
    pthread_mutex_destroy(&notice->mutex);
    mem_free(notice);
}

/* Checks what can be known before the watch begins: whether the file may appear on this host. */
int notice_check(const char *preemption, struct hvd_err *err)
{
    struct preemption wanted;
    char path[LIMIT_PATH_BYTES];
    int rc = preemption_parse(preemption, &wanted, err);

    if (!rc && wanted.file.length) {
        snprintf(path, sizeof(path), "%.*s", (int)wanted.file.length, wanted.file.at);
        rc = notice_file_check(path, err);
    }
    return rc ? err_prefix(err, rc, "--preemption") : 0;
}

/* Makes the watch of one giver, and starts its thread. */
static int notice_add(struct notice *notice, const struct notice_giver *giver, struct hvd_err *err)
{
    const struct http_config config = { .connect_us = NOTICE_CONNECT_US,
                                        .request_us = NOTICE_REQUEST_US };
    const char *server = giver->server_env ? getenv(giver->server_env) : NULL;
    struct notice_watch *watch = &notice->watches[notice->count];
    size_t length;
    int rc = 0;

    *watch = (struct notice_watch){ .giver = giver, .notice = notice };
    watch->target = giver == &notice_file ? notice->wanted.file : notice->wanted.command;
    /* the giver is a metadata service, at the address of its variable or at the usual one; the
     * address gets "http://" if it has no scheme, and ends without a slash */
    if (giver->bit) {
        if (!server || !*server || strlen(server) + strlen("http://") >= sizeof(watch->server))
            server = NOTICE_SERVER;
        length = (size_t)snprintf(watch->server, sizeof(watch->server), "%s%s",
                                  strstr(server, "://") ? "" : "http://", server);
        while (watch->server[length - 1] == '/')
            watch->server[--length] = '\0';
        rc = http_client_create(&config, &watch->client, err);
    }
    notice->count++;
    if (!rc && (rc = thread_start(&watch->thread, 0, notice_main, watch)))
        rc = err_set(err, rc,
                     "no thread is left to watch for notices of preemption; raise ulimit -u, or "
                     "give --preemption none");
    watch->started = !rc;
    if (!rc)
        log_info(AGENT, "the agent watches %s for notices that this machine goes away",
                 giver->name);
    return rc;
}

/* Finds the givers that are wanted on this machine, and starts a thread for each. If there is none,
 * *ret_notice is NULL and 0 is returned. */
int notice_start(struct event_base *base, const struct notice_config *config,
                 const struct notice_ops *ops, void *arg, struct notice **ret_notice,
                 struct hvd_err *err)
{
    const char *pause = getenv("HVD_NOTICE_PAUSE");
    const struct notice_giver *wanted[ARRAY_SIZE(notice_table)];
    struct notice *notice;
    size_t count = 0;
    int rc;

    *ret_notice = NULL;
    notice = mem_zalloc(sizeof(*notice) + ARRAY_SIZE(notice_table) * sizeof(notice->watches[0]));
    if (!notice)
        return err_set(err, HVD_E_NOMEM,
                       "no memory to watch for notices; free memory on this host");
    notice->ops = ops;
    notice->arg = arg;
    notice->default_us = config->default_us;
    notice->to_loop = notice->stop_fd = -1;
    notice->empty = true;
    rc = pthread_mutex_init(&notice->mutex, NULL);
    ASSERT(rc == 0);
    rc = thread_cond_init(&notice->changed);
    ASSERT(rc == 0);
    rc = preemption_parse(config->preemption, &notice->wanted, err);
    if (!rc && pause)
        rc = time_parse(pause, &notice->pause_us, err);
    for (size_t i = 0; !rc && i < ARRAY_SIZE(notice_table); i++)
        if (notice_is_wanted(notice, notice_table[i]))
            wanted[count++] = notice_table[i];
    if (rc || !count) {
        notice_stop(notice);
        return rc;
    }
    notice->to_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    notice->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (notice->to_loop < 0 || notice->stop_fd < 0)
        rc = err_set(err, HVD_E_LIMIT,
                     "no file descriptor is left to watch for notices; raise ulimit -n");
    else
        notice->told =
            event_new(base, notice->to_loop, EV_READ | EV_PERSIST, notice_on_told, notice);
    if (!rc && (!notice->told || event_add(notice->told, NULL)))
        rc = err_set(err, HVD_E_NOMEM, "no memory to watch for notices; free memory on this host");
    for (size_t i = 0; !rc && i < count; i++)
        rc = notice_add(notice, wanted[i], err);
    if (rc)
        notice_stop(notice);
    else
        *ret_notice = notice;
    return rc;
}
