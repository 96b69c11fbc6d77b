/* The commands of hvd-elastic that ask a driver (status, drain, events ...), against servers in
 * child processes, which stand for drivers. */
#include "driver/cli/cli.h"

#include "base/text.h"
#include "driver/cli/verbs.h"
#include "driver/control/control.h"
#include "driver/job_folder.h"
#include "tests/lib/fixture.h"

#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 12
#define LONG_NAME "a-name-that-makes-the-path-longer-than-an-address-holds"

/* ---- a driver ---- */

struct driver {
    struct event_base *base;
    struct control *control;
    struct events *events;
    unsigned rekeys; /* the fourth does not come to its end */
};

static int on_view(void *arg, struct core_view *ret_view, struct table_facts *ret_facts)
{
    (void)arg;
    ret_view->job = JOB_RUNNING;
    *ret_facts = (struct table_facts){ .job = "j", .state_dir = "/s" };
    return 0;
}

static void on_act(void *arg, const struct event *event)
{
    const struct timeval soon = { .tv_usec = 50000 };
    struct driver *driver = arg;

    if (event->kind == EVENT_REKEY) {
        control_reply(driver->control, event->ask, 0, "hosts that get a new key: 2");
        if (++driver->rekeys < 4)
            control_rekeying(driver->control, "the old keys are dead", true);
        else
            event_base_loopexit(driver->base, &soon);
    } else if (event->kind == EVENT_STOP) {
        event_base_loopexit(driver->base, &soon);
    } else {
        control_reply(driver->control, event->ask, strcmp(event->host, "x") ? 0 : HVD_E_NOTFOUND,
                      "x: no such host in this job; see 'hvd-elastic hosts'");
    }
}

#define STRANGER 12345 /* a user without a name */

NORETURN static void drive(const char *folder, int ready)
{
    static const struct control_ops ops = { on_view, on_act };
    struct driver driver = { .base = event_base_new() };
    char path[4096];
    bool fine = driver.base && !events_create(NULL, "j1", &driver.events, NULL);

    snprintf(path, sizeof(path), "%s/control", folder);
    if (fine) {
        events_add(driver.events, TRACE_INFO, NULL, "one");
        events_add(driver.events, TRACE_INFO, NULL, "two");
        fine =
            !control_create(driver.base, path, driver.events, &ops, &driver, &driver.control, NULL);
    }
    if (fine && write(ready, "y", 1) == 1)
        event_base_dispatch(driver.base);
    control_free(driver.control);
    events_free(driver.events);
    event_base_free(driver.base);
    _exit(0);
}

/* ---- the case's world ---- */

static char root[256]; /* where jobs are */
static pid_t drivers[4];
static size_t driver_count;

static bool make_job(const char *name, char folder[512])
{
    char path[600];
    int fd;

    snprintf(folder, 512, "%s/%s", root, name);
    snprintf(path, sizeof(path), "%s/job.db", folder);
    if (mkdir(folder, 0700))
        return false;
    fd = open(path, O_WRONLY | O_CREAT, 0600);
    return fd >= 0 && !close(fd);
}

/* Starts a driver of the job in the folder. user: the driver's user, if it is not ours; 0: it is.
 */
static bool start_driver_in(const char *folder, uid_t user)
{
    char ready;
    int ends[2];
    bool begun;
    pid_t pid;

    if (pipe(ends))
        return false;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
            _exit(1);
        drive(folder, ends[1]);
    }
    close(ends[1]);
    begun = pid > 0 && read(ends[0], &ready, 1) == 1;
    close(ends[0]);
    if (pid > 0)
        drivers[driver_count++] = pid;
    return begun;
}

static bool start_driver(const char *name)
{
    char folder[512];

    return make_job(name, folder) && start_driver_in(folder, 0);
}

static bool world_begin(struct test *t)
{
    const char *folder = test_dir(t);

    signal(SIGPIPE, SIG_IGN);
    driver_count = 0;
    snprintf(root, sizeof(root), "%s/hvd-elastic", folder);
    setenv("XDG_STATE_HOME", folder, 1);
    unsetenv("HVD_JOB");
    unsetenv("HVD_STATE_DIR");
    return !mkdir(root, 0700);
}

/* ---- asking ---- */

static char said[8192]; /* on standard output, then on standard error */
static int status;
static struct buf usage;

