/*
 * test_control.c: the driver's control socket: questions, late answers, clients that follow the
 * events, clients that do not read or that send rubbish. An asker is a client of the test; the desk
 * is the driver's side; tells are the parts of an answer.
 */
#include "driver/control/control.h"

#include "base/limits.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/lib/fixture.h"
#include "wire/conn.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_US (100 * TIME_S)
#define ASKERS_MAX  (LIMIT_CLIENTS + 8)

/* ---- a driver's loop without a driver -------------------------------------------------------- */

struct asker {
    struct conn *conn; /* NULL: closed */
    struct msg_ask ask;
    char text[8192];
    size_t bytes;
    unsigned tells;
    int code;
    bool last;
    bool opened;
    bool mute; /* the asker stops reading after the first part */
};

struct desk {
    struct event_base *base;
    struct event *tick; /* wakes the loop although nothing happens */
    struct events *events;
    struct control *control;
    char path[100];
    struct asker askers[ASKERS_MAX];

    struct event seen; /* the newest event */
    char host[64];
    char text[64];
    unsigned acted;
    bool at_once; /* the core answers inside the same step */
    int code;     /* the code of its answer */
    size_t hosts; /* number of hosts in the view */
    size_t kept;  /* number of members that must leave and stay */
};

static struct desk desk;

/* Gives the control socket a view with desk.hosts hosts. */
static int on_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    struct desk *here = arg;
    struct view_host *hosts =
        arena_alloc_array(&ret_view->memory, here->hosts, sizeof(struct view_host));

    if (!hosts)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < here->hosts; i++)
        hosts[i] =
            (struct view_host){ .name = "a-host-with-a-long-name",
                                .slots = 2,
                                .why = "because no operator has ever asked for it to be used" };
    ret_view->hosts = hosts;
    ret_view->host_count = here->hosts;
    ret_view->job = JOB_RUNNING;
    ret_view->shortage.kept = here->kept;
    *ret_facts = (struct table_facts){ .job = "j1", .state_dir = "/s" };
    return 0;
}

