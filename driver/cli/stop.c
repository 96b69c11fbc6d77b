/*
 * stop.c: the verb "stop": ends the job. With --wait the driver answers at once and keeps the
 * connection open until the driver ends. If the job has no driver, this program is started once
 * more as a driver that takes the job over only to end it (--resume JOB --stop). So all rules of a
 * takeover apply, and a former driver that was suspended and runs again finds that it has been
 * replaced.
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

/* Makes the request: --wait keeps the connection open until the driver ends; without --checkpoint
 * the argument "now" asks for an end without a checkpoint. */
static int stop_read(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    request->ask.follow = request->options.wait;
    if (!request->options.checkpoint)
        cli_add_arg(request, "now");
    return 0;
}

/* Sets ret_job to the name of the job in the file `path`, or, if path is NULL, of the job in etcd.
 * HVD_E_STATE: the job has ended. HVD_E_EXISTS: its driver lives on another machine. */
static int stop_find_job(const struct cli_request *request, const struct cli_place *place,
                         const char *path, char ret_job[JOB_NAME_MAX + 1], struct hvd_err *err)
{
    struct table_facts shown;
    struct core_view view;
    struct job_facts facts;
    struct store *store = NULL;
    int rc;

    if (!path) {
        core_view_init(&view);
        rc = request->orphan ? request->orphan(place, &view, &shown, err) : HVD_E_NOTFOUND;
        if (!rc)
            snprintf(ret_job, JOB_NAME_MAX + 1, "%s", shown.job);
        core_view_release(&view);
        return rc;
    }
    rc = job_file_look(path, &store, err);
    if (!rc)
        rc = store_facts(store, &facts, err);
    store_close(store);
    if (rc)
        return rc;
    explicit_bzero(facts.key, sizeof(facts.key));
    if (facts.ended)
        return err_set(err, HVD_E_STATE, "job %s has ended: %s", facts.job, facts.text);
    memcpy(ret_job, facts.job, sizeof(facts.job));
    return 0;
}

/* Ends a job that has no driver, by a child process that becomes its driver, and waits until that
 * driver has ended, also with --no-wait. The driver says on standard error which hosts it could not
 * reach. It takes at most twice --kill-grace and one --lease, and the time for a checkpoint.
 * `words` and `fixed` are the words of the child's command line. */
static int stop_answer_offline(const struct cli_request *request, const struct cli_place *place,
                               struct hvd_err *err)
{
    const struct cli_options *options = &request->options;
    char *folder = place->folder ? mem_strdup(place->folder) : NULL;
    char *path = folder ? job_path_join(folder, "job.db") : NULL;
    bool in_file = path && !access(path, F_OK);
    char job[JOB_NAME_MAX + 1];
    char words[][24] = { "--state-dir",           "--store",         "--store-ca",
                         "--store-cert",          "--store-key",     "--store-user",
                         "--store-password-file", "--store-insecure" };
    char fixed[][12] = { "hvd-elastic", "--resume", "--log-level", "warning",
                         "--stop",      "now",      "checkpoint" };
    char *const values[] = { folder,
                             in_file ? NULL : options->store,
                             options->store_ca,
                             options->store_cert,
                             options->store_key,
                             options->store_user,
                             options->store_password_file };
    char *argv[2 * ARRAY_SIZE(words) + ARRAY_SIZE(fixed)] = {
        fixed[0], fixed[1], job, fixed[2], fixed[3], fixed[4], fixed[options->checkpoint ? 6 : 5]
    };
    int status = 0, argc = 7;
    pid_t pid;
    int rc;

    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        if (values[i]) {
            argv[argc++] = words[i];
            argv[argc++] = values[i];
        }
    if (options->store_insecure)
        argv[argc++] = words[7];
    if (place->folder && !path)
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    else
        rc = stop_find_job(request, place, in_file ? path : NULL, job, err);
    if (!rc && (errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ)))
        rc = err_set(
            err, HVD_E_IO,
            "hvd-elastic cannot be started: %s; raise ulimit -u, or free memory on this host",
            strerror(errno));
    mem_free(path);
    mem_free(folder);
    if (rc)
        return rc;
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the child too, which then ends the job without grace,
                                so this process goes on waiting */
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
             "--checkpoint-dir trains on until a checkpoint is complete; a second stop ends the "
             "job without a checkpoint.",
    .read = stop_read,
    .answer_offline = stop_answer_offline,
    .ends_driver = true,
};