NORETURN static void ask_in_child(char *words, int out)
{
    char *argv[WORDS_MAX + 1] = { words };
    int argc = 0;

    while (words && argc < WORDS_MAX)
        argv[argc++] = strsep(&words, " ");
    argv[argc] = NULL;
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    exit(cli_is_verb(argv[1]) ? cli_main(argc, argv, NULL) : 77);
}

/* Runs a command line (words between single blanks) until `until` is printed; sends the signal. */
static bool ask_until(const char *line, const char *until, int signal_number)
{
    char words[512];
    size_t used = 0;
    int ends[2];
    ssize_t got;
    pid_t pid;
    int wait_status;

    snprintf(words, sizeof(words), "hvd-elastic %s", line);
    if (pipe(ends))
        return false;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        ask_in_child(words, ends[1]);
    }
    close(ends[1]);
    said[0] = '\0';
    while (pid > 0 && (got = read(ends[0], said + used, sizeof(said) - 1 - used)) > 0) {
        used += (size_t)got;
        said[used] = '\0';
        if (until && strstr(said, until)) {
            kill(pid, signal_number);
            until = NULL;
        }
    }
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &wait_status, 0) != pid || !WIFEXITED(wait_status))
        return false;
    status = WEXITSTATUS(wait_status);
    return true;
}

static bool ask(const char *line)
{
    return ask_until(line, NULL, 0);
}

/* ---- the cases ---- */

static void end_case(struct test *t)
{
    (void)t;
    for (size_t i = 0; i < driver_count; i++) {
        kill(drivers[i], SIGKILL);
        waitpid(drivers[i], NULL, 0);
    }
    driver_count = 0;
    buf_release(&usage);
}
FIXTURE(NULL, end_case)