static void on_act(void *arg, const struct event *event)
{
    struct desk *here = arg;

    here->seen = *event;
    here->acted++;
    snprintf(here->host, sizeof(here->host), "%s", event->host ? event->host : "");
    snprintf(here->text, sizeof(here->text), "%s", event->text ? event->text : "");
    if (here->at_once && event->kind != EVENT_STOP)
        control_reply(here->control, event->ask, here->code, here->code ? "no such host" : "");
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

static bool desk_begin(struct test *t)
{
    static const struct control_ops ops = { on_view, on_act };
    const struct timeval often = { .tv_usec = 20000 };

    signal(SIGPIPE, SIG_IGN);
    desk = (struct desk){ .hosts = 1 };
    snprintf(desk.path, sizeof(desk.path), "%s/control", test_dir(t));
    desk.base = event_base_new();
    desk.tick = desk.base ? event_new(desk.base, -1, EV_PERSIST, on_tick, NULL) : NULL;
    if (!desk.tick || event_add(desk.tick, &often))
        return false;
    if (events_create(NULL, "j1", &desk.events, NULL))
        return false;
    return !control_create(desk.base, desk.path, desk.events, &ops, &desk, &desk.control, NULL);
}

#define UNTIL(condition)                                  \
    do {                                                  \
        int64_t until_us = clock_now_us() + PATIENCE_US;  \
        while (!(condition) && clock_now_us() < until_us) \
            event_base_loop(desk.base, EVLOOP_ONCE);      \
    } while (0)

/* ---- a client ---- */

static void on_opened(void *arg)
{
    struct asker *asker = arg;
    const struct msg msg = { .type = MSG_ASK, .u.ask = asker->ask };

    asker->opened = true;
    conn_greeted(asker->conn);
    if (asker->ask.verb && conn_send(asker->conn, &msg, NULL)) {
        conn_drop(asker->conn);
        asker->conn = NULL;
    }
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct asker *asker = arg;
    const struct msg_bytes *text = &msg->u.tell.text;

    if (msg->type != MSG_TELL)
        return;
    asker->tells++;
    asker->code = msg->u.tell.code;
    asker->last = msg->u.tell.last;
    for (size_t i = 0; i < text->length; i++, asker->bytes++)
        if (asker->bytes + 1 < sizeof(asker->text))
            asker->text[asker->bytes] = (char)text->at[i];
    if (asker->mute)
        conn_hold(asker->conn, true);
}

static void on_closed(void *arg, const char *why)
{
    struct asker *asker = arg;

    (void)why;
    asker->conn = NULL;
}

static const struct conn_ops asker_ops = { .opened = on_opened,
                                           .msg = on_msg,
                                           .closed = on_closed };

/* true: the asker is connected and has sent its question. */
static bool dial(struct asker *asker, const char *verb)
{
    asker->ask.verb = verb;
    return !conn_dial_unix(desk.base, desk.path, &asker_ops, asker, &asker->conn, NULL);
}

static bool is_done(const struct asker *asker)
{
    return !asker->conn || asker->last;
}

/* Asks, and waits for the end of the answer. */
static bool ask(struct asker *asker, const char *verb, const char *first, const char *second)
{
    const char *args[] = { first, second };

    asker->ask.args = (struct msg_texts){ args, first ? second ? 2 : 1 : 0 };
    if (!dial(asker, verb))
        return false;
    UNTIL(is_done(asker));
    return asker->last;
}

/* ---- the cases ---- */

/* TEST_SURVIVES_ALLOC: without memory a connection that is being closed tries again later. */

static int fd = -1; /* of a client that writes its own bytes */

static void begin_case(struct test *t)
{
    CHECK(t, desk_begin(t));
}

static void end_case(struct test *t)
{
    (void)t;
    if (fd >= 0)
        close(fd);
    fd = -1;
    for (size_t i = 0; i < ASKERS_MAX; i++)
        if (desk.askers[i].conn)
            conn_drop(desk.askers[i].conn);
    control_free(desk.control);
    events_free(desk.events);
    if (desk.tick)
        event_free(desk.tick);
    if (desk.base) {
        event_base_loop(desk.base, EVLOOP_NONBLOCK); /* runs what was put off until now */
        event_base_free(desk.base);
    }
    desk = (struct desk){ .base = NULL };
}
FIXTURE(begin_case, end_case)

TEST_FLAGS(tells_what_a_view_shows, TEST_SURVIVES_ALLOC)
{
    CHECK(t, ask(&desk.askers[0], "status", NULL, NULL));
    CHECK_INT(t, desk.askers[0].code, ==, 0);
    CHECK_HAS(t, desk.askers[0].text, "job        j1: running\n");
    CHECK(t, ask(&desk.askers[1], "hosts", NULL, NULL));
    CHECK_HAS(t, desk.askers[1].text, "a-host-with-a-long-name  2      0     none");
    desk.askers[2].ask.json = true;
    CHECK(t, ask(&desk.askers[2], "blacklist", NULL, NULL));
    CHECK_TEXT(t, desk.askers[2].text, "{\"job\":\"j1\",\"blacklist\":[]}\n");
    UNTIL(!desk.askers[2].conn);
    CHECK(t, !desk.askers[2].conn); /* the connection ends after one question */
}

TEST_FLAGS(an_answer_may_be_long, TEST_NO_TORTURE)
{
    /* the answer has several parts, and is longer than the buffer of a connection */
    desk.hosts = 20000;
    desk.askers[0].ask.json = true;
    CHECK(t, ask(&desk.askers[0], "hosts", NULL, NULL));
    CHECK_INT(t, desk.askers[0].code, ==, 0);
    CHECK_INT(t, desk.askers[0].bytes, >, 3 * 1024 * 1024);
    CHECK_INT(t, desk.askers[0].tells, >, 8);
}

/* The answer to a drain says when its workers stay all the same; without memory it does not. */
TEST_FLAGS(a_drain_says_which_workers_stay, TEST_NO_TORTURE)
{
    struct asker *asker = &desk.askers[0];

    desk.at_once = true;
    desk.kept = 2;
    CHECK(t, ask(&asker[0], "drain", "a:1", "30s"));
    CHECK_TEXT(t, asker[0].text,
               "a:1: is being drained within 30s; 2 workers that must leave stay for now, as fewer "
               "than --min-np 0 would be left; at the deadline they are killed");
    desk.kept = 1;
    CHECK(t, ask(&asker[1], "drain", "a:1", NULL));
    CHECK_TEXT(t, asker[1].text,
               "a:1: is being drained; 1 worker that must leave stays for now, as fewer than "
               "--min-np 0 would be left");
    CHECK(t, ask(&asker[2], "undrain", "a:1", NULL));
    CHECK_TEXT(t, asker[2].text, "a:1: may be used again");
}

/* Each command reaches the core as an event with its host, slot and time; the core's answer comes
 * back as text or JSON. */
TEST_FLAGS(the_core_answers_when_it_can, TEST_SURVIVES_ALLOC)
{
    struct asker *asker = &desk.askers[0];

    desk.at_once = true;
    CHECK(t, ask(&asker[0], "drain", "a:1", "30s"));
    CHECK_INT(t, asker[0].code, ==, 0);
    CHECK_TEXT(t, asker[0].text, "a:1: is being drained within 30s");
    CHECK_INT(t, desk.seen.kind, ==, EVENT_DRAIN);
    CHECK_TEXT(t, desk.host, "a");
    CHECK_INT(t, desk.seen.slot, ==, 1);
    CHECK_INT(t, desk.seen.left_us, ==, 30 * TIME_S);
    CHECK(t, ask(&asker[1], "undrain", "[::1]", NULL));
    CHECK_INT(t, desk.seen.kind, ==, EVENT_UNDRAIN);
    CHECK_TEXT(t, desk.host, "::1");
    CHECK_INT(t, desk.seen.slot, ==, EVENT_WHOLE_HOST);
    asker[2].ask.json = true;
    CHECK(t, ask(&asker[2], "clear", "b", NULL));
    CHECK_INT(t, desk.seen.kind, ==, EVENT_CLEAR);
    CHECK_TEXT(t, asker[2].text, "{\"ok\":true,\"text\":\"b: its failures are forgotten\"}\n");
    desk.code = HVD_E_NOTFOUND;
    CHECK(t, ask(&asker[3], "drain", "c", NULL));
    CHECK_INT(t, asker[3].code, ==, HVD_E_NOTFOUND);
    CHECK_TEXT(t, asker[3].text, "no such host");
    CHECK(t, desk.seen.left_us == TIME_NEVER);
    asker[4].ask.json = true;
    CHECK(t, ask(&asker[4], "drain", "c", NULL));
    CHECK_TEXT(t, asker[4].text, "{\"ok\":false,\"text\":\"no such host\"}\n");
}

/* The disk is slow, so the answers come late: meanwhile other clients ask, and one client has
 * gone. */
TEST_FLAGS(late_answers_find_their_asker, TEST_SURVIVES_ALLOC)
{
    const char *host = "a";
    struct asker *asker = &desk.askers[0];
    uint64_t asks[3];

    for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
        asker[i].ask.args = (struct msg_texts){ &host, 1 };
        CHECK(t, dial(&asker[i], "undrain"));
        UNTIL(desk.acted == i + 1 || !asker[i].conn);
        CHECK_INT(t, desk.acted, ==, i + 1);
        asks[i] = desk.seen.ask;
        CHECK(t, asks[i] && (!i || asks[i] != asks[i - 1]));
    }
    CHECK(t, ask(&asker[3], "status", NULL, NULL));
    conn_drop(asker[1].conn);
    asker[1].conn = NULL;
    CHECK(t, ask(&asker[4], "status", NULL, NULL));
    control_reply(desk.control, 0, 0, "");
    control_reply(desk.control, 99, 0, "");
    control_reply(desk.control, asks[1], 0, "");
    control_reply(desk.control, asks[2], HVD_E_STATE, "");
    control_reply(desk.control, asks[2], 0, "twice");
    UNTIL(is_done(&asker[2]));
    CHECK_INT(t, asker[2].code, ==, HVD_E_STATE);
    CHECK_TEXT(t, asker[2].text, err_text(HVD_E_STATE));
    CHECK(t, !is_done(&asker[0]));
    control_reply(desk.control, asks[0], 0, "");
    UNTIL(is_done(&asker[0]));
    CHECK_TEXT(t, asker[0].text, "a: may be used again");
}

