/*
 * test_core_parts.c: parts of the core without a job: settings, the assignment of ranks, records,
 * actions. A wrong setting is named in its error, and an action is described as a whole or not at
 * all.
 */
#include "driver/core/assign.h"
#include "driver/core/moves.h"
#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static struct core_tape tape;

static struct core_config good_config(void)
{
    struct core_config config;

    core_config_init(&config);
    config.job = "j";
    config.np = 4;
    return config;
}

TEST(missing_options_follow_from_others)
{
    struct core_config config = good_config();

    CHECK_OK(t, core_config_finish(&config, NULL));
    CHECK_INT(t, config.min_np, ==, 4);
    CHECK_INT(t, config.max_np, ==, 4);
    config.np = config.max_np = 0;
    config.min_np = 2;
    CHECK_OK(t, core_config_finish(&config, NULL));
    CHECK_INT(t, config.np, ==, 2);
    CHECK_INT(t, config.max_np, ==, 2);
    config.max_np = LIMIT_WORKERS;
    CHECK_OK(t, core_config_finish(&config, NULL));
    CHECK_INT(t, config.max_np, ==, LIMIT_WORKERS);
out:;
}

/* Each row has the numbers of a wrong config, and words of the error. */
TEST(wrong_counts_are_named)
{
    static const struct {
        uint32_t np, min_np, max_np;
        int code;
        const char *says;
    } wrong[] = {
        {0,  0, 0,                 HVD_E_INVAL, "-np: missing"                                                 },
        { 2, 3, 0,                 HVD_E_INVAL, "--min-np: 3 is more than -np, 2; lower --min-np, or raise -np"},
        { 4, 1, 3,                 HVD_E_INVAL, "-np: 4 is more than --max-np, 3; lower -np, or raise --max-np"},
        { 4, 1, LIMIT_WORKERS + 1, HVD_E_LIMIT, "--max-np: 131073 is"                                          },
    };
    struct core_config config;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        config = good_config();
        config.np = wrong[i].np;
        config.min_np = wrong[i].min_np;
        config.max_np = wrong[i].max_np;
        CHECK_CODE(t, core_config_finish(&config, &err), wrong[i].code);
        CHECK_HAS(t, err.text, wrong[i].says);
        CHECK_INT(t, config.np, ==, wrong[i].np);
    }
    config = good_config();
    config.job = "";
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_INVAL);
    config.job = NULL;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "no name");
out:;
}

TEST(wrong_times_are_named)
{
    struct core_config config = good_config();
    struct hvd_err err;

    config.lease_us = 2 * config.beat_us - 1;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--lease");
    config = good_config();
    config.gather_us = -1;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_INVAL);
    config = good_config();
    config.kill_grace_us = -1;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_INVAL);
    config = good_config();
    config.beat_us = config.lease_us = TIME_NEVER;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_LIMIT);
    config = good_config();
    config.kill_grace_us = TIME_NEVER;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_LIMIT);
    config = good_config();
    config.stall_us = 0;
    CHECK_CODE(t, core_config_finish(&config, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--stall-shutdown");
    config = good_config();
    config.blacklist.lower_us = -1;
    CHECK(t, core_config_finish(&config, &err) != 0);
    config = good_config();
    config.elastic_timeout_us = config.stall_us = config.lease_us = TIME_NEVER;
    CHECK_OK(t, core_config_finish(&config, &err));
out:;
}

TEST(enough_workers_are_kept)
{
    CHECK_INT(t, assign_kept(2, 0, 2), ==, 0);
    CHECK_INT(t, assign_kept(2, 1, 4), ==, 1);
    CHECK_INT(t, assign_kept(0, 0, 3), ==, 3);
    CHECK_INT(t, assign_kept(5, 5, 3), ==, 0);
out:;
}

/* Returns "rank/size local/size cross/size" of each slot. */
static const char *places(const uint32_t *hosts, size_t count, uint32_t first)
{
    static char text[512];
    struct assignment seats[16] = { { .host = 0 } };
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        seats[i].host = hosts[i];
    assign_places(seats, count, first);
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u/%u %u/%u %u/%u",
                                 i ? ", " : "", seats[i].place.rank, seats[i].place.size,
                                 seats[i].place.local_rank, seats[i].place.local_size,
                                 seats[i].place.cross_rank, seats[i].place.cross_size);
    return text;
}

