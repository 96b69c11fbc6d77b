/* The stand-in of NCCL between processes; some of them are killed. */
#include "tests/lib/fake_gpu.h"
#include "tests/lib/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMBERS 3
#define WORD    300

struct process {
    pid_t pid; /* 0: no process */
    FILE *to, *from;
};

static bool start(struct process *process, const char *const *argv, const char *host_id)
{
    int in[2] = { -1, -1 };
    int out[2] = { -1, -1 };

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return false;
    fflush(NULL);
    process->pid = fork();
    if (process->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        if (host_id)
            setenv("NCCL_HOSTID", host_id, 1);
        execv(argv[0], (char **)(uintptr_t)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    process->to = fdopen(in[1], "w");
    process->from = fdopen(out[0], "r");
    return process->pid > 0 && process->to && process->from;
}

static bool start_member(struct process *process, const char *id, int rank, int device,
                         const char *host_id)
{
    char rank_text[16];
    char device_text[16];
    const char *argv[] = { STANDIN_MEMBER, "join", id, rank_text, "3", device_text, NULL };

    snprintf(rank_text, sizeof(rank_text), "%d", rank);
    snprintf(device_text, sizeof(device_text), "%d", device);
    return start(process, argv, host_id);
}

static bool start_maker(struct process *process, char id[WORD])
{
    static const char *const argv[] = { STANDIN_MEMBER, "make", NULL };

    if (!start(process, argv, NULL) || !fgets(id, WORD, process->from))
        return false;
    id[strcspn(id, "\n")] = '\0';
    return true;
}

static bool says(struct process *process, const char *word)
{
    char line[WORD] = "";

    if (!fgets(line, sizeof(line), process->from))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, word) == 0;
}

static void tell(struct process *process)
{
    fputs("go\n", process->to);
    fflush(process->to);
}

/* Waits until the process has ended, and returns its status as waitpid gives it; -1: there is no
 * process. kill_it: the process is killed first; otherwise it ends because its input is closed. */
static int end(struct process *process, bool kill_it)
{
    int status = -1;

    if (process->pid <= 0)
        return status;
    if (kill_it)
        kill(process->pid, SIGKILL);
    if (process->to)
        fclose(process->to);
    waitpid(process->pid, &status, 0);
    if (process->from)
        fclose(process->from);
    process->pid = 0;
    return status;
}

static void end_all(struct process *processes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)end(&processes[i], true);
}

/* ---- the cases: the last process makes the id, and the other processes are members ---- */

#define MAKER MEMBERS

TEST_FLAGS(processes_sum, TEST_NO_TORTURE)
{
    struct process all[MEMBERS + 1] = { { .pid = 0 } };
    char id[WORD] = "";

    fake_gpu_use(MEMBERS);
    CHECK(t, start_maker(&all[MAKER], id));
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, start_member(&all[i], id, i, i, NULL));
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, says(&all[i], "ready"));
    CHECK_INT(t, end(&all[MAKER], false), ==, 0); /* the members do not need the maker any more */
    for (int i = 0; i < MEMBERS; i++)
        tell(&all[i]);
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, says(&all[i], "summed"));
out:
    end_all(all, ARRAY_SIZE(all));
}

TEST_FLAGS(a_killed_member_is_awaited, TEST_NO_TORTURE)
{
    struct process all[MEMBERS + 1] = { { .pid = 0 } };
    char id[WORD] = "";

    fake_gpu_use(MEMBERS);
    CHECK(t, start_maker(&all[MAKER], id));
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, start_member(&all[i], id, i, i, NULL));
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, says(&all[i], "ready"));
    for (int i = 0; i < MEMBERS; i++)
        tell(&all[i]);
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, says(&all[i], "summed"));
    CHECK(t, WIFSIGNALED(end(&all[1], true)));
    for (int i = 0; i < MEMBERS; i += 2)
        tell(&all[i]);
    for (int i = 0; i < MEMBERS; i += 2)
        CHECK(t, says(&all[i], "waiting"));
    for (int i = 0; i < MEMBERS; i += 2) {
        tell(&all[i]);
        CHECK(t, says(&all[i], "revoked"));
        tell(&all[i]);
        CHECK_INT(t, end(&all[i], false), ==, 0);
    }
out:
    end_all(all, ARRAY_SIZE(all));
}

TEST_FLAGS(an_id_is_gone_with_its_maker, TEST_NO_TORTURE)
{
    struct process all[2] = { { .pid = 0 } };
    char id[WORD] = "";

    fake_gpu_use(MEMBERS);
    CHECK(t, start_maker(&all[1], id));
    CHECK(t, WIFSIGNALED(end(&all[1], true)));
    CHECK(t, start_member(&all[0], id, 0, 0, NULL));
    CHECK(t, says(&all[0], "2"));
out:
    end_all(all, ARRAY_SIZE(all));
}

static void members_share_a_device(struct test *t, const char *const *host_ids, const char *outcome)
{
    struct process all[MEMBERS + 1] = { { .pid = 0 } };
    char id[WORD] = "";

    fake_gpu_use(1);
    CHECK(t, start_maker(&all[MAKER], id));
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, start_member(&all[i], id, i, 0, host_ids[i]));
    for (int i = 0; i < MEMBERS; i++)
        CHECK(t, says(&all[i], outcome));
out:
    end_all(all, ARRAY_SIZE(all));
}

TEST_FLAGS(a_device_is_for_one_member, TEST_NO_TORTURE)
{
    static const char *const none[MEMBERS] = { NULL };
    static const char *const two_same[MEMBERS] = { "a", "b", "a" };

    members_share_a_device(t, none, "5");
    if (!t->failed)
        members_share_a_device(t, two_same, "5");
}

TEST_FLAGS(hosts_are_told_apart, TEST_NO_TORTURE)
{
    static const char *const different[MEMBERS] = { "a", "b", "c" };

    members_share_a_device(t, different, "ready");
}