/* Each of four clients waits for new keys: one as text, one as JSON, one that has gone, and one
 * that does not wait for the end. */
TEST_FLAGS(new_keys_are_told_until_all_have_them, TEST_SURVIVES_ALLOC)
{
    struct asker *asker = &desk.askers[0];
    uint64_t asks[4];

    asker[0].ask.follow = asker[1].ask.follow = asker[2].ask.follow = true;
    asker[1].ask.json = true;
    for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
        CHECK(t, dial(&asker[i], "rekey"));
        UNTIL(desk.acted == i + 1 || !asker[i].conn);
        CHECK_INT(t, desk.acted, ==, i + 1);
        CHECK_INT(t, desk.seen.kind, ==, EVENT_REKEY);
        asks[i] = desk.seen.ask;
    }
    control_rekeying(desk.control, "not yet", false); /* no client is answered yet */
    for (size_t i = 0; i < ARRAY_SIZE(asks); i++)
        control_reply(desk.control, asks[i], 0, "hosts that get a new key: 2");
    UNTIL(is_done(&asker[3]) && (asker[0].tells || !asker[0].conn) &&
          (asker[1].tells || !asker[1].conn));
    CHECK_TEXT(t, asker[3].text, "hosts that get a new key: 2");
    CHECK(t, asker[3].last);
    CHECK_TEXT(t, asker[0].text, "hosts that get a new key: 2\n");
    CHECK_TEXT(t, asker[1].text, "");
    CHECK(t, !is_done(&asker[0]) && !is_done(&asker[1]));
    conn_drop(asker[2].conn);
    asker[2].conn = NULL;
    control_rekeying(desk.control, "hosts with a new key: 1 of 2", false);
    control_rekeying(desk.control, "the old keys are dead", true);
    UNTIL(is_done(&asker[0]) && is_done(&asker[1]));
    CHECK_TEXT(t, asker[0].text,
               "hosts that get a new key: 2\nhosts with a new key: 1 of 2\nthe old keys are dead");
    CHECK_INT(t, asker[0].code, ==, 0);
    CHECK_TEXT(t, asker[1].text, "{\"ok\":true,\"text\":\"the old keys are dead\"}\n");
}