/* Hosts b:3, a:2, c:1 with at most 5 workers: the example of Horovod's documentation. */
TEST(places_are_those_of_the_reference)
{
    static const uint32_t hosts[] = { 0, 0, 0, 1, 1, 2 };

    CHECK_TEXT(t, places(hosts, 5, 0),
               "0/5 0/3 0/2, 1/5 1/3 0/2, 2/5 2/3 0/1, 3/5 0/2 1/2, 4/5 1/2 1/2");
    CHECK_TEXT(t, places(hosts, 6, 0),
               "0/6 0/3 0/3, 1/6 1/3 0/2, 2/6 2/3 0/1, 3/6 0/2 1/3, 4/6 1/2 1/2, 5/6 0/1 2/3");
    CHECK_TEXT(t, places(hosts + 4, 2, 4), "4/6 0/1 0/2, 5/6 0/1 1/2");
    CHECK_TEXT(t, places(hosts, 1, 0), "0/1 0/1 0/1");
out:;
}

TEST(records_are_described)
{
    struct journal_record record = { .host = "a",
                                     .text = "why",
                                     .term = 2,
                                     .incarnation = 3,
                                     .round = 4,
                                     .previous = 1,
                                     .slot = 5,
                                     .value = -6,
                                     .ended = 1,
                                     .wall_us = 7 };
    static const char *const lines[] = {
        "TERM term=2",
        "LAUNCH incarnation=3 host=a slot=5",
        "READY incarnation=3 round=4",
        "NUMBER incarnation=3 round=4",
        "ROUND round=4 cause=0 previous=1 commit=0.0 check=0 members=0",
        "ENTERED incarnation=3 round=4",
        "FINISHED incarnation=3 round=4",
        "ENDED incarnation=3 ended=1 value=-6",
        "DRAIN host=a slot=5 until=7",
        "OVER code=0: why",
        "STUCK host=a slot=5 failures=-6 job=0 commit=0.0",
        "KEY host=a epoch=-6 code=0",
        "BASE incarnation=3 round=4 previous=1 commit=0.0 rounds=0 epoch=-6 joined=0",
        "STORE incarnation=3 call=0 round=4 code=0 key=why",
        "TOKEN id=why host=a uses=-6 code=0",
        "NOTICE host=a honoured=-6 of 0",
        "GOODPUT host=a use=5 worker_us=0 us=0",
        "REPORTED name=why incarnation=3 bits=0000000000000000",
        "? incarnation=3 round=4",
    };
    char line[JOURNAL_LINE_MAX];

    for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
        record.kind = (enum journal_kind)(JOURNAL_TERM + i);
        CHECK_TEXT(t, journal_describe(&record, line), lines[i]);
    }
    CHECK_TEXT(t, journal_kind_name((enum journal_kind)0), "?");
out:;
}

TEST(actions_are_lines)
{
    struct action action = { .kind = ACTION_START_AGENT, .host = "a" };
    struct buf out;
    char text[64];

    buf_init(&out, 40);
    CHECK_TEXT(t, action_describe(&action, text, sizeof(text)),
               "start agent peer=0 ask=0 code=0 a");
    CHECK_CODE(t, action_write(&action, &out), 0);
    CHECK_CODE(t, action_write(&action, &out), HVD_E_LIMIT);
    CHECK_TEXT(t, buf_text(&out), "start agent peer=0 ask=0 code=0 a\n");
    action = (struct action){ .kind = ACTION_CLOSE, .peer = 3, .text = "why" };
    CHECK_TEXT(t, action_describe(&action, text, sizeof(text)), "close peer=3 ask=0 code=0 why");
    action_list_release(NULL);
out:
    buf_release(&out);
}

/* An action that does not fit into the buffer is not written at all. */
TEST(an_action_is_written_whole_or_not)
{
    struct blacklist_change change = { .none = false };
    struct msg msg = { .type = MSG_DONE, .term = 1 };
    const uint64_t ids[] = { 10000000, 20000000, 30000000, 40000000 };
    struct journal_record record = {
        .kind = JOURNAL_TERM, .host = "", .text = "", .members = {ids, ARRAY_SIZE(ids)}
    };
    struct action action = { .kind = ACTION_RECORD, .record = &record };
    struct buf out;

    buf_init(&out, 30);
    CHECK_CODE(t, action_write(&action, &out), HVD_E_LIMIT);
    CHECK_INT(t, out.length, ==, 0);
    action = (struct action){ .kind = ACTION_BLACKLIST, .change = &change };
    CHECK_CODE(t, action_write(&action, &out), HVD_E_LIMIT);
    action = (struct action){ .kind = ACTION_SEND, .msg = &msg };
    CHECK_CODE(t, action_write(&action, &out), HVD_E_LIMIT);
    CHECK_INT(t, out.length, ==, 0);
out:
    buf_release(&out);
}

TEST(states_have_names)
{
    CHECK_TEXT(t, job_state_name(JOB_PENDING), "pending");
    CHECK_TEXT(t, job_state_name(JOB_STATE_COUNT), "?");
    CHECK_TEXT(t, worker_state_name(WORKER_ENDED), "ended");
    CHECK_TEXT(t, worker_state_name(WORKER_STATE_COUNT), "?");
    CHECK_TEXT(t, agent_state_name(AGENT_AWAY), "away");
    CHECK_TEXT(t, agent_state_name(AGENT_STATE_COUNT), "?");
    core_view_release(NULL);
    core_free(NULL);
out:;
}

