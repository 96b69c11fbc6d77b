/*
 * api_misuse: programs that use the library wrongly, one case for each name. A case runs alone, or
 * as a worker beside others. A worker ends with 9 when a call has not done what hvd.h says.
 */
#include "tests/workers/api_misuse.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS       40
#define MISUSE_STEP 5 /* the misuse happens in this step */
#define WRONG       9

static const struct api_misuse *now;
static int64_t step;
static bool happened;

void api_misuse_expect(bool so, const char *what, int line)
{
    if (so)
        return;
    fprintf(stderr, "api_misuse %s: line %d: not so: %s (%s)\n", now->name, line, what,
            hvd_last_error());
    _exit(WRONG);
}

void api_misuse_in_child(void (*call)(void *arg), void *arg)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        call(arg);
        /* without exit handlers: the child does not have the threads whose memory a leak checker
         * would search */
        _exit(0);
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int api_misuse_train(hvd_state *state, void *arg)
{
    int rc = 0;

    (void)arg;
    while (!rc && step < (now->steps ? now->steps : STEPS)) {
        int64_t sum = 1;

        if (now->step && step >= MISUSE_STEP && !happened) {
            happened = true;
            rc = now->step(state);
        }
        if (!rc)
            rc = hvd_allreduce(&sum, &sum, 1, HVD_INT64, HVD_SUM);
        if (!rc && sum != hvd_size())
            return HVD_E_CORRUPT;
        if (!rc) {
            step++;
            rc = hvd_state_commit(state);
        }
    }
    return rc;
}

static int on_reset(hvd_state *state, void *arg)
{
    (void)arg;
    return now->reset ? now->reset(state) : 0;
}

/* Runs the program with the callbacks of the case, and checks what hvd_init and the run return. */
static void live(void)
{
    hvd_state *state = NULL;
    int rc;

    if (now->before)
        now->before();
    rc = hvd_init();
    EXPECT(rc == now->init);
    if (!rc) {
        state = hvd_state_create();
        EXPECT(state && (now->empty || hvd_state_add_scalar(state, "step", &step, HVD_INT64) == 0));
        EXPECT(hvd_state_on_reset(state, on_reset, NULL) == 0);
        if (now->add)
            now->add(state);
        if (now->ready)
            now->ready(state);
        rc = hvd_elastic_run(state, api_misuse_train, NULL);
        EXPECT(rc == now->run || (rc == HVD_DONE && now->run == 0));
    }
    if (now->after)
        now->after(state);
    hvd_state_free(state);
    if (now->says && !strstr(hvd_last_error(), now->says))
        fprintf(stderr, "api_misuse %s: it should say '%s'\n", now->name, now->says);
    EXPECT(!now->says || strstr(hvd_last_error(), now->says));
    if (rc < 0)
        printf("api_misuse %s: %s\n", now->name, hvd_last_error());
    hvd_shutdown();
    EXPECT(hvd_rank() == HVD_E_STATE);
}

static const struct api_misuse *find(const struct api_misuse *all, const char *name)
{
    for (; all->name; all++)
        if (strcmp(all->name, name) == 0)
            return all;
    return NULL;
}

static int show(const struct api_misuse *all)
{
    for (; all->name; all++)
        printf("%-20s %s\n", all->name, all->what);
    return 0;
}

/* Usage: api_misuse NAME [FILE]. With FILE, only the worker that creates the file runs the case
 * NAME. */
int main(int argc, char **argv)
{
    static struct api_misuse plain = { .name = "plain", .what = "" };

    if (argc < 2)
        return show(api_misuse_calls) + show(api_misuse_worlds);
    now = find(api_misuse_calls, argv[1]);
    if (!now)
        now = find(api_misuse_worlds, argv[1]);
    if (!now)
        return 2;
    if (argc > 2) {
        FILE *file = fopen(argv[2], "wxe");

        plain.add = now->add;
        plain.steps = now->steps;
        plain.empty = now->empty;
        if (!file)
            now = &plain;
        else
            fclose(file);
    }
    live();
    return 0;
}
