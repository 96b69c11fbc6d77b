/*
 * bare_faults.c: the faults that bare_trainer has by its options: memory that it holds, orphans,
 * ignored signals, floods of output, hangs and exits at a step.
 */
#include "tests/workers/bare_faults.h"

#include "base/limits.h"
#include "base/mem.h"
#include "worker/io/agent_link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORPHAN_LIVES_S 600 /* the orphan ends after this time, even if the test has failed */
#define LINE_BYTES     80

static char *memory;
static int held_fd = -1;

static int take_memory(uint64_t mib, struct hvd_err *err)
{
    size_t bytes = (size_t)mib << 20;

    if (!mib)
        return 0;
    memory = mem_alloc(bytes);
    if (!memory)
        return err_set(err, HVD_E_NOMEM, "no %" PRIu64 " MiB to be had", mib);
    memset(memory, 0x5a, bytes);
    return 0;
}

/* Forks twice, so that the grandchild is an orphan. It keeps standard output and standard error. */
static int leave_orphan(struct hvd_err *err)
{
    pid_t pid = fork();

    if (pid < 0)
        return err_set(err, HVD_E_IO, "fork: %s", strerror(errno));
    if (pid > 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        return 0;
    }
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    signal(SIGTERM, SIG_IGN);
    alarm(ORPHAN_LIVES_S);
    for (;;)
        pause();
}

int bare_faults_begin(const struct bare_trainer_options *options, struct hvd_err *err)
{
    int rc = take_memory(options->memory_mib, err);

    if (options->ignore_term)
        signal(SIGTERM, SIG_IGN);
    if (!rc && options->daemon)
        rc = leave_orphan(err);
    if (!rc && options->hold)
        rc = agent_link_connect(options->hold, LIMIT_GREETING_US, &held_fd, err);
    if (options->close_stdout) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
    }
    return rc;
}

void bare_faults_end(void)
{
    mem_free(memory);
    memory = NULL;
    if (held_fd >= 0)
        close(held_fd);
    held_fd = -1;
}

/* Prints lines of a fixed length. Blocks while no process reads. */
static void print(uint64_t bytes)
{
    static const char line[LINE_BYTES + 1] =
        "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012345678901\n";

    while (bytes) {
        size_t length = bytes < LINE_BYTES - 1 ? (size_t)bytes : LINE_BYTES - 1;
        ssize_t written = write(STDOUT_FILENO, line + (LINE_BYTES - 1 - length), length);

        if (written < 0 && errno != EINTR)
            return;
        if (written > 0)
            bytes -= (uint64_t)written;
    }
}

bool bare_faults_step(const struct bare_trainer_options *options, uint64_t steps)
{
    print(options->print_bytes);
    if (!options->misbehaves)
        return true;
    if (options->exit_at && steps >= options->exit_at)
        _exit((int)options->exit_code);
    if (options->freeze_at && steps >= options->freeze_at) {
        for (;;)
            pause();
    }
    return !options->hang_at || steps < options->hang_at;
}

void bare_faults_say(const struct bare_trainer_options *options, uint64_t incarnation,
                     uint64_t round, const struct place *place)
{
    char line[LINE_BYTES];
    int length;
    int fd;

    if (!options->say)
        return;
    fd = open(options->say, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    length = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 " %u %u\n", incarnation, round,
                      place->rank, place->size);
    while (write(fd, line, (size_t)length) < 0 && errno == EINTR)
        continue;
    close(fd);
}
