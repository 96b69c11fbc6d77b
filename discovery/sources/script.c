/*
 * script.c: hosts from a program that prints them and ends (--host-discovery-script), run once for
 * each answer. The functions that script.c and watch.c share (program_*) are also here. Invariant:
 * at most one run exists at a time; a question that comes during a run is answered by that run.
 */
#include "base/time.h"
#include "discovery/sources/program_internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks the path of a source's program, and prepares the command that runs it. The program is not
 * started yet. */
int program_open(struct discoverer *discoverer, struct hvd_err *err)
{
    struct program *program = discoverer->state;
    int rc = discover_take_path(discoverer, err);
    const char *path = discoverer->path;
    struct stat st;

    if (rc)
        return rc;
    if (stat(path, &st) && errno != EACCES)
        return err_set(err, HVD_E_NOTFOUND, "%s: %s; %s", path, strerror(errno),
                       strpbrk(path, " \t") ? "give only the path of a program; a program that "
                                              "needs arguments can be called by a script"
                                            : "give the path of a program that prints the hosts");
    /* If stat failed with EACCES, `st` is not set; then access fails, too. */
    if (access(path, X_OK) || !S_ISREG(st.st_mode))
        return err_set(err, HVD_E_DENIED, "%s: is not an executable file; use chmod +x", path);
    program->discoverer = discoverer;
    program->argv[0] = path;
    program->spec = (struct command_spec){ .argv = program->argv,
                                           .envp = discoverer->config.envp,
                                           .output_max = LIMIT_HOST_TEXT_BYTES,
                                           .limit_us = discoverer->config.limit_us,
                                           .linger_us = TIME_NEVER,
                                           .dies_with_us = SIGKILL };
    script_log_init(&program->log, path);
    return 0;
}

/* Ends the present run of the source's program, if there is one. */
void program_stop(struct discoverer *discoverer)
{
    struct program *program = discoverer->state;

    command_free(program->run);
    program->run = NULL;
}

/* Sets the error for a run that has failed: how the program ended, `remedy`, and the first line of
 * its standard error. COMMAND_FAILED: the run itself could not go on, and end->why is the whole
 * text. */
void program_blame(const struct program *program, const struct command_end *end, const char *remedy,
                   struct hvd_err *err)
{
    char how[COMMAND_HOW_MAX];

    if (end->how == COMMAND_FAILED)
        err_set(err, HVD_E_IO, "%s", end->why);
    else
        err_set(err, HVD_E_IO, "%s: %s; %s", program->argv[0],
                command_how(&program->spec, end, how), remedy);
    discover_quote_stderr(err, end->stderr_tail);
}

/* Called when a run has ended: answers with its hosts, or with the reason why the run failed. */
static void script_ended(void *arg, const struct command_end *end)
{
    struct program *script = arg;
    const char *remedy = "run the program by hand to see why";
    struct hosts hosts;
    struct hvd_err err;
    int rc = HVD_E_IO;

    hosts_init(&hosts);
    /* Only the output of a run that ended well counts: a script that was killed may have printed
     * half of its hosts. */
    if (end->how == COMMAND_EXITED && end->value == 0) {
        rc = discover_read(script->discoverer,
                           (struct span){ buf_text(end->output), end->output->length },
                           end->stderr_tail, &hosts, &err);
    } else {
        if (end->how == COMMAND_TOO_LATE)
            remedy = "make the program faster, or raise --discovery-timeout";
        else if (end->how == COMMAND_TOO_LONG)
            remedy = "write each host once, one a line";
        program_blame(script, end, remedy, &err);
    }
    script_log_run(&script->log, end->stderr_tail, !rc);
    discover_answer(script->discoverer, rc, &hosts, &err);
    program_stop(script->discoverer);
}

/* Runs the program; script_ended answers when the program has ended. If the program cannot be
 * started, the failure is the answer. */
static void script_ask(struct discoverer *discoverer)
{
    static const struct command_ops ops = { .ended = script_ended };
    struct program *script = discoverer->state;
    struct hosts none;
    struct hvd_err err;
    int rc;

    if (script->run)
        return; /* the end of the present run answers this question, too */
    rc = command_run(discoverer->base, &script->spec, &ops, script, &script->run, &err);
    if (!rc)
        return;
    hosts_init(&none);
    discover_answer(discoverer, rc, &none, &err);
}

const struct discover_source discover_script = {
    .option = "host-discovery-script",
    .when_empty = "printed nothing",
    .state_bytes = sizeof(struct program),
    .open = program_open,
    .ask = script_ask,
    .close = program_stop,
};