TEST_FLAGS(asks_the_only_driver, TEST_NO_TORTURE)
{
    char folder[512];

    CHECK(t, world_begin(t));
    CHECK(t, make_job("dead", folder));
    CHECK(t, start_driver("alive"));
    CHECK(t, ask("status"));
    CHECK_INT(t, status, ==, 0);
    CHECK_HAS(t, said, "job        j: running\n");
    CHECK(t, ask("status --json alive"));
    CHECK_HAS(t, said, "{\"job\":\"j\",\"state\":\"running\"");
    CHECK(t, ask("hosts"));
    CHECK_HAS(t, said, "HOST  SLOTS");
    CHECK(t, ask("blacklist"));
    CHECK_TEXT(t, said, "no failure is counted against any host\n");
    CHECK(t, ask("events --lines 1"));
    CHECK(t, strstr(said, "Z two\n") && !strstr(said, "one"));
    CHECK(t, ask("drain a:1 --deadline 30s alive"));
    CHECK_INT(t, status, ==, 0);
    CHECK_TEXT(t, said, "a:1: is being drained within 30s\n");
    CHECK(t, ask("undrain --json a"));
    CHECK_TEXT(t, said, "{\"ok\":true,\"text\":\"a: may be used again\"}\n");
    CHECK(t, ask("blacklist clear a"));
    CHECK_TEXT(t, said, "a: its failures are forgotten\n");
    CHECK(t, ask("drain x"));
    CHECK_INT(t, status, ==, 1);
    CHECK_TEXT(t, said, "hvd-elastic: x: no such host in this job; see 'hvd-elastic hosts'\n");
    CHECK(t, ask("drain x --json"));
    CHECK_INT(t, status, ==, 1);
    CHECK_TEXT(
        t, said,
        "{\"ok\":false,\"text\":\"x: no such host in this job; see 'hvd-elastic hosts'\"}\n");
    CHECK(t, ask("stop"));
    CHECK_INT(t, status, ==, 0);
    CHECK_TEXT(t, said, "the job is being stopped\n");
    CHECK(t, ask("status alive"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "no driver of this job runs on this machine; if the job has not ended, ");
    CHECK_HAS(t, said, "'hvd-elastic --resume alive --state-dir /");
}

/* Root acts as the owner of the job. Only root can make jobs of other users, so the case tests
 * something only as root. */
TEST_FLAGS(root_looks_at_the_job_of_another_user, TEST_NO_TORTURE)
{
    char folder[512], file[600], line[600];
    char above[256];

    if (geteuid() != 0)
        return;
    CHECK(t, world_begin(t));
    /* The stranger may pass through the test's folders above the job. */
    snprintf(above, sizeof(above), "%s", root);
    for (int i = 0; i < 3; i++) {
        CHECK(t, !chmod(above, 0711));
        *strrchr(above, '/') = '\0';
    }
    CHECK(t, make_job("theirs", folder));
    snprintf(file, sizeof(file), "%s/job.db", folder);
    CHECK(t, !chown(folder, STRANGER, STRANGER) && !chown(file, STRANGER, STRANGER));
    CHECK(t, start_driver_in(folder, STRANGER));
    snprintf(line, sizeof(line), "status --state-dir %s", folder);
    CHECK(t, ask(line));
    CHECK_HAS(t, said, "job        j: running");
    CHECK_INT(t, status, ==, 0);
    snprintf(line, sizeof(line), "jobs --state-dir %s", folder);
    CHECK(t, ask(line));
    CHECK_HAS(t, said, "theirs  living    -     ");
    CHECK_INT(t, status, ==, 0);
    snprintf(line, sizeof(line), "status --state-dir %s", folder);
    /* A file that the stranger cannot read is not shown to root as a part of the stranger's job. */
    snprintf(file, sizeof(file), "%s/events.log", folder);
    CHECK(t, !symlink("/etc/shadow", file));
    CHECK(t, ask(line));
    CHECK_HAS(t, said, "/events.log: this name is a symbolic link (owner 0)");
    CHECK_INT(t, status, ==, 1);
    CHECK(t, !unlink(file));
    snprintf(line, sizeof(line), "stop --state-dir %s", folder);
    CHECK(t, ask(line));
    CHECK_TEXT(t, said, "the job is being stopped\n");
    CHECK_INT(t, status, ==, 0);
}

/* jobs.sh has the jobs of real drivers; here are those that a test of a minute cannot make. */
TEST_FLAGS(old_jobs_are_pruned, TEST_NO_TORTURE)
{
    const struct timespec old[2] = { { .tv_nsec = UTIME_NOW }, { .tv_sec = 1000000000 } };
    const struct job_write ended = { .ended = true, .code = 2, .text = "stopped by Ctrl-C" };
    struct job_folder_wish wish = { .job = "old" };
    struct job_folder folder;
    char path[600];

    CHECK(t, world_begin(t));
    CHECK(t, start_driver("alive"));
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    CHECK_OK(t, store_write(folder.store, &ended, 1, NULL));
    job_folder_release(&folder);
    wish.job = "open";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    job_folder_release(&folder);
    CHECK(t, ask("prune"));
    CHECK_TEXT(t, said, "ended jobs that were removed: 0\n");
    CHECK(t, ask("jobs --json"));
    CHECK_HAS(t, said, "{\"job\":\"old\",\"state\":\"ended\",\"code\":130,");
    CHECK_HAS(t, said, "{\"job\":\"alive\",\"state\":\"living\",\"code\":null,");
    /* The end of an old job: the file was not written for more than 30 days. */
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "old", "open", "alive" };

        snprintf(path, sizeof(path), "%s/%s/job.db", root, names[i]);
        CHECK(t, !utimensat(AT_FDCWD, path, old, 0));
    }
    CHECK(t, ask("prune --retain 100"));
    CHECK_TEXT(t, said, "ended jobs that were removed: 0\n");
    CHECK(t, ask("prune --json"));
    CHECK_TEXT(t, said, "{\"ok\":true,\"removed\":1}\n");
    CHECK(t, ask("jobs"));
    CHECK(t, !strstr(said, "old "));
    CHECK_HAS(t, said, "alive  living    -     -");
    CHECK_HAS(t, said, "open   orphaned  -     ");
    /* A prune was killed after it had given the folder another name. */
    snprintf(path, sizeof(path), "%s/.pruned-half-1", root);
    CHECK(t, !mkdir(path, 0700));
    CHECK(t, ask("prune"));
    CHECK_INT(t, status, ==, 0);
    CHECK(t, access(path, F_OK));
    CHECK(t, ask("prune --retain soon"));
    CHECK_INT(t, status, ==, 2);
    CHECK_HAS(t, said,
              "--retain: \"soon\": write a number of jobs, \"100\", or a time with a unit");
    CHECK(t, ask("prune --state-dir /x"));
    CHECK_INT(t, status, ==, 2);
    CHECK_HAS(t, said, "takes no --state-dir");
    CHECK(t, ask("jobs more"));
    CHECK_INT(t, status, ==, 2);
}

