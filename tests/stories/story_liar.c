/*
 * story_liar.c: the agent of host b was taken over, and lies. It says beside its true messages what
 * an honest agent never says. The other hosts train on; b may lose its own workers.
 */
#include "tests/stories/story.h"
#include "tests/world/world_lie.h"

static void story_three_hosts(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_host(w, "c", 2);
    story_job(w, 6, 2, 6, 400);
}

STORY(a_liar_speaks_for_others,
      "an agent speaks for workers of other hosts: these statements are refused")
{
    story_three_hosts(w);
    for (int i = 0; i < 4; i++)
        world_at(w, (10 + i) * TIME_S, lie("b", LIE_FOR_OTHERS));
    world_at(w, 24 * TIME_S, lie("b", LIE_FOR_NOBODY));
    world_at(w, 25 * TIME_S, lie("b", LIE_ROUND));
    world_at(w, 26 * TIME_S, lie("b", LIE_AGAIN));
    story_ends(w, "6", 0);
}

STORY(a_liar_says_hello_as_another, "refused with the reason; its own workers end, and come back")
{
    story_three_hosts(w);
    world_at(w, 10 * TIME_S, lie("b", LIE_HELLO_OTHER));
    world_at(w, 40 * TIME_S, lie("b", LIE_HELLO_TERM));
    world_train(w, 700);
    story_ends(w, "6 4 6 4 6", 0);
}

STORY(a_liar_claims_a_commit, "an agent claims a commit, and that its workers train from it")
{
    story_three_hosts(w);
    world_at(w, 10 * TIME_S, lie("b", LIE_COMMIT));
    story_ends(w, "6 6 6", 0);
}

STORY(a_liar_blames_another_host, "one host alone waits, since an hour: no other host is charged")
{
    story_three_hosts(w);
    world_at(w, 10 * TIME_S, lie("b", LIE_WAITS));
    story_ends(w, "6 6", 0);
}

STORY(a_liar_names_a_check, "a number that cannot be: the connection ends, and the host is charged")
{
    story_three_hosts(w);
    world_at(w, 10 * TIME_S, lie("b", LIE_CHECK));
    world_at(w, 20 * TIME_S, lie("b", LIE_NO_ADDRESS));
    story_ends(w, "6", 0);
}
