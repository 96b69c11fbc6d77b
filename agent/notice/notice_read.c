/*
 * notice_read.c: moments, and the texts of those who give notices. Called by the watches of this
 * folder, and by the fuzzer. Invariant: no text that is not a whole answer of its giver becomes a
 * notice, because a notice takes the machine out of the job.
 */
#include "agent/notice/notice_read.h"

#include "base/limits.h"
#include "base/stamp.h"
#include "base/time.h"
#include "state/checkpoint/json_text.h"

#include <ctype.h>
#include <string.h>

#define NOTICE_VALUES   1024            /* the most JSON values in an answer */
#define NOTICE_STALE_US (10 * TIME_MIN) /* a moment longer ago than this is no notice */
#define NOTICE_FAR_US   (7 * TIME_DAY)  /* a moment farther away than this is no notice */

/* Compares a name without regard to upper and lower case; `wanted` is in lower case. */
bool notice_same(struct span name, const char *wanted)
{
    bool same = name.length == strlen(wanted);

    for (size_t i = 0; same && i < name.length; i++)
        same = tolower((unsigned char)name.at[i]) == wanted[i];
    return same;
}

/* Says how much time is left until the moment at_us. A moment that has just passed still counts,
 * with the shortest time, NOTICE_LEAST_US. */
enum notice_moment notice_left(int64_t at_us, int64_t now_us, int64_t *ret_left_us)
{
    int64_t left_us = at_us - now_us;

    if (left_us < -NOTICE_STALE_US)
        return NOTICE_OLD;
    if (left_us > NOTICE_FAR_US)
        return NOTICE_FAR;
    *ret_left_us = left_us < NOTICE_LEAST_US ? NOTICE_LEAST_US : left_us;
    return NOTICE_COMES;
}

/* Copies the text of a member of a JSON object. false: there is no such member, or it is no text,
 * too long for `size`, or has control characters. */
static bool notice_member(const json_t *object, const char *name, char *into, size_t size)
{
    const json_t *value = json_object_get(object, name);
    size_t length = json_is_string(value) ? json_string_length(value) : size;

    if (length >= size || !text_is_clean(json_string_value(value), length))
        return false;
    memcpy(into, json_string_value(value), length);
    into[length] = '\0';
    return true;
}

/* Reads the member of a JSON object that is a moment, in one of the two forms; false: it is none.
 */
static bool notice_moment_of(const json_t *object, const char *name, int64_t *ret_at_us)
{
    char text[NOTICE_WORD_MAX];
    struct span span = { text, 0 };

    if (!notice_member(object, name, text, sizeof(text)))
        return false;
    span.length = strlen(text);
    return stamp_read(span, ret_at_us) || stamp_read_http(span, ret_at_us);
}

/* Parses an answer, which must be a JSON object of bounded size. The caller frees *ret_root. */
static int notice_load(struct span text, json_t **ret_root, struct hvd_err *err)
{
    int rc = json_text_load("notice", text.at, text.length, NOTICE_VALUES, ret_root, NULL);

    return !rc ? 0
               : err_set(err, rc == HVD_E_NOMEM ? rc : HVD_E_PROTO,
                         "the answer is no JSON object, or too large");
}

/* Reads AWS's spot/instance-action: what will be done with the instance, and when. */
int notice_read_action(struct span text, struct notice_action *ret_action, struct hvd_err *err)
{
    struct notice_action read;
    json_t *root;
    int rc = notice_load(text, &root, err);

    if (rc)
        return rc;
    if (!notice_member(root, "action", read.action, sizeof(read.action)) ||
        !notice_moment_of(root, "time", &read.at_us))
        rc =
            err_set(err, HVD_E_PROTO, "spot/instance-action: the answer has no action with a time");
    else
        *ret_action = read;
    json_decref(root);
    return rc;
}

/* Reads AWS's rebalance recommendation: the moment at which it was given. */
int notice_read_rebalance(struct span text, int64_t *ret_noticed_us, struct hvd_err *err)
{
    json_t *root;
    int rc = notice_load(text, &root, err);

    if (rc)
        return rc;
    if (!notice_moment_of(root, "noticeTime", ret_noticed_us))
        rc = err_set(err, HVD_E_PROTO, "recommendations/rebalance: the answer has no noticeTime");
    json_decref(root);
    return rc;
}

/* Reads one event of Azure. false: the event does not name this machine, does not end or restart
 * it, or cannot be read. An event "Freeze" stops a machine only for some seconds, less than a
 * lease, so it is no notice. */