/* A record that is wrong after certain records, with the words of its error. */
#define WRONG(says, ...) \
    {                    \
        says,            \
        {                \
            __VA_ARGS__  \
        }                \
    }

static const uint64_t nobody[] = { 0 };
static const uint64_t stranger[] = { 3 };
static const uint64_t known[] = { 1, 2 };

#define TWO    .members = { known, 2 }
#define SECOND .kind = JOURNAL_ROUND, .round = 2, .previous = 1

struct wrong {
    const char *says;
    struct journal_record record;
};

/* A wrong record that follows the records of a job of two workers in round 1. */
static const struct wrong records_before[] = {
    WRONG("", .kind = JOURNAL_TERM, .term = 1, .host = "", .text = ""),
    WRONG("", .kind = JOURNAL_LAUNCH, .incarnation = 1, .host = "a", .text = ""),
    WRONG("", .kind = JOURNAL_LAUNCH, .incarnation = 2, .host = "a", .text = "", .slot = 1),
    WRONG("", .kind = JOURNAL_ROUND, .round = 1, .host = "", .text = "", TWO),
};

/* Replays records_before and then the record in a new core; *err has the error of the record. */
static int replay(struct journal_record record, struct hvd_err *err)
{
    int rc = tape_init(&tape);

    if (!rc)
        rc = tape_core(&tape);
    for (size_t i = 0; i < ARRAY_SIZE(records_before) && !rc; i++)
        rc = core_replay(tape.core, &records_before[i].record, err);
    if (!record.host)
        record.host = "";
    record.text = "";
    if (!rc)
        rc = core_replay(tape.core, &record, err);
    tape_release(&tape);
    return rc;
}

static const struct wrong wrong_records[] = {
    WRONG("this kind of record", .kind = (enum journal_kind)77),
    WRONG("not the next one", .kind = JOURNAL_LAUNCH, .incarnation = 5, .host = "b"),
    WRONG("not the next one", .kind = JOURNAL_LAUNCH, .host = "b"),
    WRONG("no job can have this host", .kind = JOURNAL_LAUNCH, .incarnation = 3, .host = ""),
    WRONG("no job can have this host", .kind = JOURNAL_LAUNCH, .incarnation = 3, .host = "b",
          .slot = 5000),
    WRONG("still has the slot", .kind = JOURNAL_LAUNCH, .incarnation = 3, .host = "a"),
    WRONG("no worker can have this rank", .kind = JOURNAL_LAUNCH, .incarnation = 3, .host = "b",
          .value = 2),
    WRONG("no worker can have this rank", .kind = JOURNAL_LAUNCH, .incarnation = 3, .host = "b",
          .value = -1),
    WRONG("no driver can begin this round", .kind = JOURNAL_ROUND, TWO),
    WRONG("no driver can begin this round", SECOND),
    WRONG("no driver can begin this round", SECOND, .members = { known, 1 },
          .holders = { known, 2 }),
    WRONG("no driver can begin this round", SECOND, .members = { known, LIMIT_WORKERS + 1 }),
    WRONG("no driver can begin this round", SECOND, TWO, .cause = CAUSE_COUNT),
    WRONG("does not follow", .kind = JOURNAL_ROUND, .round = 3, .previous = 2, TWO),
    WRONG("never launched", SECOND, .members = { nobody, 1 }),
    WRONG("never launched", SECOND, .members = { stranger, 1 }),
    WRONG("no job can have this host", .kind = JOURNAL_DRAIN, .host = "?", .wall_us = 1),
    WRONG("no job can have this host", .kind = JOURNAL_DRAIN, .host = "a", .wall_us = -1),
    WRONG("no job can have this host", .kind = JOURNAL_DRAIN, .host = "a", .slot = 5000),
};

