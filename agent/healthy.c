/*
 * healthy.c: asks the agents of this user on this host how they are, one after the other, and
 * prints the answers. Called by main.c for --healthy. Invariant: the time limit of each answer
 * bounds the whole, so that a probe ends although agents hang.
 */
#include "agent/healthy.h"

#include "agent/io/ask_agent.h"
#include "agent/processes/agent_find.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* `asked` counts the processes that were there, `bad` those of them that gave no good answer. */
int healthy_run(void)
{
    static struct agent_names names;
    struct event_base *base = event_base_new();
    size_t asked = 0, bad = 0;

    if (!base) {
        fprintf(stderr, "hvd-agent: no memory for an event loop; free memory on this host\n");
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN);
    agent_find(&names);
    for (size_t i = 0; i < names.count; i++) {
        char text[ERR_TEXT_MAX];
        struct hvd_err err = { 0 };
        int rc = ask_agent_health(base, names.items[i], text, &err);

        /* HVD_E_LOST: no process listens on this socket. Its process has just ended, or it runs on
         * another machine that shares the folder of the sockets. Neither is counted. */
        asked += rc != HVD_E_LOST;
        bad += rc && rc != HVD_E_LOST;
        if (!rc)
            printf("%s\n", text);
        else if (rc != HVD_E_LOST)
            fprintf(stderr, "hvd-agent: %s: %s\n", names.items[i], err.text);
    }
    event_base_free(base);
    libevent_global_shutdown();
    if (!asked)
        fprintf(stderr, "hvd-agent: no agent and no hvd-agent --join of this user runs on this "
                        "host; start one, or look at the log of the one that has ended\n");
    return asked && !bad ? EXIT_SUCCESS : EXIT_FAILURE;
}
