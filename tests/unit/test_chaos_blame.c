/*
 * test_chaos_blame.c: how chaos reads whether a driver's log names what a fault has hit: levels,
 * whole names, victims that survive, workers whose host died too, and innocents.
 */
#include "tests/chaos/blame.h"

#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED "{worker}: killed by signal 9"

TEST(a_warning_or_an_error_names_each_victim)
{
    static const char log[] =
        "---- fault 1: two-workers-kill\n"
        "14:33:47.768 warning job: 127.0.0.2:0#3: killed by signal 9 (SIGKILL)\n"
        "14:33:47.769 error job: 127.0.0.3:1#12: killed by signal 9 (SIGKILL)\n"
        "14:33:47.770 info job: 127.0.0.1:0#4: killed by signal 9 (SIGKILL)\n"
        "[0 127.0.0.1:0] warning job: 127.0.0.1:0#4: killed by signal 9\n"
        "hvd-elastic: warning job: 127.0.0.1:0#4: killed by signal 9\n";
    struct blame blame = { .count = 0 };
    struct hvd_err err;
    uint32_t found = 0;

    blame_add(&blame, BLAME_WORKER, "127.0.0.2:0#3", 0);
    blame_add(&blame, BLAME_WORKER, "127.0.0.2:0#3", 0);
    blame_add(&blame, BLAME_WORKER, "127.0.0.3:1#12", 0);
    CHECK_INT(t, blame.count, ==, 2);
    CHECK_OK(t, blame_find(&blame, KILLED, log, &found, &err));
    CHECK_INT(t, found, ==, 2);

    /* a line of level info, of a worker, and of a program without a log do not count */
    blame_add(&blame, BLAME_WORKER, "127.0.0.1:0#4", 0);
    CHECK_CODE(t, blame_find(&blame, KILLED, log, &found, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "\"127.0.0.1:0#4: killed by signal 9\"");
out:;
}

TEST(a_name_is_found_only_as_a_whole_and_early)
{
    static const char log[] = "14:33:47.768 warning job: 127.0.0.2:0#31: killed\n"
                              "14:33:47.768 warning job: 127.0.0.22: gone\n"
                              "14:33:47.768 warning job: 1127.0.0.3: gone\n"
                              "14:33:47.768 warning job: 5.127.0.0.3: gone\n";
    struct blame blame = { .count = 0 };
    char late[BLAME_WITHIN + 100];
    struct hvd_err err;
    uint32_t found;

    blame_add(&blame, BLAME_WORKER, "127.0.0.2:0#3", 0);
    CHECK_CODE(t, blame_find(&blame, "{worker}", log, &found, &err), HVD_E_MISMATCH);
    blame = (struct blame){ .count = 0 };
    blame_add(&blame, BLAME_HOST, "127.0.0.2", 0);
    CHECK_CODE(t, blame_find(&blame, "{host}: gone", log, &found, &err), HVD_E_MISMATCH);
    blame = (struct blame){ .count = 0 };
    blame_add(&blame, BLAME_HOST, "127.0.0.3", 0);
    CHECK_CODE(t, blame_find(&blame, "{host}", log, &found, &err), HVD_E_MISMATCH);

    /* a name behind the first line of a wide terminal is no name */
    snprintf(late, sizeof(late), "14:33:47.768 warning job: %0*d 127.0.0.3", BLAME_WITHIN, 0);
    CHECK_CODE(t, blame_find(&blame, "{host}", late, &found, &err), HVD_E_MISMATCH);
    snprintf(late, sizeof(late), "14:33:47.768 warning job: 0 127.0.0.3 %0*d", BLAME_WITHIN, 0);
    CHECK_OK(t, blame_find(&blame, "{host}", late, &found, &err));
out:;
}

TEST(several_texts_and_texts_without_a_victim)
{
    static const char log[] = "9:00:00.000 warning job: the driver (pid 77) died\n"
                              "9:00:00.000 error store: /a/job.db: full\n";
    struct blame blame = { .count = 0 };
    struct hvd_err err;
    uint32_t found;

    blame_add(&blame, BLAME_DRIVER, "77", 0);
    blame_add(&blame, BLAME_THING, "/a/job.db", 0);
    CHECK_OK(t, blame_find(&blame, "(pid {driver}) died; {thing}: full; {host}; error store", log,
                           &found, &err));
    CHECK_INT(t, found, ==, 3);
    CHECK_CODE(t, blame_find(&blame, "{thing}: full; no such text", log, &found, &err),
               HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "\"no such text\"");
out:;
}

TEST(a_death_of_a_host_hides_its_workers)
{
    static const char log[] = "9:00:00.000 warning job: 127.0.0.2: the connection is gone\n";
    struct blame blame = { .count = 0 };
    struct hvd_err err;
    uint32_t found;

    blame_add(&blame, BLAME_WORKER, "127.0.0.2:0#3", 0);
    CHECK_CODE(t, blame_find(&blame, "{worker}; {host}: the", log, &found, &err), HVD_E_MISMATCH);
    blame_add(&blame, BLAME_HOST, "127.0.0.2", 0);
    CHECK_OK(t, blame_find(&blame, "{worker}; {host}: the", log, &found, &err));
    CHECK_INT(t, found, ==, 1);
    blame_add(&blame, BLAME_WORKER, "127.0.0.22:0#4", 0);
    CHECK_CODE(t, blame_find(&blame, "{worker}; {host}: the", log, &found, &err), HVD_E_MISMATCH);
out:;
}

TEST(a_process_that_was_harmed_is_named_only_if_it_ends)
{
    struct blame blame = { .count = 0 };
    int fds[2] = { -1, -1 };
    struct hvd_err err;
    uint32_t found;
    pid_t pid = -1;
    char byte;

    CHECK_INT(t, pipe(fds), ==, 0);
    pid = fork();
    if (pid == 0) {
        close(fds[1]);
        _exit((int)read(fds[0], &byte, 1)); /* ends when the test closes its end */
    }
    CHECK_INT(t, pid, >, 0);
    blame_add(&blame, BLAME_HOST, "127.0.0.2", pid);
    CHECK_OK(t, blame_find(&blame, "{host}", "", &found, &err));
    CHECK_INT(t, found, ==, 0);
    close(fds[1]);
    fds[1] = -1;
    CHECK_INT(t, waitpid(pid, NULL, 0), ==, pid);
    CHECK_CODE(t, blame_find(&blame, "{host}", "", &found, &err), HVD_E_MISMATCH);
out:
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

TEST(no_innocent_is_accused)
{
    static const char *const parts[] = { "127.0.0.1", "127.0.0.2", "/a/discover" };
    static const char log[] = "9:00:00.000 info job: 127.0.0.1:0#4: is ready\n"
                              "9:00:00.000 warning job: 127.0.0.2:1#5: killed\n";
    struct blame blame = { .count = 0 };
    struct hvd_err err;

    CHECK_CODE(t, blame_acquit(&blame, parts, 3, log, &err), HVD_E_MISMATCH);
    CHECK_HAS(t, err.text, "accuses 127.0.0.2");
    blame_add(&blame, BLAME_WORKER, "127.0.0.2:1#5", 0);
    CHECK_OK(t, blame_acquit(&blame, parts, 3, log, &err));
    CHECK_OK(t, blame_acquit(&blame, parts, 3,
                             "9:00:00.000 warning job: round 3 is revoked: 127.0.0.1:0#4: rank 1 "
                             "(#5 on 127.0.0.2) has ended\n"
                             "9:00:00.000 warning job: 127.0.0.2:1#5 has lost 127.0.0.1:0#4\n",
                             &err));

    /* the victims of the fault before may still be named, unless the job has come to rest; they
     * are not looked for */
    blame_begin(&blame, false);
    CHECK_OK(t, blame_acquit(&blame, parts, 3, log, &err));
    CHECK_OK(t, blame_find(&blame, "{worker}: nothing", log, &(uint32_t){ 0 }, &err));
    blame_begin(&blame, false);
    CHECK_INT(t, blame.count, ==, 0);
    blame_add(&blame, BLAME_WORKER, "127.0.0.2:1#5", 0);
    blame_begin(&blame, true);
    CHECK_CODE(t, blame_acquit(&blame, parts, 3, log, &err), HVD_E_MISMATCH);
    CHECK_OK(t, blame_acquit(&blame, parts, 3, "9:00:00.000 error net: 127.0.0.1:40213: no key\n",
                             &err));
    CHECK_CODE(t,
               blame_acquit(&blame, parts, 3, "9:00:00.000 error job: /a/discover: slow\n", &err),
               HVD_E_MISMATCH);
out:;
}
