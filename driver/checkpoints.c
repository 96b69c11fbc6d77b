/*
 * checkpoints.c: the part of run.c that deals with checkpoints before the event loop runs: takes
 * the directory of --checkpoint-dir, and finds the newest complete checkpoint. Invariant: the core
 * never begins before the answer is known, so no job begins anew beside a checkpoint of its own.
 */
#include "driver/checkpoints.h"

#include "base/log.h"
#include "os/clock.h"
#include "proto/commit.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* How long a starting driver waits for the directory of checkpoints, and after what time it warns.
 * A file system that has not answered within READY_TIMEOUT counts as hanging. */
#define READY_TIMEOUT (2 * TIME_MIN)
#define READY_WARNING (5 * TIME_S)
/* How long the end of the driver waits for the catalog, which may be writing the manifest of a
 * checkpoint. */
#define STOP_PATIENCE (10 * TIME_S)

/* Writes the absolute form of `path`, the value of the option `name`, to `absolute`. A relative
 * path begins in the folder `cwd`. */
static int run_checkpoints_path(const char *name, const char *path, const char *cwd,
                                char absolute[LIMIT_PATH_BYTES], struct hvd_err *err)
{
    bool whole = *path == '/' || strstr(path, "://"); /* from the root, or an address */
    int length =
        snprintf(absolute, LIMIT_PATH_BYTES, "%s%s%s", whole ? "" : cwd, whole ? "" : "/", path);

    if (length >= LIMIT_PATH_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the path is longer than %d bytes (LIMIT_PATH_BYTES); name a shorter "
                       "one",
                       name, LIMIT_PATH_BYTES);
    /* "DIR/" and "DIR" name the same directory. */
    while (length > 1 && absolute[length - 1] == '/')
        absolute[--length] = '\0';
    return 0;
}

/* Called by store_replay for each record of the journal: ends the replay, which then returns 1, at
 * the first record of a round. */
static int run_checkpoints_is_round(void *arg, const struct journal_record *record,
                                    struct hvd_err *err)
{
    (void)arg;
    (void)err;
    return record->kind == JOURNAL_ROUND;
}

/* Waits for the first result of the catalog that is no CATALOG_NOTE; a note is only a text, and is
 * logged. `patient`: workers may train already, so after READY_WARNING without a result the wait
 * ends, with CATALOG_AWAY as the result. */
static int run_checkpoints_await(struct catalog *catalog, bool patient,
                                 struct catalog_result *ret_result, struct hvd_err *err)
{
    int64_t began_us = clock_now_us(), waited_us;
    struct pollfd readable = { .fd = catalog_fd(catalog), .events = POLLIN };
    bool warned = false;

    for (;;) {
        while (catalog_next(catalog, ret_result)) {
            if (ret_result->event != CATALOG_NOTE)
                return 0;
            if (ret_result->code)
                log_warning(STATE, "%s", ret_result->text);
            else
                log_debug(STATE, "%s", ret_result->text);
        }
        waited_us = clock_now_us() - began_us;
        if (waited_us >= READY_WARNING && patient) {
            ret_result->event = CATALOG_AWAY;
            snprintf(ret_result->text, sizeof(ret_result->text),
                     "the directory of checkpoints does not answer; check the file system or the "
                     "server of --checkpoint-dir");
            return 0;
        }
        if (waited_us >= READY_TIMEOUT)
            return err_set(err, HVD_E_TIMEOUT,
                           "the directory of checkpoints did not answer within 2 minutes; check "
                           "the file system or the server of --checkpoint-dir");
        if (waited_us >= READY_WARNING && !warned) {
            warned = true;
            log_warning(STATE,
                        "the directory of checkpoints has not answered yet; the driver waits for 2 "
                        "minutes at most; check the file system or the server of --checkpoint-dir");
        }
        if (poll(&readable, 1, (int)(READY_WARNING / TIME_MS)) < 0 && errno != EINTR)
            return err_set(err, HVD_E_IO, "poll: %s", strerror(errno));
    }
}

/* Starts the catalog with the options of the job, and waits until it has found the checkpoint with
 * which the job begins, or that there is none. Returns 0 at once if no option asks for checkpoints.
 */
