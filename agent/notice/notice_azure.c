/*
 * notice_azure.c: the Scheduled Events of Microsoft's cloud: preemption, termination, reboot and
 * redeployment of this machine. Called through the table of notice.c. Invariant: an event counts
 * only if it names this machine, because each machine of a group sees the events of all; and it is
 * acknowledged only after the workers have left.
 */
#include "agent/notice/notice_internal.h"
#include "base/time.h"
#include "state/checkpoint/json_text.h"

#include <stdio.h>
#include <string.h>

/* one look a second, as the service recommends: a preemption comes with 30 seconds of notice */
#define AZURE_PAUSE_US TIME_S
#define AZURE_LIMIT_US (5 * TIME_S)
#define AZURE_EVENTS   "/metadata/scheduledevents?api-version=2020-07-01"
#define AZURE_NAME     "/metadata/instance/compute/name?api-version=2021-02-01&format=text"

/* Sends a request to the service: a POST with `body`, or a GET if `body` is NULL. */
static int azure_ask(struct notice_watch *watch, const char *path, const char *body,
                     struct notice_answer *ret_answer, struct hvd_err *err)
{
    int rc = notice_ask(watch,
                        &(struct notice_request){ .method = body ? HTTP_POST : HTTP_GET,
                                                  .path = path,
                                                  .header = "Metadata: true",
                                                  .body = body,
                                                  .limit_us = AZURE_LIMIT_US },
                        ret_answer, err);

    return !rc && ret_answer->status != 200 ? notice_odd_status(ret_answer, path, err) : rc;
}

/* One look at Azure: learns the name of this machine, once, and looks for an event that names this
 * machine. An event that has started says no moment, so the shortest time (NOTICE_LEAST_US) is
 * left. */
static int azure_look(struct notice_watch *watch, struct notice_said *ret_said, struct hvd_err *err)
{
    struct notice_event event = { .id = "" };
    struct notice_answer answer;
    char what[NOTICE_TEXT_MAX];
    struct span name;
    int rc = 0;

    if (!*watch->machine) {
        rc = azure_ask(watch, AZURE_NAME, NULL, &answer, err);
        name = span_trim((struct span){ buf_text(&answer.body), answer.body.length });
        if (!rc && (!name.length || name.length >= sizeof(watch->machine) ||
                    !text_is_clean(name.at, name.length)))
            rc = err_set(err, HVD_E_PROTO,
                         "the name of this machine is empty, too long, or not plain text");
        if (!rc) {
            memcpy(watch->machine, name.at, name.length);
            watch->machine[name.length] = '\0';
        }
        buf_release(&answer.body);
    }
    if (rc)
        return rc;
    rc = azure_ask(watch, AZURE_EVENTS, NULL, &answer, err);
    if (!rc)
        rc = notice_read_events((struct span){ buf_text(&answer.body), answer.body.length },
                                watch->machine, &event, err);
    if (!rc && *event.id) {
        snprintf(what, sizeof(what), "%s, event %s%s", event.type, event.id,
                 event.started ? ", which has started" : "");
        memcpy(watch->event, event.id, sizeof(watch->event));
        if (event.started)
            notice_say_left(watch, NOTICE_LEAST_US, what, ret_said);
        else
            notice_say(watch, &answer, event.at_us, what, ret_said);
    }
    buf_release(&answer.body);
    return rc;
}

/* Called when no worker runs on this host any more: tells the service that the event of the last
 * notice may start now. */
static int azure_empty(struct notice_watch *watch, struct hvd_err *err)
{
    struct notice_answer answer;
    struct buf body;
    int rc;

    buf_init(&body, LIMIT_NOTICE_BYTES);
    rc = buf_append_text(&body, "{\"StartRequests\": [{\"EventId\": ");
    rc = rc ? rc : json_text_quote(&body, watch->event);
    rc = rc ? rc : buf_append_text(&body, "}]}");
    if (rc) {
        rc = err_set(err, rc, "no memory for the acknowledgement; free memory on this host");
    } else {
        rc = azure_ask(watch, AZURE_EVENTS, buf_text(&body), &answer, err);
        buf_release(&answer.body);
    }
    buf_release(&body);
    return rc;
}

const struct notice_giver notice_azure = {
    .name = "Azure",
    .bit = PREEMPTION_AZURE,
    .pause_us = AZURE_PAUSE_US,
    .dmi_file = "chassis_asset_tag",
    .dmi_text = "7783-7084-3265-9085-8269-3286-77",
    .server_env = "HVD_AZURE_METADATA",
    .look = azure_look,
    .empty = azure_empty,
};