TEST_FLAGS(new_keys_are_waited_for, TEST_NO_TORTURE)
{
    CHECK(t, world_begin(t));
    CHECK(t, start_driver("j1"));
    CHECK(t, ask("rekey"));
    CHECK_TEXT(t, said, "hosts that get a new key: 2\nthe old keys are dead\n");
    CHECK_INT(t, status, ==, 0);
    CHECK(t, ask("rekey j1 --json"));
    CHECK_TEXT(t, said, "{\"ok\":true,\"text\":\"the old keys are dead\"}\n");
    CHECK(t, ask("rekey --no-wait"));
    CHECK_TEXT(t, said, "hosts that get a new key: 2\n");
    CHECK_INT(t, status, ==, 0);
    CHECK(t, ask("rekey"));
    CHECK_HAS(t, said,
              "hosts that get a new key: 2\nhvd-elastic: the driver has ended before all hosts had "
              "new keys; if the job goes on, its next driver changes the other keys, too");
    CHECK_INT(t, status, ==, 4);
    CHECK(t, ask("rekey j1"));
    CHECK_HAS(t, said, "no driver of this job runs on this machine");
    CHECK_INT(t, status, ==, 1);
    CHECK(t, ask("rekey j2"));
    CHECK_HAS(t, said, "j2: there is no such job in ");
    CHECK_INT(t, status, ==, 1);
    CHECK(t, ask("rekey a b"));
    CHECK_HAS(t, said, "b: one word too many");
    CHECK_INT(t, status, ==, 2);
}