TEST(impossible_records_are_refused)
{
    struct hvd_err err = { .code = 0 };

    for (size_t i = 0; i < ARRAY_SIZE(wrong_records); i++) {
        CHECK_CODE(t, replay(wrong_records[i].record, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, wrong_records[i].says);
        CHECK_HAS(t, err.text, "the journal's record ");
    }
out:;
}

/* A switch leaves a round, so the first round of a journal cannot be a switch. */
TEST(a_first_round_that_is_a_switch_is_refused)
{
    struct journal_record record = {
        .kind = JOURNAL_ROUND, .round = 1, TWO, .cause = CAUSE_SWITCH
    };
    struct hvd_err err = { .code = 0 };

    record.host = record.text = "";
    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, tape_core(&tape));
    for (size_t i = 0; records_before[i].record.kind != JOURNAL_ROUND; i++)
        CHECK_OK(t, core_replay(tape.core, &records_before[i].record, &err));
    CHECK_CODE(t, core_replay(tape.core, &record, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "no driver can begin this round");
out:
    tape_release(&tape);
}

/* Records about workers and rounds that have ended change nothing. */
static const struct wrong past_records[] = {
    WRONG("", .kind = JOURNAL_LAUNCH, .incarnation = 1, .host = "z"),
    WRONG("", .kind = JOURNAL_READY, .incarnation = 9),
    WRONG("", .kind = JOURNAL_FINISHED, .incarnation = 9),
    WRONG("", .kind = JOURNAL_ENDED, .incarnation = 9),
    WRONG("", .kind = JOURNAL_ENTERED, .round = 9),
    WRONG("", .kind = JOURNAL_ROUND, .round = 1),
    WRONG("", .kind = JOURNAL_NUMBER, .round = 1),
    WRONG("", .kind = JOURNAL_TERM, .term = 1),
    WRONG("", .kind = JOURNAL_OVER),
    WRONG("", SECOND, TWO),
};

TEST(records_of_the_past_change_nothing)
{
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(past_records); i++)
        CHECK_OK(t, replay(past_records[i].record, &err));
out:;
}

TEST(a_damaged_blacklist_is_refused)
{
    struct blacklist_record record = { .host = "a", .since_wall_us = -1 };

    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, tape_core(&tape));
    CHECK_CODE(t, core_replay_blacklist(tape.core, &record, 0, TAPE_WALL, NULL), HVD_E_CORRUPT);
out:
    tape_release(&tape);
}

TEST_FLAGS(an_impossible_event_panics, TEST_NO_TORTURE)
{
    struct event early = { .kind = EVENT_TIMER };
    struct event start = { .kind = EVENT_START };
    struct journal_record record = { .kind = JOURNAL_TERM };

    CHECK_OK(t, tape_init(&tape));
    CHECK_OK(t, tape_core(&tape));
    CHECK_PANICS(t, "EVENT_START", (void)!tape_step(&tape, &early));
    CHECK_OK(t, tape_step(&tape, &start));
    CHECK_PANICS(t, "EVENT_START", (void)!tape_step(&tape, &start));
    CHECK_PANICS(t, "JOB_NEW", (void)!core_replay(tape.core, &record, NULL));
    tape.now_us--;
    CHECK_PANICS(t, "gap_us", (void)!tape_step(&tape, &early));
out:
    tape_release(&tape);
}

/* A driver that has exited gives no more actions. */
TEST(a_job_that_is_over_is_silent)
{
    CHECK_OK(t, tape_init(&tape));
    CHECK_PLAY(t, &tape, "start\nnohosts\nstate over\njump 1h |\nstop me |\nview\n");
    CHECK(t, core_deadline(tape.core) == TIME_NEVER);
    CHECK_INT(t, tape.exit_code, ==, CORE_FAILED);
out:
    tape_release(&tape);
}

/* Compares one move of the machine with its row of states.md: "| ready | member | a round begins
 * with it |". */
static void check_move(struct test *t, const struct machine *machine, size_t number,
                       const char *row)
{
    char expected[256];

    CHECK_INT(t, number, <, machine->move_count);
    snprintf(expected, sizeof(expected), "| %s | %s | %s |\n",
             machine->moves[number].from == MOVE_ANY ? "any"
                                                     : machine->states[machine->moves[number].from],
             machine->states[machine->moves[number].to], machine->moves[number].when);
    CHECK_TEXT(t, row, expected);
out:;
}

/* driver/core/states.md has a table for each state machine; its rows are the moves of the machine,
 * in their order. */
TEST(the_page_of_states_shows_every_move)
{
    const struct machine *machines[] = { &job_machine, &worker_machine, &round_machine,
                                         &agent_machine };
    FILE *file = fopen(HVD_SOURCE_DIR "/driver/core/states.md", "r");
    size_t next = 0, rows = 0;
    char line[256], heading[32];

    CHECK(t, file);
    while (fgets(line, sizeof(line), file) && !t->failed) {
        if (next < ARRAY_SIZE(machines)) {
            snprintf(heading, sizeof(heading), "## %s\n", machines[next]->name);
            if (!strcmp(line, heading)) {
                CHECK_INT(t, rows, ==, next ? machines[next - 1]->move_count : 0);
                next++;
                rows = 0;
            }
        }
        if (line[0] == '|' && strncmp(line, "| from", 6) != 0 && line[1] != '-') {
            CHECK_INT(t, next, >, 0);
            check_move(t, machines[next - 1], rows++, line);
        }
    }
    CHECK_INT(t, next, ==, ARRAY_SIZE(machines));
    CHECK_INT(t, rows, ==, agent_machine.move_count);
out:
    if (file)
        fclose(file);
}
