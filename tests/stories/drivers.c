#include "tests/stories/story.h"

void the_driver_dies(struct world *w)
{
    world_host(w, "a", 2);
    world_host(w, "b", 2);
    world_train(w, 100);
    world_when(w, "all 4 train", 2 * TIME_S, kill_driver());
    world_run(w);
    world_expect_rounds(w, "4"); /* nobody has noticed */
    world_expect_told(w, "term 2");
    world_expect_exit(w, 0);
}
