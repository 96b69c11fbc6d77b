/*
 * notice_read.h: what metadata services, files and commands say about the end of a machine, read
 * without any I/O. Each text is foreign input: it may be cut, wrong, or too long.
 *
 * A moment is in microseconds since 1970, UTC. NOTICE_NO_TIME: the text has no moment.
 */
#ifndef AGENT_NOTICE_NOTICE_READ_H
#define AGENT_NOTICE_NOTICE_READ_H

#include "base/buf.h"
#include "base/text.h"

#define NOTICE_NO_TIME  INT64_MIN
#define NOTICE_WORD_MAX 64
#define NOTICE_ID_MAX   128
#define NOTICE_LINE_MAX 256

/* true: the name is `wanted`, whether its letters are upper or lower case; `wanted` is in lower
 * case. */
bool notice_same(struct span name, const char *wanted);

/* How a moment in a notice compares with now. */
enum notice_moment {
    NOTICE_COMES, /* the moment is still to come, or has just passed */
    NOTICE_OLD,   /* the moment is long past, so the notice did not come true */
    NOTICE_FAR    /* the moment is so far away that the text must be wrong */
};

/* Compares a moment with now. With NOTICE_COMES, *ret_left_us is the time that is left, at least
 * NOTICE_LEAST_US (5 seconds). */
#define NOTICE_LEAST_US INT64_C(5000000)
enum notice_moment notice_left(int64_t at_us, int64_t now_us, int64_t *ret_left_us);

/* AWS, spot/instance-action: {"action": "terminate", "time": "2017-09-18T08:22:00Z"}. HVD_E_PROTO:
 * the text is no such answer. HVD_E_NOMEM. */
struct notice_action {
    char action[NOTICE_WORD_MAX];
    int64_t at_us;
};
int notice_read_action(struct span text, struct notice_action *ret_action,
                       struct hvd_err *err) MUST_CHECK;

/* AWS, events/recommendations/rebalance: {"noticeTime": "2020-10-27T08:22:00Z"}. HVD_E_PROTO: the
 * text is no such answer. HVD_E_NOMEM. */
int notice_read_rebalance(struct span text, int64_t *ret_noticed_us,
                          struct hvd_err *err) MUST_CHECK;

/* Azure, scheduledevents: the first event that ends or restarts the machine of this name. If there
 * is none, `id` is empty. HVD_E_PROTO: the text is no such answer. HVD_E_NOMEM. */
struct notice_event {
    char id[NOTICE_ID_MAX];
    char type[NOTICE_WORD_MAX];
    bool started;
    int64_t at_us; /* NOTICE_NO_TIME: the event has started */
};
int notice_read_events(struct span text, const char *machine, struct notice_event *ret_event,
                       struct hvd_err *err) MUST_CHECK;

/* The first line that is not blank in a file of the user, or in the output of a command: "now", a
 * duration as options have it ("90s", "never"), or a moment (stamp_read); words may follow. */
struct notice_line {
    bool given;                  /* there is a notice */
    int64_t left_us;             /* time from now on; TIME_NEVER: no time is known */
    char words[NOTICE_LINE_MAX]; /* the whole line */
};
/* Reads that line. `empty_gives`: a text without a line is a notice, too, as an empty file is; its
 * time is default_us. HVD_E_INVAL: the line has another form. */
int notice_read_line(struct span text, bool empty_gives, int64_t default_us, int64_t now_us,
                     struct notice_line *ret_line, struct hvd_err *err) MUST_CHECK;

#endif
