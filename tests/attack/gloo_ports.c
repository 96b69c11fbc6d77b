/*
 * gloo_ports.c: a stranger at the ports that Gloo opens (--cpu-operations gloo), which ask for no
 * proof. The stranger dials them before the members do, and says nothing, or rubbish. The harm that
 * this attack looks for: a member takes bytes that no member has sent, or waits for ever.
 *
 * The stranger keeps members apart, and Gloo may even end their process: that is not prevented, as
 * Gloo is for the loopback, and for networks without strangers (SECURITY.md). So each trial is a
 * process of its own, and the program says how the trials have ended.
 */
#include "base/mem.h"
#include "tests/lib/gloo_here.h"
#include "tests/lib/link_team.h"
#include "tests/lib/loopback.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIALS     4 /* of each kind */
#define BYTES      ((size_t)100 * 1000)
#define RUBBISH    256
#define CONNECT_US ((int64_t)2 * 1000 * 1000)
#define HANGS_S    180

enum stranger { ABSENT, SILENT, SPEAKS, STRANGERS };
enum { ENDED_RIGHT, ENDED_BY_ERROR, ENDED_WRONG, ENDED_BROKEN };

static bool wrong[2];

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    _exit(ENDED_BROKEN);
}

/* Connects, and exchanges a message. A failure ends the round for both, as the members' control
 * connections do. */
static void act_exchange(struct team *team, uint32_t rank)
{
    uint8_t *out = mem_alloc(BYTES), *in = mem_zalloc(BYTES);
    struct link_request *send, *receive;
    struct link *link = team->links[rank];
    int rc;

    must(out && in, "memory");
    link_fill(out, BYTES, rank, 1 - rank);
    link->ops->enter(link);
    team_act_connect(team, rank);
    rc = team->rc[rank];
    if (!rc)
        rc = link_post_receive(link, 1 - rank, 1, in, BYTES, &receive);
    if (!rc && (rc = link_post_send(link, 1 - rank, 1, out, BYTES, &send)))
        link->ops->drop(link, receive);
    if (!rc && (rc = link_await(link, receive)))
        link->ops->drop(link, send);
    else if (!rc)
        rc = link_await(link, send);
    if (rc)
        team_cancel(team);
    link->ops->leave(link);
    wrong[rank] = !rc && !link_is_filled(in, BYTES, 1 - rank, rank);
    team->rc[rank] = rc;
    mem_free(out);
    mem_free(in);
}

/* One trial, in a process of its own. */
NORETURN static void run_trial(enum stranger stranger)
{
    static struct team team;
    uint8_t rubbish[RUBBISH];

    alarm(HANGS_S);
    must(gloo_here(), "a build with Gloo");
    must(!team_open(&team, LINK_GLOO, loopback_own(), 2), "links");
    memset(rubbish, 0xa5, sizeof(rubbish));
    for (uint32_t rank = 0; rank < 2 && stranger != ABSENT; rank++) {
        struct sockaddr_in at; /* an address of Gloo's begins with it */
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        memcpy(&at, team.told[rank][1 - rank].bytes, sizeof(at));
        must(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof(at)), "Gloo's port");
        if (stranger == SPEAKS)
            (void)!send(fd, rubbish, sizeof(rubbish), MSG_NOSIGNAL);
        team.timeout_us[rank] = CONNECT_US;
    }
    team_run(&team, act_exchange);
    _exit(wrong[0] || wrong[1]       ? ENDED_WRONG
          : team.rc[0] || team.rc[1] ? ENDED_BY_ERROR
                                     : ENDED_RIGHT);
}

int main(void)
{
    static const char *const names[] = { "without a stranger", "behind a silent stranger",
                                         "behind a stranger with rubbish" };
    const struct rlimit no_core = { 0, 0 };
    bool harm = false;

    (void)setrlimit(RLIMIT_CORE, &no_core);
    for (enum stranger stranger = ABSENT; stranger < STRANGERS; stranger++) {
        unsigned ends[ENDED_BROKEN + 1] = { 0 }, killed = 0;

        for (int i = 0; i < TRIALS; i++) {
            int status = 0;
            pid_t pid = fork();

            if (pid == 0)
                run_trial(stranger);
            must(pid > 0 && waitpid(pid, &status, 0) == pid, "a process");
            if (WIFEXITED(status) && WEXITSTATUS(status) <= ENDED_BROKEN)
                ends[WEXITSTATUS(status)]++;
            else
                killed++;
            harm = harm || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
        }
        harm = harm || ends[ENDED_WRONG] || ends[ENDED_BROKEN] ||
               (stranger == ABSENT && ends[ENDED_RIGHT] != TRIALS);
        printf("gloo_ports: %d links %s: %u right, %u ended with an error, %u times Gloo ended the "
               "process, %u with wrong bytes\n",
               TRIALS, names[stranger], ends[ENDED_RIGHT], ends[ENDED_BY_ERROR], killed,
               ends[ENDED_WRONG]);
        (void)fflush(stdout); /* a fork copies what is not written yet */
    }
    puts(harm ? "gloo_ports: HARM" : "gloo_ports: no byte wrong, no member waits for ever");
    return harm ? 1 : 0;
}
