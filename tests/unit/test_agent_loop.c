/* The real hvd-agent (HVD_AGENT_PROGRAM) and its workers (shell commands and HVD_HELLO_PROGRAM),
 * with a driver that the test plays. The scene is the agent with the driver; `heard` has the
 * messages that the driver got, `printed` the output of the workers. */
#include "base/time.h"
#include "os/process.h"
#include "tests/lib/fake_driver.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

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
/* A command that prints the name and its pid, ignores SIGTERM, and never ends. */
#define STAYS(name) "trap '' TERM; echo " name "=$$.; exec tail -f /dev/null"

struct scene {
    struct fake_driver fake;
    char job[32];
    char more[512]; /* additional lines of the agent's configuration */
    char out[1024];
    char err[2048];
    int status;
    pid_t agent;
};

/* Starts an agent that connects to this driver. */
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

/* Starts an agent and waits for its hello. */
static bool serve(struct scene *scene)
{
    start(scene);
    return scene->status == 0 && scene->agent > 0 && fake_wait(&scene->fake, "HELLO_AGENT");
}

/* true: the agent, its socket and its workers are gone. */
static bool is_over(struct scene *scene)
{
    return fake_wait_childless(&scene->fake) && !fake_socket_name(scene->job, HOST);
}

static pid_t supervisor_of(pid_t agent)
{
    struct process_state state;

    return process_look(agent, &state) ? 0 : state.parent;
}

static struct scene scene;

static void begin_case(struct test *t)
{
    static unsigned serial;

    scene = (struct scene){ .status = -1 };
    snprintf(scene.job, sizeof(scene.job), "test-%d-%u", (int)getpid(), serial++);
    setenv("XDG_STATE_HOME", test_dir(t), 1);
    CHECK_INT(t, prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), ==, 0);
    CHECK_OK(t, fake_init(&scene.fake, NULL, scene.job, 1));
}

static void end_case(struct test *t)
{
    if (t->failed && scene.agent > 0 && !kill(scene.agent, SIGKILL))
        fake_wait_childless(&scene.fake);
    fake_release(&scene.fake);
}
FIXTURE(begin_case, end_case)

/* Three workers: one prints its variables and exits with 3, one kills itself, one cannot be
 * started. The driver hears of each, and STOP ends the agent. */
TEST_FLAGS(a_command_is_started_and_its_end_told, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    CHECK_HAS(t, buf_text(&scene.fake.heard), "job=\"test-");
    CHECK_HAS(t, buf_text(&scene.fake.heard), "host=\"127.0.0.2\"");
    CHECK(t, fake_socket_name(scene.job, HOST));
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
}

TEST_FLAGS(a_worker_that_ignores_sigterm_is_killed, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    fake_kill(&scene.fake, 7, S / 10);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "ended=2 value=9"));
    fake_stop(&scene.fake, S);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(a_stop_ends_everything, TEST_NO_TORTURE)
{
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
}

TEST_FLAGS(the_supervisor_leaves_nothing_of_a_killed_agent, TEST_NO_TORTURE)
{
    static struct file_bytes bytes;
    char log[256];

    snprintf(log, sizeof(log), "%s/new/folder/log", test_dir(t));
    snprintf(scene.more, sizeof(scene.more), "log-file = %s\n", log);
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "setsid sh -c \"" STAYS("b") "\" & " STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    CHECK(t, fake_wait_printed(&scene.fake, "b="));
    CHECK(t, !files_exist(log)); /* there was nothing to log */
    CHECK_INT(t, kill(scene.agent, SIGKILL), ==, 0);
    CHECK(t, fake_wait(&scene.fake, "closed"));
    CHECK(t, is_over(&scene));
    files_read(log, &bytes);
    CHECK_HAS(t, bytes.bytes,
              "the agent was killed by signal 9 (SIGKILL); its supervisor ends the processes of "
              "its workers");
}

TEST_FLAGS(an_agent_without_its_supervisor_ends_in_order, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "echo here; exec tail -f /dev/null");
    CHECK(t, fake_wait_printed(&scene.fake, "here"));
    CHECK_INT(t, kill(supervisor_of(scene.agent), SIGKILL), ==, 0);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "BYE"));
    /* ThreadSanitizer gives the supervisor a second thread. When the signal comes after the end of
     * the first thread, a supervisor is there for a moment longer. */
    if (!WITH_THREAD_SANITIZER)
        CHECK(t, !fake_heard(&scene.fake, "NOTICE"));
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(a_sigterm_is_a_notice_and_two_are_the_end, TEST_NO_TORTURE)
{
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
}

