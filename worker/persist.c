/*
 * persist.c: hvd_checkpoint: the program asks for a checkpoint of its newest commit. The request
 * goes to the driver (PROTOCOL.md, PERSIST), and only a thread that calls hvd_wait waits for the
 * answer.
 *
 * Called by the program from train. Invariant: each request ends: by an answer of the driver, by
 * the end of its round, of the run or of the agent.
 */
#include "worker/persist.h"
#include "proto/commit.h"
#include "worker/fail.h"
#include "worker/state_internal.h"

/* Makes a request for the newest commit of this round (number 0 of the round: the state with which
 * it began). The driver's answer ends the request, except in a program that runs alone: its request
 * ends at once, as there is no checkpoint directory. */
int hvd_checkpoint(hvd_state *state, hvd_request **ret_request)
{
    struct session_event event = { .kind = SESSION_PERSIST };
    struct worker *worker;
    int rc = state_goes_on(state, "hvd_checkpoint");

    if (rc)
        return rc;
    if (!ret_request)
        return fail(
            HVD_E_INVAL,
            "hvd_checkpoint: ret_request is NULL; pass the address of a hvd_request pointer");
    worker = state->worker;
    event.commit = COMMIT_FIRST_OF(state->round) | state->commits;
    rc = requests_persist(worker->rounds, event.commit, ret_request, fail_err());
    if (rc)
        return rc;
    if (worker_is_alone(worker)) {
        requests_persisted(worker->rounds, event.commit, HVD_E_STATE,
                           "the process was started without hvd-elastic, so there is no directory "
                           "for checkpoints; use hvd_state_save, or start it with hvd-elastic "
                           "--checkpoint-dir DIR");
        return 0;
    }
    session_thread_say(worker->session, &event);
    return 0;
}