int run_checkpoints_open(const struct driver_options *options, const struct job_facts *facts,
                         struct store *store, const char *cwd,
                         struct run_checkpoints *ret_checkpoints, struct core_config *core,
                         struct hvd_err *err)
{
    struct run_checkpoints *checkpoints = ret_checkpoints;
    char id[JOB_NAME_MAX + 32];
    struct catalog_options wish = { .keep = options->checkpoint_keep,
                                    .job = facts->job,
                                    .job_id = id };
    struct catalog_result result;
    int rc = 0;

    *checkpoints = (struct run_checkpoints){ .catalog = NULL };
    if (!options->checkpoint_dir && !options->checkpoint_command && !options->from_checkpoint)
        return 0;
    snprintf(id, sizeof(id), "%s-%" PRIx64, facts->job, (uint64_t)facts->created_wall_us);
    if (options->checkpoint_dir) {
        rc = run_checkpoints_path("--checkpoint-dir", options->checkpoint_dir, cwd,
                                  checkpoints->dir, err);
        wish.where = core->checkpoint_dir = checkpoints->dir;
    }
    if (options->checkpoint_command) {
        snprintf(checkpoints->dir, sizeof(checkpoints->dir), "command://%s",
                 options->checkpoint_command);
        wish.where = core->checkpoint_dir = checkpoints->dir;
        if (strlen(options->checkpoint_command) > LIMIT_PATH_BYTES - 16)
            rc = err_set(err, HVD_E_LIMIT,
                         "--checkpoint-command: has more than %d bytes; shorten it",
                         LIMIT_PATH_BYTES - 16);
    }
    if (!rc && options->from_checkpoint) {
        rc = run_checkpoints_path("--from-checkpoint", options->from_checkpoint, cwd,
                                  checkpoints->from, err);
        wish.from = checkpoints->from;
    }
    /* `patient` is true if the journal has a round, as workers may then train already. A journal
     * that cannot be read counts here as one without a round: the event loop reads the journal
     * again, and ends the driver. */
    wish.patient = store && store_replay(store, run_checkpoints_is_round, NULL, NULL) == 1;
    if (!rc)
        rc = catalog_start(&wish, &checkpoints->catalog, err);
    if (!rc)
        rc = run_checkpoints_await(checkpoints->catalog, wish.patient, &result, err);
    if (rc)
        return rc;
    if (result.event == CATALOG_AWAY) {
        log_warning(STATE,
                    "the job is taken over although its checkpoints cannot be used now: %s; the "
                    "driver tries again",
                    result.text);
        core->checkpoint_awaited = true;
        return 0;
    }
    /* HVD_E_NOTFOUND is an error only with --from-checkpoint and without a directory for
     * checkpoints. */
    if (result.code && (result.code != HVD_E_NOTFOUND || !wish.where))
        return err_set(err, result.code, "%s", result.text);
    if (result.code)
        return 0; /* the directory has no checkpoint: the training begins anew */
    snprintf(checkpoints->from, sizeof(checkpoints->from), "%s", result.path);
    core->checkpoint_from.folder = checkpoints->from;
    core->checkpoint_from.commit = result.commit;
    core->checkpoint_round = COMMIT_ROUND_OF(result.commit);
    log_info(STATE, "checkpoint %" PRIu64 ".%" PRIu32 " of %" PRIu32 " ranks is in %s",
             COMMIT_ROUND_OF(result.commit), COMMIT_PLACE_OF(result.commit), result.ranks,
             checkpoints->from);
    return 0;
}

/* Ends the catalog at the end of the driver. A thread that still writes after STOP_PATIENCE is left
 * behind, and ends with the process. */
void run_checkpoints_close(struct run_checkpoints *checkpoints)
{
    if (checkpoints->catalog && catalog_stop(checkpoints->catalog, STOP_PATIENCE))
        log_warning(STATE, "the directory of checkpoints hangs: the driver ends while a thread "
                           "still writes there, and the last checkpoint may be missing; check the "
                           "file system or the server of --checkpoint-dir");
    checkpoints->catalog = NULL;
}