static bool notice_event(const json_t *event, const char *machine, struct notice_event *read)
{
    static const char *const ends[] = { "Reboot", "Redeploy", "Preempt", "Terminate" };
    const json_t *names = json_object_get(event, "Resources");
    char status[NOTICE_WORD_MAX];
    bool is_end = false, named = false;
    json_t *name;
    size_t n;

    json_array_foreach(names, n, name)
    {
        if (json_is_string(name))
            named |= !strcmp(json_string_value(name), machine);
    }

    if (!notice_member(event, "EventId", read->id, sizeof(read->id)) || !*read->id ||
        !notice_member(event, "EventType", read->type, sizeof(read->type)) ||
        !notice_member(event, "EventStatus", status, sizeof(status)) || !named)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        is_end |= !strcmp(read->type, ends[i]);
    read->started = !strcmp(status, "Started");
    read->at_us = NOTICE_NO_TIME;
    return is_end && (read->started || (!strcmp(status, "Scheduled") &&
                                        notice_moment_of(event, "NotBefore", &read->at_us)));
}

/* Finds the first event that ends or restarts this machine. An event that has started comes before
 * all others, because its moment is NOTICE_NO_TIME, the lowest number. */
int notice_read_events(struct span text, const char *machine, struct notice_event *ret_event,
                       struct hvd_err *err)
{
    struct notice_event first = { .id = "" }, read;
    const json_t *events;
    json_t *root, *event;
    size_t i;
    int rc = notice_load(text, &root, err);

    if (rc)
        return rc;
    events = json_object_get(root, "Events");
    if (!events || !json_is_array(events)) {
        rc = err_set(err, HVD_E_PROTO, "scheduledevents: the answer has no list of Events");
    } else {
        json_array_foreach(events, i, event)
        {
            if (notice_event(event, machine, &read) && (!*first.id || read.at_us < first.at_us))
                first = read;
        }
        *ret_event = first;
    }
    json_decref(root);
    return rc;
}

/* Reads the first word of a user's line as the time that is left: a duration, a moment, or "now"
 * (or no word), which stands for default_us. */
static int notice_line_time(struct span word, int64_t default_us, int64_t now_us,
                            int64_t *ret_left_us, struct hvd_err *err)
{
    char text[NOTICE_WORD_MAX], quoted[TEXT_QUOTE_MAX];
    int64_t at_us;

    if (!word.length || span_is(word, "now")) {
        *ret_left_us = default_us;
        return 0;
    }
    text_quote(word.at, word.length, quoted);
    if (stamp_read(word, &at_us)) {
        if (notice_left(at_us, now_us, ret_left_us) == NOTICE_COMES)
            return 0;
        return err_set(err, HVD_E_INVAL, "%s: this moment is long past, or more than a week away",
                       quoted);
    }
    if (word.length >= sizeof(text))
        return err_set(err, HVD_E_INVAL, "%s: neither a duration nor a moment", quoted);
    memcpy(text, word.at, word.length);
    text[word.length] = '\0';
    return time_parse(text, ret_left_us, err);
}

/* Reads the first line that is not blank, of a file or command of the user. Without such a line
 * there is a notice only if empty_gives. The whole line is kept as the reason, cut if it is too
 * long. */
int notice_read_line(struct span text, bool empty_gives, int64_t default_us, int64_t now_us,
                     struct notice_line *ret_line, struct hvd_err *err)
{
    struct notice_line read = { .given = empty_gives, .left_us = default_us, .words = "" };
    struct span line = { NULL, 0 }, word, rest;
    size_t length;
    int rc = 0;

    while (!line.length && span_next(&text, '\n', &word))
        line = span_trim(word);
    if (line.length) {
        rest = line;
        (void)span_next(&rest, ' ', &word);
        rc = notice_line_time(word, default_us, now_us, &read.left_us, err);
        length = line.length < sizeof(read.words) ? line.length : sizeof(read.words) - 1;
        while (length && length < line.length && ((unsigned char)line.at[length] & 0xc0) == 0x80)
            length--; /* no character is cut in two */
        memcpy(read.words, line.at, length);
        read.words[length] = '\0';
        read.given = true;
        if (!rc && !text_is_clean(line.at, line.length))
            rc = err_set(err, HVD_E_INVAL, "the first line is not plain text in UTF-8");
    }
    if (!rc)
        *ret_line = read;
    return rc;
}
