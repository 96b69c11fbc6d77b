/* test_session_states.c: the table of states in worker/core/README.md is that of the code. */
#include "worker/core/session_internal.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

static const char *const places[] = {
    [LOOP_AWAY] = "away",         [LOOP_WAITING] = "waiting",     [LOOP_ENTERING] = "entering",
    [LOOP_TRAINING] = "training", [LOOP_RESTORING] = "restoring",
};

/* "ready, left" as it stands in one cell of the table; "-" when the set is empty. */
static void list_names(char *out, size_t room, uint64_t bits, const char *(*name)(unsigned index))
{
    size_t length = 0;

    snprintf(out, room, "-");
    for (unsigned i = 0; bits >> i; i++) {
        if (bits >> i & 1)
            length +=
                (size_t)snprintf(out + length, room - length, "%s%s", length ? ", " : "", name(i));
    }
}

static const char *state_name(unsigned state)
{
    return session_state_name((enum session_state)state);
}

static const char *place_name(unsigned place)
{
    return places[place];
}

TEST(the_readme_has_the_table_of_the_code)
{
    static char text[65536];
    char row[512];
    char next[256];
    char loop[128];
    FILE *file = fopen(HVD_SOURCE_DIR "/worker/core/README.md", "re");
    size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

    CHECK(t, length > 0);
    for (unsigned i = 0; i < SESSION_STATE_COUNT; i++) {
        list_names(next, sizeof(next), session_type.states[i].next, state_name);
        list_names(loop, sizeof(loop), session_loop_allowed[i], place_name);
        snprintf(row, sizeof(row), "\n| %s | %s | %s |\n", state_name(i), next, loop);
        if (!strstr(text, row))
            fprintf(stderr, "worker/core/README.md lacks the row%s", row);
        CHECK(t, strstr(text, row) != NULL);
    }
out:
    if (file)
        fclose(file);
}
