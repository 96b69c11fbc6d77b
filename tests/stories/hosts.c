#include "tests/stories/story.h"

void a_host_joins(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 0);
    world_np(w, 2, 2, 4);
    world_train(w, 100);
    world_when(w, "all 2 train", TIME_S, list_host("b", 2));
    world_run(w);
    world_expect_rounds(w, "2 4");
    world_expect_told(w, "round 2 (switch): size 4");
    world_expect_exit(w, 0);
}
