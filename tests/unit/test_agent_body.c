/* The real hvd-agent, with a driver that is played here: HVD_AGENT_PROGRAM and HVD_HELLO_PROGRAM.
 */
#include "base/time.h"
#include "os/process.h"
#include "tests/lib/fake_driver.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
#define WITH_THREAD_SANITIZER true
#elif defined(__has_feature)
#define WITH_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define WITH_THREAD_SANITIZER false
#endif

#define HOST "127.0.0.2"
#define S    TIME_S
/* Prints the name and its pid, and stays whatever it is asked to do. */
#define STAYS(name) "trap '' TERM; echo " name "=$$.; exec tail -f /dev/null"

struct scene {
    struct fake_driver fake;
    char job[32];
    char more[512]; /* lines for the agent beside the usual ones */
    char out[1024];
    char err[2048];
    int status;
    pid_t agent;
};

static int begin(struct scene *scene)
{
    static unsigned serial;

    *scene = (struct scene){ .status = -1 };
    snprintf(scene->job, sizeof(scene->job), "test-%d-%u", (int)getpid(), serial++);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
        return HVD_E_IO;
    return fake_init(&scene->fake, NULL, scene->job, 1);
}

/* Starts an agent that dials this driver. */
static void start_for(struct scene *scene, const struct fake_driver *fake)
{
    char text[2048];

    snprintf(text, sizeof(text),
             "job = %s\nhost = " HOST "\nkey = " FAKE_KEY "\ndrivers = %s\nredial = 20ms\n"
             "kill-grace = 1s\ndriver-grace = 1m\nlog-file = /dev/null\n%s",
             scene->job, listener_address(fake->listener), scene->more);
    scene->status =
        fake_run_agent(HVD_AGENT_PROGRAM, text, scene->out, scene->err, sizeof(scene->err) / 2);
    if (!strncmp(scene->out, "pid ", 4))
        scene->agent = (pid_t)strtol(scene->out + 4, NULL, 10);
}

static void start(struct scene *scene)
{
    start_for(scene, &scene->fake);
}

/* Starts one and waits for its hello. */
static bool serve(struct scene *scene)
{
    start(scene);
    return scene->status == 0 && scene->agent > 0 && fake_wait(&scene->fake, "HELLO_AGENT");
}

/* Nothing is left of it. */
static bool is_over(struct scene *scene)
{
    return fake_wait_childless(&scene->fake) && !fake_socket_exists(scene->job, HOST);
}

static void end(struct scene *scene, const struct test *t)
{
    if (t->failed && scene->agent > 0 && !kill(scene->agent, SIGKILL))
        fake_wait_childless(&scene->fake);
    fake_release(&scene->fake);
}

static pid_t keeper_of(pid_t agent)
{
    struct process_state state;

    return process_look(agent, &state) ? 0 : state.parent;
}

static struct scene scene;

