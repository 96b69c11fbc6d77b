/*
 * stop.c: the verb "stop": ends the job. With --wait the driver answers at once and keeps the
 * connection open until the driver ends. If the job has no driver, this program is started once
 * more as a driver that takes the job over only to end it (--resume JOB --stop): so all rules of a
 * takeover hold, and a driver that wakes up meanwhile finds that it has been replaced.
 */
#include "driver/cli/verbs.h"

#include "base/mem.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int stop_read(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    request->ask.follow = request->options.wait;
    if (!request->options.checkpoint)
        cli_add_arg(request, "now");
    return 0;
}

/* Sets *ret_job to the name of the job in the folder. HVD_E_STATE: the job has ended. */
static int stop_find_name(const char *folder, char ret_job[JOB_NAME_MAX + 1], struct hvd_err *err)
{
    char *path = job_path_join(folder, "job.db");
    struct job_facts facts;
    struct store *store = NULL;
    int rc;

    if (!path)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    rc = job_file_look(path, &store, err);
    if (!rc)
        rc = store_facts(store, &facts, err);
    store_close(store);
    mem_free(path);
    if (rc)
        return rc;
    explicit_bzero(facts.key, sizeof(facts.key));
    if (facts.ended)
        return err_set(err, HVD_E_STATE, "job %s has ended: %s", facts.job, facts.text);
    memcpy(ret_job, facts.job, sizeof(facts.job));
    return 0;
}

/* Ends a job that has no driver, and waits for that, also with --no-wait. The driver that does it
 * says on standard error which hosts could not be reached; apart from a checkpoint it takes at most
 * twice --kill-grace and one --lease. */
static int stop_answer_offline(const struct cli_request *request, const char *folder,
                               struct hvd_err *err)
{
    char words[][16] = { "hvd-elastic", "--resume", "--state-dir", "--stop",
                         "checkpoint",  "now",      "--log-level", "warning" };
    char job[JOB_NAME_MAX + 1];
    char *at = mem_strdup(folder);
    char *const argv[] = {
        words[0], words[1], job, words[2], at, words[3], words[request->options.checkpoint ? 4 : 5],
        words[6], words[7], NULL
    };
    int status = 0;
    pid_t pid;
    int rc = at ? stop_find_name(folder, job, err)
                : err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));

    if (!rc && (errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ)))
        rc = err_set(err, HVD_E_IO, "hvd-elastic cannot be started: %s", strerror(errno));
    mem_free(at);
    if (rc)
        return rc;
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the driver too, which ends the job without grace */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return err_set(err, HVD_E_IO,
                       "job %s had no driver, and could not be taken over to end it; the lines "
                       "above say why",
                       job);
    if (request->options.json)
        printf("{\"ok\":true,\"text\":\"the job had no driver; it was taken over and ended\"}\n");
    else
        puts("the job had no driver; it was taken over and ended");
    return 0;
}

const struct cli_verb cli_stop = {
    .name = "stop",
    .words = "",
    .about = "Ends the job: all workers and agents, then the driver, with code 143. A job with "
             "--checkpoint-dir trains on until a checkpoint is complete; a second stop ends it "
             "without.",
    .read = stop_read,
    .answer_offline = stop_answer_offline,
    .ends_driver = true,
};
