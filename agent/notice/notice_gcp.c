/*
 * notice_gcp.c: asks the metadata server of Google's cloud whether the instance is being preempted,
 * and whether a maintenance will terminate it. Called through the table of notice.c. Invariant: a
 * request that waits for a change ends after GCP_HANG_S, so a server that has gone silent is asked
 * again in time.
 */
#include "agent/notice/notice_internal.h"
#include "base/time.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define GCP_HANG_S   10            /* how long the server may wait for a change before it answers */
#define GCP_LIMIT_US (15 * TIME_S) /* time limit of a request: GCP_HANG_S and a little more */
#define GCP_PAUSE_US TIME_S
#define GCP_LEFT_US  (30 * TIME_S) /* time from a preemption until the machine is off */

/* Gets the value at the path, its first line. The first request is answered at once; a later one
 * has the tag (etag) of the value that is known, and is answered when the value has changed, or
 * after GCP_HANG_S. After a failure there is no tag, so the next request is answered at once again.
 * *ret_value is borrowed from ret_answer. */
static int gcp_get(struct notice_watch *watch, const char *path, struct notice_answer *ret_answer,
                   struct span *ret_value, struct hvd_err *err)
{
    char url[512];
    int rc;

    if (*watch->etag)
        snprintf(url, sizeof(url), "%s?wait_for_change=true&timeout_sec=%d&last_etag=%s", path,
                 GCP_HANG_S, watch->etag);
    else
        snprintf(url, sizeof(url), "%s", path);
    rc = notice_ask(watch,
                    &(struct notice_request){ .method = HTTP_GET,
                                              .path = url,
                                              .header = "Metadata-Flavor: Google",
                                              .limit_us = GCP_LIMIT_US },
                    ret_answer, err);
    watch->etag[0] = '\0';
    if (rc)
        return rc;
    if (ret_answer->status != 200)
        return notice_odd_status(ret_answer, path, err);
    if (!ret_answer->is_google)
        return err_set(err, HVD_E_PROTO,
                       "%s: the answer does not come from Google's metadata server; check "
                       "GCE_METADATA_HOST",
                       path);
    /* the tag becomes a part of the next URL: one with other characters is not used */
    for (const char *at = ret_answer->etag; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_')
            ret_answer->etag[0] = '\0';
    snprintf(watch->etag, sizeof(watch->etag), "%s", ret_answer->etag);
    *ret_value = span_trim((struct span){ buf_text(&ret_answer->body), ret_answer->body.length });
    *ret_value = span_trim((struct span){ ret_value->at, strcspn(ret_value->at, "\n") });
    return 0;
}

/* One look: the value TRUE says that the machine will be off in GCP_LEFT_US. */
static int gcp_look_preempted(struct notice_watch *watch, struct notice_said *ret_said,
                              struct hvd_err *err)
{
    struct notice_answer answer;
    struct span value = { NULL, 0 };
    int rc = gcp_get(watch, "/computeMetadata/v1/instance/preempted", &answer, &value, err);

    if (!rc && span_is(value, "TRUE"))
        notice_say_left(watch, GCP_LEFT_US, "the instance is being preempted", ret_said);
    else if (!rc && !span_is(value, "FALSE"))
        rc = err_set(err, HVD_E_PROTO,
                     "instance/preempted is \"%.*s\", which is neither TRUE nor FALSE",
                     (int)(value.length < 32 ? value.length : 32), value.at);
    buf_release(&answer.body);
    return rc;
}

/* One look at the maintenance of the host of this machine. A maintenance that migrates the machine
 * stops it for some seconds, less than a lease, so no notice is given. A maintenance that
 * terminates the machine comes within an hour, at a time that is not known (TIME_NEVER): the
 * workers leave as soon as other hosts have slots for them. SIGTERM follows when the machine is
 * shut down. */
static int gcp_look_maintenance(struct notice_watch *watch, struct notice_said *ret_said,
                                struct hvd_err *err)
{
    struct notice_answer answer;
    struct span value = { NULL, 0 };
    int rc = gcp_get(watch, "/computeMetadata/v1/instance/maintenance-event", &answer, &value, err);

    if (!rc && span_is(value, "TERMINATE_ON_HOST_MAINTENANCE"))
        notice_say_left(watch, TIME_NEVER, "maintenance of its host will terminate the instance",
                        ret_said);
    else if (!rc && !span_is(value, "NONE") && !span_is(value, "MIGRATE_ON_HOST_MAINTENANCE"))
        rc = err_set(err, HVD_E_PROTO,
                     "instance/maintenance-event is \"%.*s\", which this agent does not know",
                     (int)(value.length < 64 ? value.length : 64), value.at);
    buf_release(&answer.body);
    return rc;
}

const struct notice_giver notice_gcp_preempted = {
    .name = "Google Cloud",
    .bit = PREEMPTION_GCP,
    .pause_us = GCP_PAUSE_US,
    .dmi_file = "product_name",
    .dmi_text = "Google Compute Engine",
    .server_env = "GCE_METADATA_HOST",
    .look = gcp_look_preempted,
};

const struct notice_giver notice_gcp_maintenance = {
    .name = "Google Cloud",
    .bit = PREEMPTION_GCP,
    .pause_us = GCP_PAUSE_US,
    .dmi_file = "product_name",
    .dmi_text = "Google Compute Engine",
    .server_env = "GCE_METADATA_HOST",
    .look = gcp_look_maintenance,
};