static void a_command_is_started_and_its_end_told(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    CHECK_HAS(t, buf_text(&scene.fake.heard), "job=\"test-");
    CHECK_HAS(t, buf_text(&scene.fake.heard), "host=\"127.0.0.2\"");
    CHECK(t, fake_socket_exists(scene.job, HOST));
    fake_shell(&scene.fake, 7, 3,
               "echo rank $HVD_RANK of $HOROVOD_SIZE, $GIVEN, on $HVD_HOST, by $HVD_AGENT.; "
               "echo beside >&2; exit 3");
    CHECK(t, fake_wait(&scene.fake, "LAUNCHED incarnation=7 slot=3 pid="));
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7 slot=3 pid="));
    CHECK(t, fake_wait(&scene.fake, "ended=1 value=3"));
    CHECK_HAS(t, buf_text(&scene.fake.printed),
              "rank 3 of 4, by the launch, on 127.0.0.2, by @hvd-agent/test-");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "beside\n");
    fake_shell(&scene.fake, 8, 3, "kill -9 $$");
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "ended=2 value=9"));
    fake_launch(&scene.fake, 9, 3, (const char *const[]){ "/nowhere/at/all", NULL });
    CHECK(t, fake_wait(&scene.fake, "LAUNCH_FAILED incarnation=9 slot=3 code=-5"));
    CHECK_HAS(t, buf_text(&scene.fake.heard), "/nowhere/at/all");
    fake_stop(&scene.fake, S);
    CHECK(t, fake_wait(&scene.fake, "BYE"));
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void who_ignores_sigterm_is_killed(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    fake_kill(&scene.fake, 7, S / 10);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "ended=2 value=9"));
    fake_stop(&scene.fake, S);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void a_stop_ends_everything(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    fake_shell(&scene.fake, 8, 1, "setsid sh -c \"" STAYS("b") "\" & wait");
    fake_shell(&scene.fake, 9, 2, "(setsid sh -c \"" STAYS("c") "\" &) ; exec tail -f /dev/null");
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    CHECK(t, fake_wait_printed(&scene.fake, "b="));
    CHECK(t, fake_wait_printed(&scene.fake, "c="));
    fake_stop(&scene.fake, S / 10);
    CHECK(t, fake_wait(&scene.fake, "BYE"));
    CHECK(t, fake_wait(&scene.fake, "closed"));
    CHECK(t, fake_heard(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_heard(&scene.fake, "EXITED incarnation=8"));
    CHECK(t, fake_heard(&scene.fake, "EXITED incarnation=9"));
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void the_keeper_leaves_nothing_of_a_killed_agent(struct test *t)
{
    static struct file_bytes bytes;
    char log[256];

    CHECK_OK(t, begin(&scene));
    snprintf(log, sizeof(log), "%s/new/folder/log", test_dir(t));
    snprintf(scene.more, sizeof(scene.more), "log-file = %s\n", log);
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "setsid sh -c \"" STAYS("b") "\" & " STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    CHECK(t, fake_wait_printed(&scene.fake, "b="));
    CHECK(t, !files_exist(log)); /* there was nothing to say */
    CHECK_INT(t, kill(scene.agent, SIGKILL), ==, 0);
    CHECK(t, fake_wait(&scene.fake, "closed"));
    CHECK(t, is_over(&scene));
    files_read(log, &bytes);
    CHECK_HAS(t, bytes.bytes, "agent: killed by signal 9; what was left of its workers is ended");
out:
    end(&scene, t);
}

static void without_its_keeper_it_ends_in_order(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "echo here; exec tail -f /dev/null");
    CHECK(t, fake_wait_printed(&scene.fake, "here"));
    CHECK_INT(t, kill(keeper_of(scene.agent), SIGKILL), ==, 0);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "BYE"));
    /* ThreadSanitizer gives the keeper a second thread, and the signal comes when the first is
     * gone: then there is still a keeper for a moment. */
    if (!WITH_THREAD_SANITIZER)
        CHECK(t, !fake_heard(&scene.fake, "NOTICE"));
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void a_sigterm_is_a_notice_and_two_are_the_end(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    snprintf(scene.more, sizeof(scene.more), "notice = 1m\n");
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "echo here; exec tail -f /dev/null");
    CHECK(t, fake_wait_printed(&scene.fake, "here"));
    kill(scene.agent, SIGTERM);
    CHECK(t, fake_wait(&scene.fake, "NOTICE"));
    CHECK(t, fake_wait(&scene.fake, "SIGTERM to the agent"));
    kill(scene.agent, SIGTERM);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "BYE"));
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void workers_end_when_no_driver_comes_back(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    scene.fake.grace_us = S / 2;
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    fake_close(&scene.fake);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void a_wrong_key_is_not_heard(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    snprintf(scene.more, sizeof(scene.more), "driver-grace = 500ms\nkey = ff%s\n", &FAKE_KEY[2]);
    start(&scene);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK(t, is_over(&scene)); /* it has given up */
    event_base_loop(scene.fake.base, EVLOOP_NONBLOCK);
    CHECK_TEXT(t, buf_text(&scene.fake.heard), "");
out:
    end(&scene, t);
}

static void a_second_agent_brings_word_of_another_driver(struct test *t)
{
    struct fake_driver other = { .term = 0 };
    pid_t first;

    CHECK_OK(t, begin(&scene));
    CHECK_OK(t, fake_init(&other, scene.fake.base, scene.job, 2));
    CHECK(t, serve(&scene));
    first = scene.agent;
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    start(&scene); /* the same driver again: nothing happens */
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, ==, first);
    start_for(&scene, &other);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, ==, first);
    CHECK(t, fake_wait(&other, "HELLO_AGENT term=1"));
    CHECK(t, fake_wait(&other, "LAUNCHED incarnation=7")); /* nothing was restarted */
    CHECK(t, fake_wait(&scene.fake, "closed"));
    CHECK_INT(t, kill(fake_printed_pid(&scene.fake, "a"), 0), ==, 0);
    fake_stop(&other, S / 10);
    CHECK(t, is_over(&scene));
