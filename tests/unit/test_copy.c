/*
 * test_copy.c: deep copies of messages: a copy outlives its original, and a full arena changes
 * nothing.
 */
#include "proto/catalog.h"
#include "tests/lib/msg_random.h"
#include "tests/lib/test.h"

#define LIST_MAX 5

static struct arena arena;

/* Every field of every message, by the same table from which the others are made. */
TEST(every_message_is_copied)
{
    struct rng rng;
    struct msg msg;
    struct msg copy = { .type = MSG_BYE };

    arena_init(&arena, 1u << 20);
    rng_seed(&rng, 1);
    for (size_t i = 0; msg_kind_at(i); i++) {
        CHECK_OK(t, msg_random(msg_kind_at(i)->type, &rng, LIST_MAX, &arena, &msg));
        CHECK_OK(t, msg_copy(&msg, &copy));
        CHECK_TEXT(t, msg_difference(&msg, &copy), NULL);
        msg_release(&copy);
        copy = (struct msg){ .type = MSG_BYE };
    }
out:
    msg_release(&copy);
    arena_release(&arena);
}

TEST(a_copy_outlives_the_original)
{
    char text[] = "why";
    struct msg msg = { .type = MSG_BYE, .term = 3, .u.bye = { text } };
    struct msg copy = { .type = MSG_DONE };

    CHECK_OK(t, msg_copy(&msg, &copy));
    text[0] = 'W';
    CHECK_INT(t, copy.term, ==, 3);
    CHECK_TEXT(t, copy.u.bye.reason, "why");
out:
    msg_release(&copy);
}

TEST(a_text_that_is_missing_is_empty)
{
    struct msg msg = { .type = MSG_HELLO_AGENT };
    struct msg copy = { .type = MSG_DONE };

    arena_init(&arena, 1u << 20);
    CHECK_OK(t, msg_copy_into(&msg, &arena, &copy));
    CHECK_TEXT(t, copy.u.hello_agent.host, "");
    CHECK_INT(t, copy.u.hello_agent.slots.count, ==, 0);
out:
    arena_release(&arena);
}

/* Larger than the arena's first piece, so that each part of it can be refused. */
TEST(a_large_message_is_copied_or_not)
{
    static char text[3000];
    static const char *texts[600];
    static uint64_t ids[600];
    static struct msg_held held[600];
    static uint8_t bytes[5000];
    struct msg msg = { .type = MSG_LAUNCH };
    struct msg copy = { .type = MSG_DONE };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        texts[i] = "a text";
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = 'x';
    msg.u.launch.argv = (struct msg_texts){ texts, ARRAY_SIZE(texts) };
    msg.u.launch.cwd = text;
    CHECK_OK(t, msg_copy(&msg, &copy));
    CHECK_TEXT(t, copy.u.launch.argv.items[599], "a text");
    CHECK_TEXT(t, copy.u.launch.cwd, text);
    msg_release(&copy);
    msg = (struct msg){
        .type = MSG_REVOKE, .u.revoke = {{ ids, ARRAY_SIZE(ids) }, "why"}
    };
    CHECK_OK(t, msg_copy(&msg, &copy));
    msg_release(&copy);
    msg = (struct msg){
        .type = MSG_RECOVERING, .u.recovering = {.held = { held, ARRAY_SIZE(held) }, .text = ""}
    };
    CHECK_OK(t, msg_copy(&msg, &copy));
    msg_release(&copy);
    msg = (struct msg){ .type = MSG_OUTPUT, .u.output = { .data = { bytes, sizeof(bytes) } } };
    CHECK_OK(t, msg_copy(&msg, &copy));
    msg_release(&copy);
    msg = (struct msg){ .type = 0, .term = 4 };
    CHECK_OK(t, msg_copy(&msg, &copy));
    CHECK_INT(t, copy.term, ==, 4);
out:
    msg_release(&copy);
}

TEST(a_full_arena_leaves_the_target_alone)
{
    struct msg msg = { .type = MSG_BYE, .u.bye = { "a text that does not fit" } };
    struct msg copy = { .type = MSG_DONE, .term = 5 };

    arena_init(&arena, 8);
    CHECK_CODE(t, msg_copy_into(&msg, &arena, &copy), HVD_E_NOMEM);
    CHECK_INT(t, copy.type, ==, MSG_DONE);
    CHECK_INT(t, copy.term, ==, 5);
out:
    arena_release(&arena);
}
