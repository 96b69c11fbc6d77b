#include "tests/stories/story.h"

void four_workers_finish(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_train(w, 20);
    world_run(w);
    world_expect_rounds(w, "4");
    world_expect_exit(w, 0);
}

void a_worker_dies(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_np(w, 4, 2, 4);
    world_train(w, 300);
    world_at(w, 9 * TIME_S, kill_worker("a", 1));
    world_run(w);
    world_expect_rounds(w, "4 3 4");
    world_expect_told(w, "a:1#2: signal 9");
    world_expect_exit(w, 0);
}