/* One client waits for the checkpoint, one does not, and one has gone before the answer. */
TEST_FLAGS(a_checkpoint_is_awaited, TEST_SURVIVES_ALLOC)
{
    struct asker *asker = &desk.askers[0];
    uint64_t asks[3];

    asker[0].ask.follow = asker[2].ask.follow = true;
    for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
        CHECK(t, dial(&asker[i], "checkpoint"));
        UNTIL(desk.acted == i + 1 || !asker[i].conn);
        CHECK_INT(t, desk.acted, ==, i + 1);
        CHECK_INT(t, desk.seen.kind, ==, EVENT_WANT_CHECKPOINT);
        CHECK_INT(t, desk.seen.code, ==, asker[i].ask.follow);
        asks[i] = desk.seen.ask;
    }
    conn_drop(asker[2].conn);
    asker[2].conn = NULL;
    control_reply(desk.control, asks[1], 0, "begun");
    UNTIL(is_done(&asker[1]) && (asker[0].tells || !asker[0].conn));
    CHECK_TEXT(t, asker[1].text, "begun");
    CHECK_TEXT(t, asker[0].text, "");
    CHECK(t, !is_done(&asker[0]));
    control_reply(desk.control, asks[2], 0, "commit-1.2 is complete");
    control_reply(desk.control, asks[0], HVD_E_IO, "no checkpoint could be made");
    UNTIL(is_done(&asker[0]));
    CHECK_INT(t, asker[0].code, ==, HVD_E_IO);
    CHECK_TEXT(t, asker[0].text, "no checkpoint could be made");
}

TEST_FLAGS(refuses_what_it_does_not_know, TEST_SURVIVES_ALLOC)
{
    static const struct {
        const char *verb, *first, *second;
        int code;
        const char *says;
    } wrong[] = {
        {"dance",   NULL,     NULL,   HVD_E_UNSUPPORTED, "\"dance\": the driver has version "},
        { "",       NULL,     NULL,   HVD_E_UNSUPPORTED, "\"\": the driver has version "     },
        { "status", "x",      NULL,   HVD_E_INVAL,
         "\"status\": the request takes 0 to 0 arguments, not 1"                             },
        { "drain",  NULL,     NULL,   HVD_E_INVAL,
         "\"drain\": the request takes 1 to 2 arguments, not 0"                              },
        { "drain",  "a:b",    NULL,   HVD_E_INVAL,       "drain \"a:b\": "                   },
        { "drain",  "a\nb",   NULL,   HVD_E_INVAL,       "drain \"a\\x0ab\": "               },
        { "drain",  "a",      "soon", HVD_E_INVAL,       "\"soon\": not a duration"          },
        { "clear",  "a:9999", NULL,   HVD_E_LIMIT,       "the slot"                          },
        { "events", "-1",     NULL,   HVD_E_INVAL,       "how many lines"                    },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        desk.askers[0] = (struct asker){ .conn = NULL };
        CHECK(t, ask(&desk.askers[0], wrong[i].verb, wrong[i].first, wrong[i].second));
        CHECK_INT(t, desk.askers[0].code, ==, wrong[i].code);
        CHECK_HAS(t, desk.askers[0].text, wrong[i].says);
        UNTIL(!desk.askers[0].conn);
        CHECK(t, !desk.askers[0].conn);
    }
    CHECK_INT(t, desk.acted, ==, 0);
}

