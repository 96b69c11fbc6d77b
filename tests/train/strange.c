/*
 * strange: programs that use the library as nobody should, one for each name. Alone, or as a worker
 * beside others; who finds that a call has not done what hvd.h says ends with 9.
 */
#include "tests/train/strange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS   40
#define STRANGE 5 /* the step at which it happens */
#define WRONG   9

static const struct strange *now;
static int64_t step;
static bool happened;

void strange_expect(bool so, const char *what, int line)
{
    if (so)
        return;
    fprintf(stderr, "strange %s: line %d: not so: %s (%s)\n", now->name, line, what,
            hvd_last_error());
    _exit(WRONG);
}

void strange_in_child(void (*call)(void *arg), void *arg)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        call(arg);
        _exit(0); /* a child has not the threads whose memory a leak checker would look for */
    }
    EXPECT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int strange_train(hvd_state *state, void *arg)
{
    int rc = 0;

    (void)arg;
    while (!rc && step < (now->steps ? now->steps : STEPS)) {
        int64_t sum = 1;

        if (now->step && step >= STRANGE && !happened) {
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
        rc = hvd_elastic_run(state, strange_train, NULL);
        EXPECT(rc == now->run || (rc == HVD_DONE && now->run == 0));
    }
    if (now->after)
        now->after(state);
    hvd_state_free(state);
    if (now->says && !strstr(hvd_last_error(), now->says))
        fprintf(stderr, "strange %s: it should say '%s'\n", now->name, now->says);
    EXPECT(!now->says || strstr(hvd_last_error(), now->says));
    if (rc < 0)
        printf("strange %s: %s\n", now->name, hvd_last_error());
    hvd_shutdown();
    EXPECT(hvd_rank() == HVD_E_STATE);
}

static const struct strange *find(const struct strange *all, const char *name)
{
    for (; all->name; all++)
        if (strcmp(all->name, name) == 0)
            return all;
    return NULL;
}

static int show(const struct strange *all)
{
    for (; all->name; all++)
        printf("%-20s %s\n", all->name, all->what);
    return 0;
}

/* strange NAME [FILE]: with a FILE only who creates it is strange, the others are plain. */
int main(int argc, char **argv)
{
    static struct strange plain = { .name = "plain", .what = "" };

    if (argc < 2)
        return show(strange_calls) + show(strange_worlds);
    now = find(strange_calls, argv[1]);
    if (!now)
        now = find(strange_worlds, argv[1]);
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