out:
    other.base = NULL; /* it is the scene's */
    fake_close(&other);
    tls_free(other.tls);
    other.tls = NULL;
    fake_release(&other);
    end(&scene, t);
}

/* The job was stopped while its agent was started, and its name is used again at once. */
static void one_without_a_driver_makes_room_for_another_job(struct test *t)
{
    pid_t first;

    CHECK_OK(t, begin(&scene));
    snprintf(scene.more, sizeof(scene.more), "key = ff%s\n", &FAKE_KEY[2]);
    start(&scene);
    CHECK_INT(t, scene.status, ==, 0);
    first = scene.agent;
    scene.more[0] = '\0';
    start(&scene);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, !=, first);
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT"));
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void one_with_a_driver_refuses_another_job(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    snprintf(scene.more, sizeof(scene.more), "key = ff%s\n", &FAKE_KEY[2]);
    start(&scene);
    CHECK_INT(t, scene.status, ==, 1);
    CHECK_HAS(t, scene.err, "it works for another job of the name");
    CHECK_HAS(t, scene.err, "which has its driver");
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void a_second_agent_waits_for_one_that_ends(struct test *t)
{
    pid_t first;

    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    first = scene.agent;
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    fake_stop(&scene.fake, S / 2); /* a worker that takes its time */
    fake_shell(&scene.fake, 8, 1, "true");
    CHECK(t, fake_wait(&scene.fake, "LAUNCH_FAILED incarnation=8")); /* it is ending */
    start(&scene);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, !=, first);
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT"));
    CHECK(t, !fake_heard(&scene.fake, "slots=1")); /* it knows nothing of the first one's */
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void a_second_agent_names_one_that_is_frozen(struct test *t)
{
    char named[32];

    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    snprintf(named, sizeof(named), "(pid %d) does not answer", (int)scene.agent);
    kill(scene.agent, SIGSTOP);
    start(&scene);
    CHECK_INT(t, scene.status, ==, 1);
    CHECK_HAS(t, scene.err, named);
    CHECK_TEXT(t, scene.out, "");
    kill(scene.agent, SIGCONT);
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void an_older_driver_does_not_keep_it(struct test *t)
{
    struct fake_driver newer = { .term = 0 };

    CHECK_OK(t, begin(&scene));
    CHECK_OK(t, fake_init(&newer, scene.fake.base, scene.job, 2));
    start_for(&scene, &newer);
    CHECK(t, fake_wait(&newer, "HELLO_AGENT"));
    fake_shell(&newer, 7, 0, STAYS("a"));
    CHECK(t, fake_wait(&newer, "LAUNCHED"));
    start(&scene); /* a late start by the older driver, of term 1 */
    CHECK_INT(t, scene.status, ==, 0);
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT term=2"));
    CHECK(t, fake_wait(&scene.fake, "BYE"));           /* it says so */
    CHECK(t, fake_wait(&newer, "HELLO_AGENT term=2")); /* and is back */
    fake_stop(&newer, S / 10);
    CHECK(t, is_over(&scene));
out:
    newer.base = NULL;
    fake_close(&newer);
    tls_free(newer.tls);
    newer.tls = NULL;
    fake_release(&newer);
    end(&scene, t);
}

static void a_worker_is_welcomed_with_its_page(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_launch(&scene.fake, 7, 3,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "left", NULL });
    CHECK(t, fake_wait(&scene.fake, "LEFT incarnation=7")); /* before its end, always */
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "ended=1"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "WELCOME_WORKER");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "rank=3 size=4");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "page of 7\n");
    /* below a wrapper it is the same */
    fake_shell(&scene.fake, 8, 3, HVD_HELLO_PROGRAM " hello left; exit 5");
    CHECK(t, fake_wait(&scene.fake, "LEFT incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "value=5"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "page of 8\n");
    fake_stop(&scene.fake, S / 10);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void a_snapshot_outlives_its_worker(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_launch(&scene.fake, 7, 0,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "commit=70",
                                       "commit=71", "snapshot=9", "snapshot=8", "wait", NULL });
    CHECK(t, fake_wait_printed(&scene.fake, "\nstate=127.0.0.1:"));
    CHECK(t, fake_wait_printed(&scene.fake, "snapshot holds 0\n"));
    CHECK(t, fake_wait_printed(&scene.fake, "snapshot holds 71\n"));
    CHECK(t, fake_wait_printed(&scene.fake, "it was granted a snapshot of another manifest"));
    fake_kill(&scene.fake, 7, 0);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "commit=71"));
    buf_clear(&scene.fake.printed);
    /* its successor finds it; a neighbour fetches it, and is killed in the middle of nothing */
    fake_launch(&scene.fake, 8, 0,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "wait", NULL });
    CHECK(t, fake_wait_printed(&scene.fake, "snapshot holds 71\n"));
    fake_launch(&scene.fake, 9, 1,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "fetch=71",
                                       "fetch=99", "wait", NULL });
    CHECK(t, fake_wait_printed(&scene.fake, "local_bytes=3145728\nfetched it\n"));
    CHECK(t, fake_wait_printed(&scene.fake, "code=-17"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "nobody is left to fetch it from: slot 0 of 127");
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void another_manifest_does_not_take_the_older_commit_away(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_launch(
        &scene.fake, 7, 3,
        (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "commit=70", NULL });
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    fake_launch(&scene.fake, 8, 3,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=8", NULL });
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "commit=70")); /* the new one holds nothing */
    CHECK_HAS(t, buf_text(&scene.fake.printed), "snapshot holds 0\n");
    conn_drop(scene.fake.conn); /* the driver comes back */
    scene.fake.conn = NULL;
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT"));
    CHECK(t, fake_wait(&scene.fake, "slots=2 kept=1"));
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void what_workers_and_driver_say_is_passed_on(struct test *t)
{
    struct msg drain = {
        .type = MSG_DRAIN, .term = 1, .u.drain = {5 * S, "for a test"}
    };

    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    for (uint32_t i = 0; i < 2; i++) {
        fake_launch(&scene.fake, 7 + i, i,
                    (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "ready", "wait", NULL });
        CHECK(t, fake_wait(&scene.fake, "READY incarnation="));
    }
    fake_say(&scene.fake, &drain); /* to both */
    CHECK(t, fake_wait_printed(&scene.fake, "DRAIN term=1 left=5s reason=\"for a test\"\n"));
    drain.incarnation = 8;
    fake_say(&scene.fake, &drain); /* to one */
    CHECK(t, fake_wait_printed(&scene.fake, "DRAIN term=1 incarnation=8 left=5s"));
    CHECK(t, !strstr(buf_text(&scene.fake.printed), "DRAIN term=1 incarnation=7"));
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void nobody_speaks_for_another_worker(struct test *t)
{
    struct process_spec spec = { .in = -1, .out = -1, .err = -1 };
    const char *const lies[] = { HVD_HELLO_PROGRAM, "incarnation=7", "hello", NULL };
    static struct file_bytes bytes;
    char agent[128];
    char log[256];
    char command[512];
    pid_t pid;

    CHECK_OK(t, begin(&scene));
    snprintf(log, sizeof(log), "%s/log", test_dir(t));
    snprintf(scene.more, sizeof(scene.more), "log-file = %s\n", log);
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    /* a process that is no worker */
    snprintf(agent, sizeof(agent), "@hvd-agent/%s/" HOST, scene.job);
    setenv("HVD_AGENT", agent, 1);
    spec.argv = lies;
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK(t, fake_wait_end(pid));
    files_read(log, &bytes);
    CHECK_HAS(t, bytes.bytes, "refused: it is no process of this incarnation");
    /* another worker, with its own pid and with the pid of whom it means */
    snprintf(command, sizeof(command),
             HVD_HELLO_PROGRAM " incarnation=7 hello; " HVD_HELLO_PROGRAM
                               " incarnation=7 pid=%d hello;" HVD_HELLO_PROGRAM
                               " incarnation=99 hello; echo so",
             (int)fake_printed_pid(&scene.fake, "a"));
    fake_shell(&scene.fake, 8, 1, command);
    CHECK(t, fake_wait_printed(&scene.fake, "so\n"));
    CHECK(t, !strstr(buf_text(&scene.fake.printed), "WELCOME"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "no process of this incarnation");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "the pid in its hello is not its own");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "no such incarnation runs here");
    fake_stop(&scene.fake, S / 10);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void much_output_waits_and_all_of_it_comes(struct test *t)
{
    const size_t bytes = 20 * 1000 * 1000;

    CHECK_OK(t, begin(&scene));
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "echo begin; head -c 20000000 /dev/zero | tr '\\0' x");
    CHECK(t, fake_wait_printed(&scene.fake, "begin"));
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK_INT(t, scene.fake.printed.length, ==, bytes + strlen("begin\n"));
    fake_stop(&scene.fake, S / 10);
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

static void bad_options_end_it_before_it_begins(struct test *t)
{
    CHECK_OK(t, begin(&scene));
    snprintf(scene.more, sizeof(scene.more), "beat = 1m\n");
    start(&scene);
    CHECK_INT(t, scene.status, ==, 2);
    CHECK_HAS(t, scene.err, "hvd-agent: beat: is not shorter than lease");
    CHECK(t, is_over(&scene));
out:
    end(&scene, t);
}

#define ALONE(function) CASE_FLAGS(function, TEST_NO_TORTURE)

TESTS(ALONE(a_command_is_started_and_its_end_told), ALONE(who_ignores_sigterm_is_killed),
      ALONE(a_stop_ends_everything), ALONE(the_keeper_leaves_nothing_of_a_killed_agent),
      ALONE(without_its_keeper_it_ends_in_order), ALONE(a_sigterm_is_a_notice_and_two_are_the_end),
      ALONE(workers_end_when_no_driver_comes_back), ALONE(a_wrong_key_is_not_heard),
      ALONE(a_second_agent_brings_word_of_another_driver),
      ALONE(one_without_a_driver_makes_room_for_another_job),
      ALONE(one_with_a_driver_refuses_another_job), ALONE(a_second_agent_waits_for_one_that_ends),
      ALONE(a_second_agent_names_one_that_is_frozen),
      ALONE(what_workers_and_driver_say_is_passed_on), ALONE(an_older_driver_does_not_keep_it),
      ALONE(a_snapshot_outlives_its_worker),
      ALONE(another_manifest_does_not_take_the_older_commit_away),
      ALONE(a_worker_is_welcomed_with_its_page), ALONE(nobody_speaks_for_another_worker),
      ALONE(much_output_waits_and_all_of_it_comes), ALONE(bad_options_end_it_before_it_begins))