TEST_FLAGS(several_drivers_are_named, TEST_NO_TORTURE)
{
    char line[512];

    CHECK(t, world_begin(t));
    CHECK(t, ask("status"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "no driver of yours runs on this machine");
    CHECK_HAS(t, said, "'hvd-elastic jobs' lists");
    CHECK(t, start_driver("j1"));
    CHECK(t, start_driver(LONG_NAME));
    CHECK(t, ask("status"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "2 jobs run here: ");
    CHECK_HAS(t, said, LONG_NAME);
    CHECK(t, ask("status j1"));
    CHECK_INT(t, status, ==, 0);
    CHECK(t, ask("status " LONG_NAME));
    CHECK_INT(t, status, ==, 0);
    CHECK(t, ask("status --job j1"));
    CHECK_INT(t, status, ==, 0);
    snprintf(line, sizeof(line), "status --state-dir %s/j1", root);
    CHECK(t, ask(line));
    CHECK_INT(t, status, ==, 0);
    setenv("HVD_JOB", "j1", 1); /* as in a worker */
    CHECK(t, ask("status"));
    CHECK_INT(t, status, ==, 0);
    CHECK(t, ask("status j3"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "j3: there is no such job in ");
    CHECK_HAS(t, said, "there are ");
    CHECK(t, ask("status --state-dir /no/such"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "/no/such: No such file or directory");
}

/* A verb without the name of a job names the jobs without a driver, and does nothing to them. */
TEST_FLAGS(a_job_without_a_driver_is_named, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = { .job = "o1" };
    struct job_folder folder;

    CHECK(t, world_begin(t));
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    job_folder_release(&folder);
    CHECK(t, ask("status"));
    CHECK_INT(t, status, ==, 1);
    CHECK_TEXT(t, said, "hvd-elastic: job o1 has no driver; name it: hvd-elastic status o1\n");
    CHECK(t, ask("stop"));
    CHECK_INT(t, status, ==, 1);
    CHECK_TEXT(t, said, "hvd-elastic: job o1 has no driver; name it: hvd-elastic stop o1\n");
    CHECK(t, ask("drain a"));
    CHECK_INT(t, status, ==, 1);
    CHECK_TEXT(t, said,
               "hvd-elastic: job o1 has no driver; take it over with: hvd-elastic --resume o1\n");
    CHECK(t, ask("blacklist clear a"));
    CHECK_HAS(t, said, "take it over with: hvd-elastic --resume o1\n");
    /* beside a driver that lives: a verb that has an answer for such a job names it */
    CHECK(t, start_driver("alive"));
    CHECK(t, ask("status"));
    CHECK_INT(t, status, ==, 0);
    CHECK_HAS(t, said, "job        j: running\n");
    CHECK_HAS(t, said, "hvd-elastic: job o1 has no driver; name it: hvd-elastic status o1\n");
    CHECK(t, ask("status --json"));
    CHECK(t, !strstr(said, "o1"));
    CHECK(t, ask("status alive"));
    CHECK(t, !strstr(said, "o1"));
    CHECK(t, ask("drain a"));
    CHECK_INT(t, status, ==, 0);
    CHECK(t, !strstr(said, "o1"));
    wish.job = "o2";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    job_folder_release(&folder);
    CHECK(t, ask("stop"));
    CHECK_INT(t, status, ==, 0);
    CHECK_HAS(t, said, "the job is being stopped\n");
    CHECK_HAS(t, said, "hvd-elastic: 2 jobs have no driver: o");
    CHECK_HAS(t, said, "; name one of them: hvd-elastic stop o");
}

/* The usage of the whole program names each verb once, in lines that a terminal holds. */
TEST(the_usage_has_all_verbs)
{
    struct span rest, line;

    buf_init(&usage, LIMIT_CONFIG_TEXT_BYTES);
    CHECK_OK(t, cli_append_usage(&usage));
    rest = (struct span){ buf_text(&usage), usage.length };
    while (span_next(&rest, '\n', &line))
        CHECK_INT(t, line.length, <=, 80);
    for (size_t i = 0; i < usage.length; i++)
        if (usage.data[i] == '\n')
            usage.data[i] = ' ';
    for (size_t i = 0; i < CLI_VERBS; i++) {
        const char *found;
        char word[64];

        snprintf(word, sizeof(word), " %s ", cli_verbs[i]->name);
        found = strstr(buf_text(&usage), word);
        CHECK(t, found && !strstr(found + 1, word));
    }
}

/* The driver has died inside the last line: of "round=17", a fact, only a part is there. */
TEST_FLAGS(the_page_of_a_job, TEST_NO_TORTURE)
{
    static const char text[] =
        "2026-11-21T07:36:04.743Z round 1: all 4 train (first 12ms: rebuild 1ms, state 2ms, first "
        "step 3ms)\n2026-11-21T07:36:04.747Z warning: </script><b>\n"
        "2026-11-21T07:36:04.748Z half\tjob=seen\tround=1";
    char folder[512];
    char path[600];
    FILE *file;

    CHECK(t, world_begin(t));
    CHECK(t, make_job("seen", folder));
    snprintf(path, sizeof(path), "%s/events.log", folder);
    file = fopen(path, "w");
    CHECK(t, file && fputs(text, file) >= 0 && !fclose(file));
    CHECK(t, ask("page seen"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "no driver of this job runs");
    CHECK(t, start_driver_in(folder, 0));
    /* the job.db of this world is empty, which no driver has made */
    CHECK(t, ask("page seen"));
    CHECK_INT(t, status, ==, 4);
    CHECK_HAS(t, said, "job.db");
    snprintf(path, sizeof(path), "%s/job.db", folder);
    CHECK(t, !unlink(path));
    CHECK(t, ask("page seen --json"));
    CHECK_INT(t, status, ==, 0);
    CHECK_HAS(t, said, "{\"live\":{\"status\":{\"job\":\"j\",\"state\":\"running\",");
    CHECK_HAS(t, said, "\"text\":\"two\",\"job\":\"j1\"}]},\"ended\":null,\"history\":{");
    CHECK_HAS(t, said, "\"began\":\"2026-11-21T07:36:04.743Z\",\"changes\":[{\"round\":1,");
    CHECK_HAS(t, said, "\"severity\":\"warning\",\"text\":\"</script><b>\"},");
    CHECK_HAS(t, said, "\"severity\":\"info\",\"text\":\"half\",\"job\":\"seen\"}]}}\n");
    CHECK(t, ask("page seen two"));
    CHECK_INT(t, status, ==, 2);
    CHECK(t, ask("page seen --follow"));
    CHECK_INT(t, status, ==, 2);
}

TEST_FLAGS(a_job_without_a_driver_has_left_its_events, TEST_NO_TORTURE)
{
    static const char text[] = "2026-11-21T07:36:04.743Z one\n"
                               "2026-11-21T07:36:04.747Z warning: two \"2\"\n";
    char folder[512];
    char path[600];
    FILE *file = NULL;

    CHECK(t, world_begin(t));
    CHECK(t, make_job("dead", folder));
    CHECK(t, ask("events dead"));
    CHECK_INT(t, status, ==, 1);
    CHECK_HAS(t, said, "no driver of this job runs");
    snprintf(path, sizeof(path), "%s/events.log", folder);
    file = fopen(path, "w");
    CHECK(t, file && fputs(text, file) >= 0 && !fclose(file));
    file = NULL;
    CHECK(t, ask("events dead"));
    CHECK_INT(t, status, ==, 0);
    CHECK_TEXT(t, said, text);
    CHECK(t, ask("events dead -n 1 --json"));
    CHECK_TEXT(t, said,
               "{\"time\":\"2026-11-21T07:36:04.747Z\",\"severity\":\"warning\","
               "\"text\":\"two \\\"2\\\"\"}\n");
    CHECK(t, ask("events dead -n 0"));
    CHECK_TEXT(t, said, "");
    /* the facts of a line stand behind a tab; this file ends inside the last line */
    file = fopen(path, "a");
    CHECK(t, file &&
                 fputs("2026-11-21T07:36:05.000Z three 3\tjob=dead\tround=3\n"
                       "2026-11-21T07:36:06.000Z debug: four\tjob=dead\tround=3",
                       file) >= 0 &&
                 !fclose(file));
    file = NULL;
    CHECK(t, ask("events dead -n 2"));
    CHECK_TEXT(t, said, "2026-11-21T07:36:05.000Z three 3\n2026-11-21T07:36:06.000Z debug: four\n");
    CHECK(t, ask("events dead -n 2 --json"));
    CHECK_TEXT(t, said,
               "{\"time\":\"2026-11-21T07:36:05.000Z\",\"severity\":\"info\","
               "\"text\":\"three 3\",\"job\":\"dead\",\"round\":3}\n"
               "{\"time\":\"2026-11-21T07:36:06.000Z\",\"severity\":\"debug\","
               "\"text\":\"four\",\"job\":\"dead\"}\n");
    CHECK(t, ask("events -f dead"));
    CHECK_INT(t, status, ==, 1);
    /* a file that was changed: nothing in it moves the cursor or asks the terminal */
    file = fopen(path, "w");
    CHECK(t, file && fputs("2026-11-21T07:36:04.743Z a\x1b[2K\x1b]52;c;QQ==\ab\rc\n", file) >= 0 &&
                 !fclose(file));
    file = NULL;
    CHECK(t, ask("events dead"));
    CHECK_TEXT(t, said, "2026-11-21T07:36:04.743Z a\\x1b[2K\\x1b]52;c;QQ==\\x07b\\x0dc\n");
    CHECK(t, ask("events dead --json"));
    CHECK(t, !strchr(said, '\x1b') && !strchr(said, '\a'));
    if (file)
        fclose(file);
}

TEST_FLAGS(following_ends_with_ctrl_c_or_the_driver, TEST_NO_TORTURE)
{
    CHECK(t, world_begin(t));
    CHECK(t, start_driver("j1"));
    CHECK(t, ask_until("events -f", "two\n", SIGINT));
    CHECK_INT(t, status, ==, 0);
}

TEST_FLAGS(says_what_is_wrong, TEST_NO_TORTURE)
{
    static const struct {
        const char *line, *says;
        int status;
    } wrong[] = {
        {"drain",                    "drain: the host is missing; write HOST or HOST:SLOT",   2 },
        { "blacklist clear",         "blacklist: the host is missing",                        2 },
        { "status a b",              "b: one word too many; see 'hvd-elastic status --help'", 2 },
        { "status a b c d",          "d: one word too many",                                  2 },
        { "status --jason",          "did you mean --json?",                                  2 },
        { "status a --job b",        "a: --job names another job, b",                         2 },
        { "status ../x",             "use only letters, digits",                              2 },
        { "drain a --deadline soon",
         "not a duration; write seconds or a unit: 90, 1.5s, 250ms, 10m, 1h30m\nTry 'hvd-elastic "
          "drain --help'.\n",                                                                 2 },
        { "status --help",           "usage: hvd-elastic status [JOB] [options]",             0 },
        { "blacklist -h",            "[clear HOST[:SLOT]] [JOB] [options]",                   0 },
        { "run",                     "",                                                      77},
    };

    CHECK(t, world_begin(t));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(t, ask(wrong[i].line));
        CHECK_HAS(t, said, wrong[i].says);
        CHECK_INT(t, status, ==, wrong[i].status);
    }
}
