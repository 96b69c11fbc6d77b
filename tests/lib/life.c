/*
 * life.c: runs a process that writes to a database and kills it at the k-th change of a file, for
 * every k; then checks what the next process finds there.
 */
#include "tests/lib/life.h"

#include "base/rng.h"
#include "tests/lib/fault_vfs.h"
#include "tests/lib/power.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITES_MAX 100000 /* a life with more points counts as endless */

enum death { KILLED, POWER_LOST, POWER_LOST_IN_PARTS, DEATHS };

static const char *const death_names[DEATHS] = { "killed", "power lost",
                                                 "power lost, some of it written" };

void life_acknowledge(int fd)
{
    if (write(fd, "x", 1) != 1)
        abort();
}

struct plan {
    uint64_t point;
    enum death death;
};

static void die_at(void *arg, uint64_t point, const char *what)
{
    const struct plan *plan = arg;
    static struct rng rng; /* power_fail keeps it */

    (void)what;
    if (point < plan->point)
        return;
    rng_seed(&rng, point);
    fault_vfs_quiet(true); /* undoing changes is no change */
    if (plan->death != KILLED)
        power_fail(plan->death == POWER_LOST_IN_PARTS ? &rng : NULL);
    kill(getpid(), SIGKILL);
}

/* Runs the life once, with the death planned for this point. true: the process has died there. */
static bool dies(const struct life *life, struct plan *plan, size_t *ret_acknowledged)
{
    char acks[LIFE_ACKS_MAX];
    size_t count = 0;
    ssize_t got;
    int fds[2];
    int status;
    pid_t child;

    temp_db_remove();
    if (life->start)
        files_write(temp_db_path, life->start->bytes, life->start->length);
    if (pipe(fds) || (child = fork()) < 0)
        abort();
    if (child == 0) {
        fault_vfs_use();
        fault_vfs_set_hook(die_at, plan);
        if (plan->death != KILLED)
            power_on();
        _exit(life->run(life, fds[1]));
    }
    close(fds[1]);
    while ((got = read(fds[0], acks, sizeof(acks))) > 0)
        count += (size_t)got;
    close(fds[0]);
    if (waitpid(child, &status, 0) != child || (WIFEXITED(status) && WEXITSTATUS(status) != 0)) {
        fprintf(stderr, "%s: the process failed at point %llu (status %d)\n", life->name,
                (unsigned long long)plan->point, status);
        exit(1);
    }
    *ret_acknowledged = count;
    return WIFSIGNALED(status);
}

unsigned life_die_everywhere(const struct life *life)
{
    unsigned died = 0;

    for (int death = 0; death < DEATHS; death++) {
        struct plan plan = { 1, (enum death)death };
        size_t acknowledged;

        for (; dies(life, &plan, &acknowledged); plan.point++, died++) {
            if (!life->holds(life, acknowledged) || plan.point > WRITES_MAX) {
                fprintf(stderr, "%s, %s at point %llu: something was lost (%zu acknowledged): %s\n",
                        life->name, death_names[death], (unsigned long long)plan.point,
                        acknowledged, temp_db_path);
                exit(1);
            }
        }
    }
    printf("%-10s %4u deaths, %zu operations\n", life->name, died, life->operations);
    return died;
}
