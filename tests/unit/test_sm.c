/*
 * test_sm.c: base/sm: a state machine moves by its table, traces, and panics on a move or a table
 * that cannot be.
 */
#include "base/sm.h"
#include "base/time.h"
#include "tests/lib/test.h"

/*
 *     closed <-> open -> broken
 *     closed -> closed
 */
enum door_state { CLOSED, OPEN, BROKEN, DOOR_STATES };

struct door {
    struct sm sm;
    int locks;
};

static unsigned seen_state;

static void check_door(const void *owner, unsigned state)
{
    const struct door *door = owner;

    seen_state = state;
    if (state == OPEN)
        ASSERT(door->locks == 0);
}

static const struct sm_state door_states[DOOR_STATES] = {
    {"closed",  SM_BIT(CLOSED) | SM_BIT(OPEN),   SM_INITIAL},
    { "open",   SM_BIT(CLOSED) | SM_BIT(BROKEN), 0         },
    { "broken", 0,                               SM_FINAL  },
};

static const struct sm_type door_type = { "door", door_states, DOOR_STATES, check_door };

TEST(moves_and_traces)
{
    struct door door = { .locks = 0 };
    struct trace trace;

    CHECK_OK(t, trace_init(&trace, "doors", 4));
    sm_init(&door.sm, &door_type, CLOSED, &door, &trace);
    CHECK_TEXT(t, sm_name(&door.sm), "closed");
    CHECK_TEXT(t, trace_line(&trace, 0), NULL);
    sm_move(&door.sm, OPEN, TIME_S, "knock");
    CHECK_TEXT(t, sm_name(&door.sm), "open");
    CHECK_TEXT(t, trace_line(&trace, 0), "[     1.000] door: closed -> open: knock");
    CHECK_INT(t, seen_state, ==, OPEN);
    sm_move(&door.sm, CLOSED, TIME_S, "wind");
    sm_move(&door.sm, CLOSED, TIME_S, "wind again");
    CHECK_TEXT(t, trace_line(&trace, 0), "[     1.000] door: closed -> closed: wind again");
    CHECK_INT(t, seen_state, ==, CLOSED);
out:
    trace_release(&trace);
}

TEST(says_what_it_may)
{
    struct door door = { .locks = 0 };

    sm_init(&door.sm, &door_type, CLOSED, &door, NULL);
    CHECK(t, sm_may(&door.sm, CLOSED));
    CHECK(t, sm_may(&door.sm, OPEN));
    CHECK(t, !sm_may(&door.sm, BROKEN));
    CHECK(t, !sm_may(&door.sm, DOOR_STATES));
    CHECK(t, !sm_may(&door.sm, 64));
    CHECK(t, !sm_may(&door.sm, UINT32_MAX));
    sm_move(&door.sm, OPEN, 0, "knock");
    sm_move(&door.sm, BROKEN, 0, "storm");
    for (unsigned to = 0; to < DOOR_STATES; to++)
        CHECK(t, !sm_may(&door.sm, to));
out:;
}

TEST_FLAGS(panics_on_a_move_that_is_none, TEST_NO_TORTURE)
{
    struct door door = { .locks = 0 };
    struct trace trace;

    CHECK_OK(t, trace_init(&trace, "doors", 4));
    sm_init(&door.sm, &door_type, CLOSED, &door, &trace);
    CHECK_PANICS(t, "door: closed -> broken is not a move (axe)",
                 sm_move(&door.sm, BROKEN, 0, "axe"));
    CHECK_PANICS(t, "to < sm->type->count", sm_move(&door.sm, DOOR_STATES, 0, "through the wall"));
    door.locks = 1;
    CHECK_PANICS(t,
                 "door->locks == 0\nthe last 1 of 1 trace lines of doors:\n"
                 "[     0.000] door: closed -> open: key\n",
                 sm_move(&door.sm, OPEN, 0, "key"));
out:
    trace_release(&trace);
}

/* A ring of n states: each is followed by the next. */
static void make_ring(struct sm_state *states, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        states[i] = (struct sm_state){ "s", SM_BIT((i + 1) % count), SM_INITIAL };
}

TEST(tables_of_every_size_work)
{
    struct sm_state states[SM_STATES_MAX];

    for (unsigned count = 1; count <= SM_STATES_MAX; count++) {
        struct sm_type type = { "ring", states, count, NULL };
        struct sm sm;

        make_ring(states, count);
        sm_init(&sm, &type, count - 1, NULL, NULL);
        for (unsigned i = 0; i < count; i++) {
            CHECK(t, sm_may(&sm, i));
            CHECK(t, count == 1 || !sm_may(&sm, (i + 1) % count));
            sm_move(&sm, i, 0, "on");
            CHECK_INT(t, sm.state, ==, i);
        }
        CHECK(t, !sm_may(&sm, count));
    }
out:;
}

static void init_with(const struct sm_state *states, unsigned count, unsigned initial)
{
    struct sm_type type = { "bad", states, count, NULL };
    struct sm sm;

    sm_init(&sm, &type, initial, NULL, NULL);
}

TEST_FLAGS(panics_on_a_table_that_contradicts_itself, TEST_NO_TORTURE)
{
    struct sm_state states[SM_STATES_MAX];

    make_ring(states, SM_STATES_MAX);
    CHECK_PANICS(t, "type->count > 0", init_with(states, 0, 0));
    CHECK_PANICS(t, "type->count <= SM_STATES_MAX", init_with(states, SM_STATES_MAX + 1, 0));
    CHECK_PANICS(t, "initial < type->count", init_with(states, SM_STATES_MAX, SM_STATES_MAX));
    CHECK_PANICS(t, "state->next >> type->count == 0", init_with(states, SM_STATES_MAX - 1, 0));
    make_ring(states, 2);
    states[1].flags = 0;
    CHECK_PANICS(t, "& SM_INITIAL", init_with(states, 2, 1));
    states[1].flags = SM_FINAL;
    CHECK_PANICS(t, "SM_FINAL", init_with(states, 2, 0));
    states[1].flags = 0;
    states[1].next = 0;
    CHECK_PANICS(t, "SM_FINAL", init_with(states, 2, 0));
    make_ring(states, 2);
    states[1].name = NULL;
    CHECK_PANICS(t, "state->name", init_with(states, 2, 0));
    make_ring(states, 2);
    states[0].name = NULL;
    CHECK_PANICS(t, "state->name", init_with(states, 2, 1));
out:;
}