TEST_FLAGS(workers_end_when_no_driver_comes_back, TEST_NO_TORTURE)
{
    scene.fake.grace_us = S / 2;
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    fake_close(&scene.fake);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(a_wrong_key_is_not_heard, TEST_NO_TORTURE)
{
    snprintf(scene.more, sizeof(scene.more), "driver-grace = 500ms\nkey = ff%s\n", &FAKE_KEY[2]);
    start(&scene);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK(t, is_over(&scene)); /* the agent has given up */
    event_base_loop(scene.fake.base, EVLOOP_NONBLOCK);
    CHECK_TEXT(t, buf_text(&scene.fake.heard), "");
}

/* A second start, by a newer driver, finds the agent that runs: that agent changes to the newer
 * driver, and its worker goes on. */
TEST_FLAGS(a_second_agent_brings_word_of_another_driver, TEST_NO_TORTURE)
{
    struct fake_driver other = { .term = 0 };
    pid_t first;

    CHECK_OK(t, fake_init(&other, scene.fake.base, scene.job, 2));
    CHECK(t, serve(&scene));
    first = scene.agent;
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    start(&scene); /* from the same driver: nothing happens */
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, ==, first);
    start_for(&scene, &other);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, ==, first);
    CHECK(t, fake_wait(&other, "HELLO_AGENT term=1"));
    CHECK(t, fake_wait(&other, "LAUNCHED incarnation=7")); /* no worker was restarted */
    CHECK(t, fake_wait(&scene.fake, "closed"));
    CHECK_INT(t, kill(fake_printed_pid(&scene.fake, "a"), 0), ==, 0);
    fake_stop(&other, S / 10);
    CHECK(t, is_over(&scene));
    other.base = NULL; /* the base belongs to the scene */
    fake_close(&other);
    tls_free(other.tls);
    other.tls = NULL;
    fake_release(&other);
}

/* The job was stopped while its agent was started, and a new job uses the name at once. */
TEST_FLAGS(an_agent_without_a_driver_makes_room_for_another_job, TEST_NO_TORTURE)
{
    pid_t first;

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
}

