/*
 * autopsies.c: writes the autopsies of a job's workers into its folder. shown.c owns it, and loop.c
 * brings the messages. The driver's thread encodes, and another thread writes; the mutex covers the
 * frames that wait between them, and is never held during a write. Invariant: the driver's thread
 * never waits for the disk.
 */
#include "driver/control/autopsies.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "driver/control/autopsy_file.h"
#include "os/clock.h"
#include "os/thread.h"
#include "proto/codec.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* An autopsy that waits for the disk. */
struct autopsies_task {
    struct autopsy_name name;
    struct buf frame;
    char worker[LIMIT_HOST_NAME_BYTES + 64]; /* "HOST:SLOT#INCARNATION" */
    bool by_order;                           /* the worker was ordered to end */
};

struct autopsies {
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the fields below up to `abandoned` */
    /* signalled when an autopsy waits, and when the thread must end or has ended */
    pthread_cond_t more;
    struct autopsies_task waiting[AUTOPSIES_WAITING]; /* a ring */
    size_t first, count;
    bool ending;
    bool ended;
    /* autopsies_free waits no longer, because the disk hangs: the thread frees everything when it
     * ends */
    bool abandoned;

    bool full; /* the last autopsy was dropped; only the driver's thread uses it */
    /* only the thread uses the fields below */
    bool fresh;
    bool failing; /* nothing can be written, and a warning about it was logged */
    bool told;    /* a line has named the command */
    char folder[LIMIT_PATH_BYTES];
};

/* ---- the thread that writes ------------------------------------------------------------------ */

/* Frees the autopsies when no thread uses them any more. */
static void autopsies_destroy(struct autopsies *own)
{
    for (size_t i = 0; i < AUTOPSIES_WAITING; i++)
        buf_release(&own->waiting[i].frame);
    pthread_cond_destroy(&own->more);
    pthread_mutex_destroy(&own->mutex);
    mem_free(own);
}

/* The function of the thread: writes what waits, until autopsies_free and until nothing waits. Says
 * once where the files are shown, and why one cannot be written. */
static void *autopsies_thread(void *arg)
{
    struct autopsies *own = arg;
    struct autopsies_task task;
    struct hvd_err err;
    bool abandoned;
    int rc;

    if (own->fresh && autopsy_file_clear(own->folder, &err))
        log_warning(JOB, "autopsies of a former job stay: %s", err.text);
    pthread_mutex_lock(&own->mutex);
    for (;;) {
        while (!own->count && !own->ending)
            pthread_cond_wait(&own->more, &own->mutex);
        if (!own->count)
            break;
        task = own->waiting[own->first];
        own->waiting[own->first].frame = (struct buf){ .data = NULL };
        own->first = (own->first + 1) % AUTOPSIES_WAITING;
        own->count--;
        pthread_mutex_unlock(&own->mutex);
        rc = autopsy_file_write(own->folder, &task.name, &task.frame, &err);
        if (rc && !own->failing)
            log_warning(JOB, "what dead workers were doing cannot be kept, and the job goes on: %s",
                        err.text);
        else if (!rc && task.by_order)
            log_debug(JOB, "what %s did last is kept in %s", task.worker, own->folder);
        else if (!rc && !own->told && task.name.stall)
            log_warning(JOB,
                        "what %s does in the stall is shown by: hvd-elastic autopsy --state-dir %s "
                        "(so are other stalls, and deaths)",
                        task.worker, own->folder);
        else if (!rc && !own->told)
            log_warning(JOB,
                        "what %s did last, and the end of its output, is shown by: hvd-elastic "
                        "autopsy --state-dir %s (so are later deaths)",
                        task.worker, own->folder);
        own->told = own->told || (!rc && !task.by_order);
        own->failing = rc != 0;
        buf_release(&task.frame);
        pthread_mutex_lock(&own->mutex);
    }
    own->ended = true;
    abandoned = own->abandoned;
    pthread_cond_signal(&own->more);
    pthread_mutex_unlock(&own->mutex);
    if (abandoned)
        autopsies_destroy(own);
    return NULL;
}

/* ---- the driver's thread --------------------------------------------------------------------- */

int autopsies_create(const char *folder, bool fresh, struct autopsies **ret_autopsies,
                     struct hvd_err *err)
{
    struct autopsies *own = mem_zalloc(sizeof(*own));
    int rc = HVD_E_NOMEM;

    if (!own || thread_cond_init(&own->more)) {
        mem_free(own);
        return err_set(err, rc, "no memory for the autopsies of workers; free memory on this host");
    }
    pthread_mutex_init(&own->mutex, NULL);
    own->fresh = fresh;
    snprintf(own->folder, sizeof(own->folder), "%s", folder);
    rc = thread_start(&own->thread, 0, autopsies_thread, own);
    if (rc) {
        autopsies_destroy(own);
        return err_set(err, rc,
                       "no thread can be started to keep autopsies of workers; raise ulimit -u");
    }
    *ret_autopsies = own;
    return 0;
}

void autopsies_take(struct autopsies *autopsies, const char *host, const struct msg *msg,
                    bool by_order)
{
    struct autopsies_task task = {
        .name = {.incarnation = msg->incarnation, .stall = msg->u.autopsy.ended == ENDED_NOT},
        .by_order = by_order && msg->u.autopsy.ended != ENDED_NOT
    };
    struct msg named = *msg;
    bool full;
    int rc;

    if (!autopsies)
        return;
    named.u.autopsy.host = host;
    snprintf(task.worker, sizeof(task.worker), "%s:%" PRIu32 "#%" PRIu64, host, msg->u.autopsy.slot,
             msg->incarnation);
    buf_init(&task.frame, AUTOPSY_FILE_BYTES);
    rc = msg_encode(&named, &task.frame, NULL);
    pthread_mutex_lock(&autopsies->mutex);
    full = autopsies->count == AUTOPSIES_WAITING;
    if (!rc && !full) {
        autopsies->waiting[(autopsies->first + autopsies->count++) % AUTOPSIES_WAITING] = task;
        pthread_cond_signal(&autopsies->more);
    }
    pthread_mutex_unlock(&autopsies->mutex);
    if (!rc && !full) {
        autopsies->full = false;
        return;
    }
    buf_release(&task.frame);
    if (!autopsies->full)
        log_warning(JOB, "what %s was doing when it died is not kept, and the job goes on: %s",
                    task.worker,
                    rc ? err_text(rc) : "too many workers die at once, or the disk hangs");
    autopsies->full = true;
}

/* If the disk hangs for longer than AUTOPSIES_LAST_US, the autopsies are abandoned: the thread
 * frees them later, or never. */
void autopsies_free(struct autopsies *autopsies)
{
    const int64_t until_us = clock_now_us() + AUTOPSIES_LAST_US;
    pthread_t thread;
    bool ended;

    if (!autopsies)
        return;
    thread = autopsies->thread;
    pthread_mutex_lock(&autopsies->mutex);
    autopsies->ending = true;
    pthread_cond_signal(&autopsies->more);
    while (!autopsies->ended && !thread_cond_wait(&autopsies->more, &autopsies->mutex, until_us))
        continue;
    ended = autopsies->ended;
    autopsies->abandoned = !ended;
    if (!ended)
        log_warning(JOB,
                    "%s: a write hangs, so the last autopsies are missing; check its file system",
                    autopsies->folder);
    pthread_mutex_unlock(&autopsies->mutex);
    if (ended) {
        thread_join(thread);
        autopsies_destroy(autopsies);
    } else {
        thread_abandon(thread);
    }
}
