/*
 * notice_aws.c: the metadata service of Amazon's cloud (IMDSv2): the interruption of a spot
 * instance, the rebalance recommendation before it, and the state that an auto-scaling group wants.
 * Called through the table of notice.c. Invariant: only the request for a
 * token goes out without one, and no token goes into a log.
 */
#include "agent/notice/notice_internal.h"
#include "base/time.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

#define AWS_LIMIT_US \
    (2 * TIME_S) /* time limit of a request; a service that is well answers in milliseconds */
#define AWS_TOKEN_S   (6 * 3600)   /* how long a token is valid */
#define AWS_PAUSE_US  (5 * TIME_S) /* as the service asks for */
#define AWS_ACTION    "/latest/meta-data/spot/instance-action"
#define AWS_REBALANCE "/latest/meta-data/events/recommendations/rebalance"
#define AWS_LIFECYCLE "/latest/meta-data/autoscaling/target-lifecycle-state"

/* Asks for one item of the metadata. *ret_there: the item exists; the status 404 says that it does
 * not, which is no error. The status 401 means that the token is not valid any more: the look
 * fails, and the next look gets another token. */
static int aws_get(struct notice_watch *watch, const char *path, struct notice_answer *ret_answer,
                   bool *ret_there, struct hvd_err *err)
{
    char header[sizeof(watch->token) + 32];
    int rc;

    snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %s", watch->token);
    rc = notice_ask(
        watch,
        &(struct notice_request){
            .method = HTTP_GET, .path = path, .header = header, .limit_us = AWS_LIMIT_US },
        ret_answer, err);
    explicit_bzero(header, sizeof(header));
    if (!rc && ret_answer->status == 401)
        watch->token[0] = '\0';
    if (!rc && ret_answer->status != 200 && ret_answer->status != 404)
        rc = notice_odd_status(ret_answer, path, err);
    *ret_there = !rc && ret_answer->status == 200;
    return rc;
}

/* Looks whether the spot instance will be interrupted; the answer says at which moment. */
static int aws_action(struct notice_watch *watch, struct notice_said *said, struct hvd_err *err)
{
    struct notice_action action;
    struct notice_answer answer;
    char what[NOTICE_TEXT_MAX];
    bool there;
    int rc = aws_get(watch, AWS_ACTION, &answer, &there, err);

    if (there)
        rc = notice_read_action((struct span){ buf_text(&answer.body), answer.body.length },
                                &action, err);
    if (!rc && there) {
        snprintf(what, sizeof(what), "spot %s", action.action);
        notice_say(watch, &answer, action.at_us, what, said);
    }
    buf_release(&answer.body);
    return rc;
}

/* Looks whether the auto-scaling group wants to terminate this instance, or to stop it and keep it
 * for later (a warm pool). The service does not say when, so the time of --notice counts. */
static int aws_lifecycle(struct notice_watch *watch, struct notice_said *said, struct hvd_err *err)
{
    static const char *const leaving[] = { "Terminated", "Warmed:Terminated", "Warmed:Stopped",
                                           "Warmed:Hibernated" };
    struct notice_answer answer;
    struct span state;
    bool there;
    int rc = aws_get(watch, AWS_LIFECYCLE, &answer, &there, err);

    state = span_trim((struct span){ buf_text(&answer.body), answer.body.length });
    for (size_t i = 0; there && i < ARRAY_SIZE(leaving); i++)
        if (span_is(state, leaving[i]))
            notice_say_left(watch, watch->notice->default_us,
                            "auto scaling: the instance leaves its group", said);
    buf_release(&answer.body);
    return rc;
}

/* Looks for a rebalance recommendation: the instance may be interrupted soon. It has no deadline
 * (TIME_NEVER): the workers leave as soon as other hosts have slots for them. An interruption that
 * follows has a deadline. */
static int aws_rebalance(struct notice_watch *watch, struct notice_said *said, struct hvd_err *err)
{
    struct notice_answer answer;
    int64_t noticed_us;
    bool there;
    int rc = aws_get(watch, AWS_REBALANCE, &answer, &there, err);

    if (there)
        rc = notice_read_rebalance((struct span){ buf_text(&answer.body), answer.body.length },
                                   &noticed_us, err);
    if (!rc && there)
        notice_say_left(watch, TIME_NEVER, "rebalance recommendation", said);
    buf_release(&answer.body);
    return rc;
}

/* One look at AWS. Gets a token first, unless the present one is less than half of its time old.
 * Then asks for the three kinds of notices, the most urgent first, until an answer is a notice. */
static int aws_look(struct notice_watch *watch, struct notice_said *ret_said, struct hvd_err *err)
{
    char header[64];
    const struct notice_request put = {
        .method = HTTP_PUT, .path = "/latest/api/token", .header = header, .limit_us = AWS_LIMIT_US
    };
    int64_t now_us = clock_now_us();
    struct notice_answer answer;
    struct span token;
    int rc = 0;

    if (!*watch->token || now_us >= watch->token_until_us) {
        snprintf(header, sizeof(header), "X-aws-ec2-metadata-token-ttl-seconds: %d", AWS_TOKEN_S);
        rc = notice_ask(watch, &put, &answer, err);
        token = span_trim((struct span){ buf_text(&answer.body), answer.body.length });
        if (!rc && answer.status != 200)
            rc = notice_odd_status(&answer, put.path, err);
        if (!rc && (!token.length || token.length >= sizeof(watch->token) ||
                    !text_is_clean(token.at, token.length) || memchr(token.at, '\n', token.length)))
            rc = err_set(err, HVD_E_PROTO, "%s: the token is empty, too long, or not plain text",
                         put.path);
        if (!rc) {
            memcpy(watch->token, token.at, token.length);
            watch->token[token.length] = '\0';
            watch->token_until_us = time_add(now_us, AWS_TOKEN_S * TIME_S / 2);
        }
        buf_release(&answer.body);
    }
    if (!rc)
        rc = aws_action(watch, ret_said, err);
    if (!rc && !ret_said->given)
        rc = aws_lifecycle(watch, ret_said, err);
    if (!rc && !ret_said->given)
        rc = aws_rebalance(watch, ret_said, err);
    return rc;
}

const struct notice_giver notice_aws = {
    .name = "AWS",
    .bit = PREEMPTION_AWS,
    .pause_us = AWS_PAUSE_US,
    .dmi_file = "sys_vendor",
    .dmi_text = "Amazon EC2",
    .server_env = "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    .look = aws_look,
};