TEST_FLAGS(an_agent_with_a_driver_refuses_another_job, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    snprintf(scene.more, sizeof(scene.more), "key = ff%s\n", &FAKE_KEY[2]);
    start(&scene);
    CHECK_INT(t, scene.status, ==, 1);
    CHECK_HAS(t, scene.err, "this agent works for another job of the name");
    CHECK_HAS(t, scene.err, "which has its driver");
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(a_second_agent_waits_for_one_that_ends, TEST_NO_TORTURE)
{
    pid_t first;

    CHECK(t, serve(&scene));
    first = scene.agent;
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    fake_stop(&scene.fake, S / 2); /* the worker does not end at once */
    fake_shell(&scene.fake, 8, 1, "true");
    CHECK(t, fake_wait(&scene.fake, "LAUNCH_FAILED incarnation=8")); /* the agent is ending */
    start(&scene);
    CHECK_INT(t, scene.status, ==, 0);
    CHECK_INT(t, scene.agent, !=, first);
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT"));
    /* the second agent knows no worker of the first agent */
    CHECK(t, !fake_heard(&scene.fake, "slots=1"));
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(a_second_agent_names_one_that_is_frozen, TEST_NO_TORTURE)
{
    char named[32];

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
}

/* Runs `hvd-agent --healthy`, with its output in scene.out and scene.err. */
static int ask_health(void)
{
    const char *const argv[] = { HVD_AGENT_PROGRAM, "--healthy", NULL };

    return fake_run_program(argv, "", scene.out, scene.err, sizeof(scene.err) / 2);
}

TEST_FLAGS(a_probe_asks_an_agent_how_it_is, TEST_NO_TORTURE)
{
    CHECK_INT(t, ask_health(), ==, 1);
    CHECK_HAS(t, scene.err, "no agent and no hvd-agent --join of this user runs on this host");
    CHECK_TEXT(t, scene.out, "");
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    CHECK_INT(t, ask_health(), ==, 0);
    CHECK_HAS(t, scene.out, " on host " HOST " is connected to its driver\n");
    CHECK_TEXT(t, scene.err, "");
    kill(scene.agent, SIGSTOP);
    CHECK_INT(t, ask_health(), ==, 1);
    CHECK_HAS(t, scene.err, "does not answer; if it is stopped or hangs, kill it");
    CHECK_TEXT(t, scene.out, "");
    kill(scene.agent, SIGCONT);
    fake_close(&scene.fake); /* the agent goes on without a driver, within its limits */
    CHECK_INT(t, ask_health(), ==, 0);
    CHECK_HAS(t, scene.out, " waits for its driver\n");
    kill(scene.agent, SIGINT);
    CHECK(t, is_over(&scene));
    CHECK_INT(t, ask_health(), ==, 1);
}

/* The file of an agent that was killed with its supervisor is left, with a name that any user could
 * take: a probe does not ask there. */
TEST_FLAGS(a_probe_asks_no_dead_agent, TEST_NO_TORTURE)
{
    char file[512];
    pid_t supervisor;

    CHECK(t, serve(&scene));
    supervisor = supervisor_of(scene.agent);
    kill(supervisor, SIGSTOP);
    kill(scene.agent, SIGKILL);
    kill(supervisor, SIGKILL);
    CHECK(t, is_over(&scene));
    snprintf(file, sizeof(file), "%s/hvd-elastic/%s/" HOST ".agent", getenv("XDG_STATE_HOME"),
             scene.job);
    CHECK(t, files_exist(file));
    CHECK_INT(t, ask_health(), ==, 1);
    CHECK_HAS(t, scene.err, "no agent and no hvd-agent --join of this user runs on this host");
}

/* When the older driver (term 1) starts the agent late, the agent dials it, although the agent
 * obeys the newer driver (term 2). The agent then sees the lower term, sends BYE, and goes back. */
TEST_FLAGS(an_older_driver_does_not_keep_the_agent, TEST_NO_TORTURE)
{
    struct fake_driver newer = { .term = 0 };

    CHECK_OK(t, fake_init(&newer, scene.fake.base, scene.job, 2));
    start_for(&scene, &newer);
    CHECK(t, fake_wait(&newer, "HELLO_AGENT"));
    fake_shell(&newer, 7, 0, STAYS("a"));
    CHECK(t, fake_wait(&newer, "LAUNCHED"));
    start(&scene); /* by the older driver */
    CHECK_INT(t, scene.status, ==, 0);
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT term=2"));
    CHECK(t, fake_wait(&scene.fake, "BYE"));           /* from the agent to the older driver */
    CHECK(t, fake_wait(&newer, "HELLO_AGENT term=2")); /* the agent is back */
    fake_stop(&newer, S / 10);
    CHECK(t, is_over(&scene));
    newer.base = NULL;
    fake_close(&newer);
    tls_free(newer.tls);
    newer.tls = NULL;
    fake_release(&newer);
}

TEST_FLAGS(a_worker_is_welcomed_with_its_page, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    fake_launch(&scene.fake, 7, 3,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "left", NULL });
    CHECK(t, fake_wait(&scene.fake, "LEFT incarnation=7")); /* always before EXITED */
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "ended=1"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "WELCOME_WORKER");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "rank=3 size=4");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "page of 7\n");
    /* the same is true of a program below a wrapper */
    fake_shell(&scene.fake, 8, 3, HVD_HELLO_PROGRAM " hello left; exit 5");
    CHECK(t, fake_wait(&scene.fake, "LEFT incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "value=5"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "page of 8\n");
    fake_stop(&scene.fake, S / 10);
    CHECK(t, is_over(&scene));
}

/* A killed worker's commit 71 stays with the agent. Its successor in the slot gets the commit at
 * once; a worker in another slot fetches it from the agent, and no source has commit 99. */
TEST_FLAGS(a_snapshot_outlives_its_worker, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    fake_launch(&scene.fake, 7, 0,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "commit=70",
                                       "commit=71", "snapshot=9", "snapshot=8", "wait", NULL });
    CHECK(t, fake_wait_printed(&scene.fake, "\nstate=127.0.0.1:"));
    CHECK(t, fake_wait_printed(&scene.fake, "snapshot holds 0\n"));
    CHECK(t, fake_wait_printed(&scene.fake, "snapshot holds 71\n"));
    CHECK(t, fake_wait_printed(&scene.fake, "this worker already has a snapshot"));
    fake_kill(&scene.fake, 7, 0);
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK(t, fake_wait(&scene.fake, "commit=71"));
    buf_clear(&scene.fake.printed);
    /* the successor finds the commit; a worker of another slot fetches it */
    fake_launch(&scene.fake, 8, 0,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "wait", NULL });
    CHECK(t, fake_wait_printed(&scene.fake, "snapshot holds 71\n"));
    fake_launch(&scene.fake, 9, 1,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "fetch=71",
                                       "fetch=99", "wait", NULL });
    CHECK(t, fake_wait_printed(&scene.fake, "local_bytes=3145728\nfetched it\n"));
    CHECK(t, fake_wait_printed(&scene.fake, "code=-17"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "no agent could send commit 0.99: slot 0 of 127");
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(another_manifest_does_not_take_the_older_commit_away, TEST_NO_TORTURE)
{
    CHECK(t, serve(&scene));
    fake_launch(
        &scene.fake, 7, 3,
        (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=9", "commit=70", NULL });
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    fake_launch(&scene.fake, 8, 3,
                (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "snapshot=8", NULL });
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=8"));
    CHECK(t, fake_wait(&scene.fake, "commit=70")); /* the new snapshot is empty */
    CHECK_HAS(t, buf_text(&scene.fake.printed), "snapshot holds 0\n");
    conn_drop(scene.fake.conn); /* the driver connects again */
    scene.fake.conn = NULL;
    CHECK(t, fake_wait(&scene.fake, "HELLO_AGENT"));
    CHECK(t, fake_wait(&scene.fake, "slots=2 kept=1 addresses=1"));
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(messages_of_workers_and_driver_are_passed_on, TEST_NO_TORTURE)
{
    struct msg drain = {
        .type = MSG_DRAIN, .term = 1, .u.drain = {5 * S, "for a test"}
    };

    CHECK(t, serve(&scene));
    for (uint32_t i = 0; i < 2; i++) {
        fake_launch(&scene.fake, 7 + i, i,
                    (const char *const[]){ HVD_HELLO_PROGRAM, "hello", "ready", "wait", NULL });
        CHECK(t, fake_wait(&scene.fake, "READY incarnation="));
    }
    fake_say(&scene.fake, &drain); /* to both workers */
    CHECK(t, fake_wait_printed(&scene.fake, "DRAIN term=1 left=5s reason=\"for a test\"\n"));
    drain.incarnation = 8;
    fake_say(&scene.fake, &drain); /* to one worker */
    CHECK(t, fake_wait_printed(&scene.fake, "DRAIN term=1 incarnation=8 left=5s"));
    CHECK(t, !strstr(buf_text(&scene.fake.printed), "DRAIN term=1 incarnation=7"));
    fake_stop(&scene.fake, 0);
    CHECK(t, is_over(&scene));
}

/* A stranger and another worker say hello as incarnation 7: the agent refuses both. */
TEST_FLAGS(no_worker_speaks_for_another_worker, TEST_NO_TORTURE)
{
    struct process_spec spec = { .in = -1, .out = -1, .err = -1 };
    const char *const lies[] = { HVD_HELLO_PROGRAM, "incarnation=7", "hello", NULL };
    static struct file_bytes bytes;
    char log[256];
    char command[512];
    pid_t pid;

    snprintf(log, sizeof(log), "%s/log", test_dir(t));
    snprintf(scene.more, sizeof(scene.more), "log-file = %s\n", log);
    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, STAYS("a"));
    CHECK(t, fake_wait_printed(&scene.fake, "a="));
    /* a process that is no worker */
    CHECK(t, fake_socket_name(scene.job, HOST));
    setenv("HVD_AGENT", fake_socket_name(scene.job, HOST), 1);
    spec.argv = lies;
    CHECK_OK(t, process_spawn(&spec, &pid, NULL));
    CHECK(t, fake_wait_end(pid));
    files_read(log, &bytes);
    CHECK_HAS(t, bytes.bytes, "refused: the process does not belong to this incarnation");
    /* another worker, with its own pid, with the pid of incarnation 7, and with an unknown
     * incarnation */
    snprintf(command, sizeof(command),
             HVD_HELLO_PROGRAM " incarnation=7 hello; " HVD_HELLO_PROGRAM
                               " incarnation=7 pid=%d hello;" HVD_HELLO_PROGRAM
                               " incarnation=99 hello; echo so",
             (int)fake_printed_pid(&scene.fake, "a"));
    fake_shell(&scene.fake, 8, 1, command);
    CHECK(t, fake_wait_printed(&scene.fake, "so\n"));
    CHECK(t, !strstr(buf_text(&scene.fake.printed), "WELCOME"));
    CHECK_HAS(t, buf_text(&scene.fake.printed), "the process does not belong to this incarnation");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "the pid in the hello is not that of the process");
    CHECK_HAS(t, buf_text(&scene.fake.printed), "no worker of this incarnation runs on this host");
    fake_stop(&scene.fake, S / 10);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(much_output_waits_and_all_of_it_comes, TEST_NO_TORTURE)
{
    const size_t bytes = 20 * 1000 * 1000;

    CHECK(t, serve(&scene));
    fake_shell(&scene.fake, 7, 0, "echo begin; head -c 20000000 /dev/zero | tr '\\0' x");
    CHECK(t, fake_wait_printed(&scene.fake, "begin"));
    CHECK(t, fake_wait(&scene.fake, "EXITED incarnation=7"));
    CHECK_INT(t, scene.fake.printed.length, ==, bytes + strlen("begin\n"));
    fake_stop(&scene.fake, S / 10);
    CHECK(t, is_over(&scene));
}

TEST_FLAGS(bad_options_end_the_agent_before_it_begins, TEST_NO_TORTURE)
{
    snprintf(scene.more, sizeof(scene.more), "beat = 1m\n");
    start(&scene);
    CHECK_INT(t, scene.status, ==, 2);
    CHECK_HAS(t, scene.err, "hvd-agent: beat: is not shorter than lease");
    CHECK(t, is_over(&scene));
}