/* Clients read all events or the last ones; one client follows new events until it hangs up. */
TEST_FLAGS(shows_events_and_follows, TEST_SURVIVES_ALLOC)
{
    const char *two = "2";
    struct asker *asker = &desk.askers[0];

    events_add(desk.events, TRACE_INFO, NULL, "one");
    events_add(desk.events, TRACE_INFO, NULL, "two");
    events_add(desk.events, TRACE_INFO, NULL, "three");
    CHECK(t, ask(&asker[0], "events", NULL, NULL));
    CHECK_HAS(t, asker[0].text, "Z one\n");
    CHECK(t, ask(&asker[1], "events", "1", NULL));
    CHECK(t, strstr(asker[1].text, "Z three\n") && !strstr(asker[1].text, "two"));
    asker[2].ask = (struct msg_ask){
        .args = {&two, 1},
          .follow = true, .json = true
    };
    CHECK(t, dial(&asker[2], "events"));
    UNTIL(strstr(asker[2].text, "three") || !asker[2].conn);
    CHECK(t, !strstr(asker[2].text, "one") &&
                 strstr(asker[2].text, "\"severity\":\"info\",\"text\":\"two\",\"job\":\"j1\"}\n"));
    events_add(desk.events, TRACE_INFO, NULL, "four");
    UNTIL(strstr(asker[2].text, "four") || !asker[2].conn);
    CHECK_HAS(t, asker[2].text, "\"severity\":\"info\",\"text\":\"four\",\"job\":\"j1\"}\n");
    CHECK(t, !asker[2].last);
    conn_drop(asker[2].conn);
    asker[2].conn = NULL;
    events_add(desk.events, TRACE_INFO, NULL, "five");
    CHECK(t, ask(&asker[3], "status", NULL, NULL));
    events_add(desk.events, TRACE_INFO, NULL, "six");
}

/* A client that follows the events does not read: it is cut off, with HVD_E_LIMIT, long before all
 * lines are kept for it. */
TEST_FLAGS(a_client_that_does_not_read_is_cut_off, TEST_NO_TORTURE)
{
    struct asker *asker = &desk.askers[0];
    char line[TRACE_LINE_MAX];
    unsigned lines = 0;

    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    events_add(desk.events, TRACE_INFO, NULL, "first");
    asker->ask.follow = true;
    asker->mute = true;
    CHECK(t, dial(asker, "events"));
    UNTIL(asker->tells || !asker->conn);
    CHECK_INT(t, asker->tells, ==, 1);
    for (; lines < 60000; lines++)
        events_add(desk.events, TRACE_INFO, NULL, line);
    asker->mute = false;
    conn_hold(asker->conn, false);
    UNTIL(is_done(asker));
    CHECK(t, asker->last);
    CHECK_INT(t, asker->code, ==, HVD_E_LIMIT);
    CHECK_INT(t, asker->bytes, <, 60000 * 100);
    events_add(desk.events, TRACE_INFO, NULL, "no client hears this");
}

TEST_FLAGS(stop_is_for_the_loop, TEST_SURVIVES_ALLOC)
{
    struct asker *asker = &desk.askers[0];

    CHECK(t, ask(&asker[0], "stop", NULL, NULL));
    CHECK_TEXT(t, asker[0].text, "the job is being stopped\n");
    CHECK_INT(t, desk.seen.kind, ==, EVENT_STOP);
    CHECK_TEXT(t, desk.text, "hvd-elastic stop");
    asker[1].ask.follow = true;
    CHECK(t, dial(&asker[1], "stop"));
    UNTIL(asker[1].tells || !asker[1].conn);
    CHECK_INT(t, asker[1].tells, ==, 1);
    CHECK(t, !asker[1].last);
    CHECK_INT(t, desk.acted, ==, 2);
    control_free(desk.control); /* the driver ends */
    desk.control = NULL;
    UNTIL(!asker[1].conn);
    CHECK(t, !asker[1].conn);
    CHECK(t, access(desk.path, F_OK));
}

TEST_FLAGS(a_connection_is_for_one_question, TEST_SURVIVES_ALLOC)
{
    const struct msg second = { .type = MSG_ASK, .u.ask = { .verb = "status" } };
    const struct msg other = { .type = MSG_BEAT };
    const char *host = "a";
    struct asker *asker = &desk.askers[0];

    asker[0].ask.args = (struct msg_texts){ &host, 1 };
    CHECK(t, dial(&asker[0], "drain"));
    UNTIL(desk.acted || !asker[0].conn);
    CHECK(t, asker[0].conn);
    CHECK_OK(t, conn_send(asker[0].conn, &second, NULL));
    UNTIL(is_done(&asker[0]));
    CHECK_INT(t, asker[0].code, ==, HVD_E_PROTO);
    control_reply(desk.control, desk.seen.ask, 0, "");
    CHECK(t, dial(&asker[1], NULL));
    UNTIL(asker[1].opened || !asker[1].conn);
    CHECK(t, asker[1].conn);
    CHECK_OK(t, conn_send(asker[1].conn, &other, NULL));
    UNTIL(is_done(&asker[1]));
    CHECK(t, !asker[1].conn || asker[1].code == HVD_E_PROTO);
}

TEST_FLAGS(rubbish_is_closed, TEST_SURVIVES_ALLOC)
{
    static const char rubbish[] = "GET / HTTP/1.1\r\nHost: control\r\n\r\n";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char answer[256];
    ssize_t got = -1;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", desk.path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(t, fd >= 0);
    CHECK(t, !connect(fd, (struct sockaddr *)&address, sizeof(address)));
    CHECK_INT(t, write(fd, rubbish, sizeof(rubbish)), ==, sizeof(rubbish));
    UNTIL((got = read(fd, answer, sizeof(answer))) == 0);
    CHECK_INT(t, got, ==, 0);
    CHECK(t, ask(&desk.askers[0], "status", NULL, NULL));
}

/* The last client above the limit is refused; when one client leaves, the next question is
 * answered. */
TEST_FLAGS(too_many_are_turned_away, TEST_NO_TORTURE)
{
    struct asker *asker = desk.askers;
    size_t turned = 0;

    for (size_t i = 0; i < LIMIT_CLIENTS; i++) {
        asker[i].ask.follow = true;
        CHECK(t, dial(&asker[i], "events"));
    }
    /* all of them are connected before the next answer */
    CHECK(t, dial(&asker[LIMIT_CLIENTS], "status"));
    UNTIL(is_done(&asker[LIMIT_CLIENTS]));
    for (size_t i = 0; i <= LIMIT_CLIENTS; i++)
        turned += asker[i].code == HVD_E_LIMIT;
    CHECK_INT(t, turned, ==, 1);
    conn_drop(asker[0].conn);
    asker[0].conn = NULL;
    for (int tries = 0; tries < 100 && !asker[LIMIT_CLIENTS + 1].code; tries++) {
        asker[LIMIT_CLIENTS + 1] = (struct asker){ .conn = NULL };
        CHECK(t, ask(&asker[LIMIT_CLIENTS + 1], "status", NULL, NULL));
        if (!asker[LIMIT_CLIENTS + 1].code)
            break;
        UNTIL(!asker[LIMIT_CLIENTS + 1].conn);
        asker[LIMIT_CLIENTS + 1].code = 0;
    }
    CHECK_HAS(t, asker[LIMIT_CLIENTS + 1].text, "j1: running");
}

TEST(a_path_that_is_taken)
{
    static const struct control_ops ops = { on_view, on_act };
    struct control *second = NULL;
    struct hvd_err err;

    CHECK_CODE(t, control_create(desk.base, desk.path, desk.events, &ops, &desk, &second, &err),
               HVD_E_BUSY);
}
