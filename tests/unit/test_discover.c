/*
 * test_discover.c: the sources of discovery: a list of hosts, a file, and scripts that fail, hang,
 * print too much or leave child processes. One run of a script serves all requests that wait, and a
 * time limit ends the run. A watch is a script that keeps running and prints blocks of hosts.
 */
#include "discovery/sources/discover.h"

#include "base/log.h"
#include "base/time.h"
#include "discovery/format.h"
#include "tests/lib/fixture.h"
#include "tests/lib/scripts.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The newest answer: the hosts, such as "a:2 b:1", or the reason of a failure. */
static struct {
    struct event_base *base;
    struct discoverer *discoverer;
    bool free_at_once;
    unsigned calls;
    unsigned failures;
    char hosts[4096];
    char why[ERR_TEXT_MAX];
    char log[16384];
} heard;

static void free_it(void)
{
    discover_free(heard.discoverer);
    heard.discoverer = NULL;
}

static void on_hosts(void *arg, const struct hosts *hosts)
{
    struct buf text;

    (void)arg;
    if (heard.free_at_once)
        free_it();
    buf_init(&text, sizeof(heard.hosts) - 1);
    snprintf(heard.hosts, sizeof(heard.hosts), "no memory");
    if (!hosts_format_text(hosts, &text))
        snprintf(heard.hosts, sizeof(heard.hosts), "%s", buf_text(&text));
    buf_release(&text);
    heard.calls++;
}

static void on_failed(void *arg, const char *why)
{
    (void)arg;
    if (heard.free_at_once)
        free_it();
    snprintf(heard.why, sizeof(heard.why), "%s", why);
    heard.hosts[0] = '\0';
    heard.failures++;
    heard.calls++;
}

static void write_log(void *arg, const char *line, size_t length)
{
    size_t used = strlen(heard.log);

    (void)arg;
    snprintf(heard.log + used, sizeof(heard.log) - used, "%.*s", (int)length, line);
}

static int64_t no_time(void)
{
    return 0;
}

/* Starts a discoverer with this source and 30 s as its limit; clears what was heard before. */
static int begin(enum discover_kind kind, const char *source, struct hvd_err *err)
{
    static const struct discover_ops ops = { on_hosts, on_failed };
    static const struct log_sink sink = { write_log, no_time, NULL };
    const struct discover_config config = {
        .kind = kind, .value = source, .slots_per_host = 3, .limit_us = 30 * TIME_S
    };

    memset(&heard, 0, sizeof(heard));
    log_open(&sink);
    heard.base = event_base_new();
    if (!heard.base)
        abort();
    return discover_create(heard.base, &config, &ops, NULL, &heard.discoverer, err);
}

static void end(void)
{
    free_it();
    if (heard.base)
        event_base_free(heard.base);
    heard.base = NULL;
    log_open(NULL);
}

/* Turns the loop until something is said; asks first. */
static bool ask(void)
{
    unsigned was = heard.calls;

    discover_ask(heard.discoverer);
    return scripts_wait(heard.base, &heard.calls, was);
}

static bool next(void)
{
    return scripts_wait(heard.base, &heard.calls, heard.calls);
}

static size_t logged(const char *part)
{
    size_t count = 0;

    for (const char *at = heard.log; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

static void end_case(struct test *t)
{
    (void)t;
    end();
}
FIXTURE(NULL, end_case)

TEST(a_list_answers_from_the_loop)
{
    CHECK_OK(t, begin(DISCOVER_LIST, "a:2,b", NULL));
    discover_ask(heard.discoverer);
    CHECK_INT(t, heard.calls, ==, 0);
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "a:2\nb:3\n");
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:2\nb:3\n");
}

TEST(a_malformed_list_is_refused)
{
    struct hvd_err err;

    CHECK_CODE(t, begin(DISCOVER_LIST, "a:2,,b", &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "host list: entry 2");
    end();
    CHECK_CODE(t, begin(DISCOVER_LIST, "", &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "host list: the list has no hosts; write name:slots");
}

TEST(a_file_is_read_anew)
{
    const char *path = scripts_path(test_dir(t), "hosts.txt");

    scripts_put(path, "a slots=2\n[::1]:4\n", 0600);
    CHECK_OK(t, begin(DISCOVER_FILE, path, NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:2\n[::1]:4\n");
    scripts_put(path, "b\n", 0600);
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "b:3\n");
    scripts_put(path, "# no host today\n", 0600);
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "");
    CHECK_TEXT(t, heard.why, "");
}

TEST(a_file_that_went_bad_says_what_is_wrong)
{
    const char *path = scripts_path(test_dir(t), "hosts.txt");

    scripts_put(path, "a\n", 0600);
    CHECK_OK(t, begin(DISCOVER_FILE, path, NULL));
    unlink(path);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why,
              "hosts.txt: the file of hosts cannot be read: No such file or directory; write the "
              "hosts in this file");
    scripts_put(path, " \n\n", 0600);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "hosts.txt: is empty; write name:slots");
    scripts_put(path, "a\na b\n", 0600);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "hosts.txt: line 2: \"a b\"");
    CHECK_INT(t, heard.failures, ==, 3);
}

TEST(a_path_without_a_file_is_refused)
{
    const char *folder = test_dir(t);
    struct hvd_err err;

    CHECK_CODE(t, begin(DISCOVER_FILE, folder, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "is no regular file");
    end();
    CHECK_CODE(t, begin(DISCOVER_FILE, scripts_path(folder, "none"), &err), HVD_E_NOTFOUND);
    end();
    CHECK_CODE(t, begin(DISCOVER_FILE, "", &err), HVD_E_INVAL);
}

/* Sets the variables of batch systems, "NAME=VALUE", and removes all others. */
static void in_batch_job(const char *const *variables, size_t count)
{
    static const char *const names[] = { "LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "LSB_HOSTS",
                                         "PBS_NODEFILE",      "PE_HOSTFILE",    "COBALT_NODEFILE" };
    char name[32];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unsetenv(names[i]);
    for (size_t i = 0; i < count; i++) {
        const char *value = strchr(variables[i], '=') + 1;

        snprintf(name, sizeof(name), "%.*s", (int)(value - variables[i] - 1), variables[i]);
        if (setenv(name, value, 1))
            abort();
    }
}

/* The variables of an LSF job, as a user has shown them, and of jobs of PBS, SGE and Cobalt. */
TEST(a_batch_system_names_the_hosts_of_its_job)
{
    const char *path = scripts_path(test_dir(t), "nodes");
    char file[3][512];
    const struct {
        const char *system;
        const char *text; /* of the file `path` */
        const char *variables[3];
        const char *hosts;
    } jobs[] = {
        {"auto",
         "",                                        { "LSB_HOSTS=grid03 grid05 grid01 grid01", "LSB_MCPU_HOSTS=grid03 1 grid05 1 grid01 2" },
         "grid03:1\ngrid05:1\ngrid01:2\n"                                                                                                                         },
        { "lsf",
         "grid03\ngrid05\n",                        { "LSB_HOSTS=other", file[0], "PBS_NODEFILE=/none" },
         "grid03:3\ngrid05:3\n"                                                                                                                                   },
        { "lsf",  "",                               { "LSB_DJOB_HOSTFILE=", "LSB_HOSTS=a b a" },                                              "a:6\nb:3\n"        },
        { "auto", "node1\nnode1\nnode2\n",          { file[1] },                                                                              "node1:6\nnode2:3\n"},
        { "sge",  "c-12 16 all.q@c-12 UNDEFINED\n", { file[2] },                                                                              "c-12:16\n"         },
    };

    snprintf(file[0], sizeof(file[0]), "LSB_DJOB_HOSTFILE=%s", path);
    snprintf(file[1], sizeof(file[1]), "COBALT_NODEFILE=%s", path);
    snprintf(file[2], sizeof(file[2]), "PE_HOSTFILE=%s", path);
    for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
        size_t count = 0;

        while (count < ARRAY_SIZE(jobs[i].variables) && jobs[i].variables[count])
            count++;
        in_batch_job(jobs[i].variables, count);
        scripts_put(path, jobs[i].text, 0600);
        CHECK_OK(t, begin(DISCOVER_BATCH, jobs[i].system, NULL));
        CHECK(t, ask());
        CHECK_TEXT(t, heard.why, "");
        CHECK_TEXT(t, heard.hosts, jobs[i].hosts);
        end();
    }
}

/* The file is read for each answer; a file that is gone is a failure, and the job keeps its hosts.
 */
TEST(the_file_of_a_batch_job_is_read_anew)
{
    const char *path = scripts_path(test_dir(t), "nodes");
    char variable[512];
    const char *const variables[] = { variable };

    snprintf(variable, sizeof(variable), "PBS_NODEFILE=%s", path);
    in_batch_job(variables, 1);
    scripts_put(path, "a\nb\n", 0600);
    CHECK_OK(t, begin(DISCOVER_BATCH, "pbs", NULL));
    scripts_put(path, "a\nb\nc\n", 0600);
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\nb:3\nc:3\n");
    scripts_put(path, "\n", 0600);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "--batch-system pbs: PBS_NODEFILE: ");
    CHECK_HAS(t, heard.why, "nodes: names no host");
    unlink(path);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "cannot open: No such file or directory");
}

TEST(a_process_outside_of_a_batch_job_is_told_so)
{
    static const char *const two[] = { "LSB_HOSTS=a", "PE_HOSTFILE=/none" };
    static const char *const folder[] = { "PBS_NODEFILE=/tmp" };
    static const char *const half[] = { "LSB_MCPU_HOSTS=a 1 b" };
    struct hvd_err err;

    in_batch_job(NULL, 0);
    CHECK_CODE(t, begin(DISCOVER_BATCH, "lsf", &err), HVD_E_NOTFOUND);
    CHECK_TEXT(t, err.text,
               "--batch-system lsf: this process is in no batch job, as none of LSB_DJOB_HOSTFILE, "
               "LSB_MCPU_HOSTS, LSB_HOSTS is set; start the driver in the job's script, or name "
               "hosts with --hosts or --hostfile");
    end();
    CHECK_CODE(t, begin(DISCOVER_BATCH, "auto", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "PBS_NODEFILE, PE_HOSTFILE, COBALT_NODEFILE is set");
    end();
    CHECK_CODE(t, begin(DISCOVER_BATCH, "slurm", &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text,
              "--batch-system slurm: no such system is known; write auto, lsf, pbs, "
              "sge or cobalt; for Slurm see deploy/slurm.md");
    end();
    in_batch_job(two, 2);
    CHECK_CODE(t, begin(DISCOVER_BATCH, "auto", &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "--batch-system auto: both LSB_HOSTS and PE_HOSTFILE are set; write --batch-system "
               "lsf or --batch-system sge");
    end();
    CHECK_CODE(t, begin(DISCOVER_BATCH, "sge", &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "--batch-system sge: PE_HOSTFILE: /none: cannot open");
    end();
    in_batch_job(folder, 1);
    CHECK_CODE(t, begin(DISCOVER_BATCH, "auto", &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--batch-system pbs: PBS_NODEFILE: /tmp: is no regular file");
    end();
    in_batch_job(half, 1);
    CHECK_CODE(t, begin(DISCOVER_BATCH, "auto", &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "--batch-system lsf: LSB_MCPU_HOSTS: its text: line 1: \"b\": no number of slots "
               "follows this host; write one after each host");
}

/* The MPI operator of Kubernetes mounts such files in /etc/mpi. A pod without
 * a number has --slots-per-host slots. */
TEST(files_of_the_mpi_operator_are_read_as_they_are)
{
    const char *path = scripts_path(test_dir(t), "hostfile");

    scripts_put(path, "pi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=2\n",
                0444);
    CHECK_OK(t, begin(DISCOVER_FILE, path, NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "pi-worker-0.pi.default.svc:2\npi-worker-1.pi.default.svc:2\n");
    end();
    path = scripts_path(test_dir(t), "discover_hosts.sh");
    scripts_put(path,
                "#!/bin/sh\necho pi-worker-0.pi.default.svc:2\necho pi-worker-1.pi.default.svc\n",
                0555);
    CHECK_OK(t, begin(DISCOVER_SCRIPT, path, NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "pi-worker-0.pi.default.svc:2\npi-worker-1.pi.default.svc:3\n");
    end();
    path = scripts_path(test_dir(t), "no_pod_yet.sh");
    scripts_put(path, "#!/bin/sh\n", 0555);
    CHECK_OK(t, begin(DISCOVER_SCRIPT, path, NULL));
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "no_pod_yet.sh: printed nothing");
}

TEST(a_script_is_run_each_time)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(folder, "hosts.sh",
                                    "echo x >>runs; echo \"n$(wc -l <runs | tr -d ' '):2\"; cat"),
                      NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "n1:2\n");
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "n2:2\n");
    CHECK(t, scripts_no_children());
}

TEST(a_run_serves_all_callers)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(folder, "hosts.sh", "echo x >>runs; cat runs | tr x a"), NULL));
    discover_ask(heard.discoverer);
    discover_ask(heard.discoverer);
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\n");
    CHECK_TEXT(t, scripts_read(scripts_path(folder, "runs")), "x\n");
    CHECK_INT(t, heard.calls, ==, 1);
}

TEST(a_file_that_is_no_script_is_refused)
{
    const char *folder = test_dir(t);
    const char *path = scripts_path(folder, "hosts.sh");
    struct hvd_err err;

    CHECK_CODE(t, begin(DISCOVER_SCRIPT, path, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "hosts.sh: No such file or directory; give the path");
    end();
    scripts_put(path, "a\n", 0600);
    CHECK_CODE(t, begin(DISCOVER_SCRIPT, path, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "hosts.sh: is not an executable file; use chmod +x");
    end();
    CHECK_CODE(t, begin(DISCOVER_SCRIPT, folder, &err), HVD_E_DENIED);
    end();
    CHECK_CODE(t, begin(DISCOVER_WATCH, scripts_path(folder, "hosts.sh --all"), &err),
               HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "give only the path of a program");
}

TEST(a_bare_name_is_a_file_of_the_folder)
{
    const char *folder = test_dir(t);

    scripts_write(folder, "hosts.sh", "echo a");
    CHECK_INT(t, chdir(folder), ==, 0);
    CHECK_OK(t, begin(DISCOVER_SCRIPT, "hosts.sh", NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\n");
}

/* Each script fails with its text. */
static const struct {
    const char *body;
    const char *why;
} bad_scripts[] = {
    {"echo a; echo no cluster >&2; echo at all >&2; exit 3",
     "hosts.sh: exit code 3; run the program by hand to see why (standard error: no cluster)"                                                 },
    { "echo a; kill -TERM $$",
     "hosts.sh: ended by signal 15 (SIGTERM); run the program by hand to see why"                                                             },
    { "echo '<html>'; echo oops >&2",                        "hosts.sh: line 1: \"<html>\""                                                   },
    { "echo '<html>'; echo oops >&2",                        "(standard error: oops)"                                                         },
    { "printf 'a\\0b\\n'",                                   "a NUL byte; write text only"                                                    },
    { "",                                                    "hosts.sh: printed nothing; write name:slots"                                    },
    { "echo; echo ' '",                                      "hosts.sh: printed nothing; write name:slots"                                    },
    { "yes a",                                               "hosts.sh: printed more than 1048576 bytes, and was killed; write each host once"},
    { "yes x >&2 & echo $! >pid; exit 1",                    "hosts.sh: exit code 1"                                                          },
};

TEST_FLAGS(a_script_that_fails_says_why, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);
    const char *path = scripts_write(folder, "hosts.sh", "exit 1");

    CHECK_OK(t, begin(DISCOVER_SCRIPT, path, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(bad_scripts); i++) {
        scripts_write(folder, "hosts.sh", bad_scripts[i].body);
        CHECK(t, ask());
        CHECK_HAS(t, heard.why, bad_scripts[i].why);
        CHECK(t, scripts_no_children());
    }
    CHECK_INT(t, heard.failures, ==, ARRAY_SIZE(bad_scripts));
    CHECK(t, scripts_gone(scripts_path(folder, "pid")));
    scripts_write(folder, "hosts.sh", "echo a; echo b");
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\nb:3\n");
}

TEST(a_script_that_went_away_is_a_failure)
{
    const char *path = scripts_write(test_dir(t), "hosts.sh", "echo a");

    CHECK_OK(t, begin(DISCOVER_SCRIPT, path, NULL));
    scripts_put(path, "#!/no/such/shell\n", 0700);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "hosts.sh: the interpreter or loader of this program is missing");
    unlink(path);
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "hosts.sh: no such program");
    CHECK(t, scripts_no_children());
}

TEST_FLAGS(output_up_to_the_limit_is_fine, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(test_dir(t), "hosts.sh",
                                    "echo a; head -c 1048574 /dev/zero | tr '\\0' '\\n'"),
                      NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.why, "");
    CHECK_TEXT(t, heard.hosts, "a:3\n");
}

TEST_FLAGS(a_script_that_hangs_is_ended_with_all_it_started, TEST_NO_TORTURE)
{
    static const struct discover_ops ops = { on_hosts, on_failed };
    const char *folder = test_dir(t);
    struct discover_config config = { .kind = DISCOVER_SCRIPT, .slots_per_host = 1 };

    CHECK_OK(t, begin(DISCOVER_LIST, "a", NULL));
    free_it();
    config.value = scripts_write(folder, "hosts.sh",
                                 "trap '' TERM; echo $$ >first; tail -f /dev/null & echo $! "
                                 ">second; mkfifo gate; echo why >&2; echo x >ready; cat gate");
    config.limit_us = TIME_S;
    scripts_make_fifo(scripts_path(folder, "ready"));
    CHECK_OK(t, discover_create(heard.base, &config, &ops, NULL, &heard.discoverer, NULL));
    discover_ask(heard.discoverer); /* starts the script */
    scripts_hear(scripts_path(folder, "ready"));
    CHECK(t, next());
    CHECK_HAS(t, heard.why,
              "hosts.sh: did not end within 1s, and was killed; make the program faster");
    CHECK_HAS(t, heard.why, "(standard error: why)");
    CHECK(t, scripts_no_children());
    CHECK(t, scripts_gone(scripts_path(folder, "first")));
    CHECK(t, scripts_gone(scripts_path(folder, "second")));
}

/* The orphan has left the process group, so it stays alive and keeps the pipe open. */
TEST_FLAGS(an_orphan_with_the_pipe_causes_no_delay, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(folder, "hosts.sh",
                                    "mkfifo gate; setsid sh -c 'echo $$ >pid; read x <gate' & "
                                    "while [ ! -s pid ]; do :; done; echo a"),
                      NULL));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\n");
    CHECK(t, scripts_no_children());
    scripts_say(scripts_path(folder, "gate"), "x\n"); /* the pipe's reader is there */
    CHECK(t, scripts_gone(scripts_path(folder, "pid")));
}

TEST_FLAGS(complaints_are_logged_once_per_change, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(folder, "hosts.sh", "echo a; echo slow disk >&2; echo bad >&2"),
                      NULL));
    for (int i = 0; i < 3; i++)
        CHECK(t, ask());
    CHECK_INT(t, logged("hosts: "), ==, 2);
    CHECK_HAS(t, heard.log, "hosts.sh: on standard error: slow disk\n");
    CHECK_INT(t, logged("on standard error: bad\n"), ==, 1);
    scripts_write(folder, "hosts.sh", "echo a; echo other >&2");
    for (int i = 0; i < 3; i++)
        CHECK(t, ask());
    CHECK_INT(t, logged("on standard error: other\n"), ==, 1);
    CHECK_INT(t, heard.failures, ==, 0);
}

/* A run that prints nothing does not make the same complaint new; the end of a failure does. */
TEST_FLAGS(a_complaint_is_logged_again_after_a_recovery, TEST_NO_TORTURE)
{
    static const struct {
        const char *script;
        size_t logged;
    } runs[] = {
        {"echo a; echo old >&2",  1},
        { "echo a",               1},
        { "echo a; echo old >&2", 1},
        { "echo old >&2; exit 3", 1},
        { "exit 3",               1},
        { "echo old >&2; exit 3", 1},
        { "echo a",               1},
        { "echo old >&2; exit 3", 2},
    };
    const char *folder = test_dir(t);

    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        const char *path = scripts_write(folder, "hosts.sh", runs[i].script);

        if (i == 0)
            CHECK_OK(t, begin(DISCOVER_SCRIPT, path, NULL));
        CHECK(t, ask());
        CHECK_INT(t, logged("on standard error: old\n"), ==, runs[i].logged);
    }
    CHECK_INT(t, heard.failures, ==, 4);
}

TEST_FLAGS(a_gigabyte_of_complaints_is_read_and_forgotten, TEST_NO_TORTURE)
{
    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(test_dir(t), "hosts.sh",
                                    "echo first >&2; yes 'some words' | head -c 20000000 >&2; echo "
                                    "last >&2; exit 4"),
                      NULL));
    CHECK(t, ask());
    CHECK_HAS(t, heard.why,
              "exit code 4; run the program by hand to see why (standard error: first)");
    CHECK_INT(t, logged("last\n"), ==, 1);
    CHECK_INT(t, logged("\n"), <=, 16);
}

TEST_FLAGS(the_end_may_come_in_the_middle_of_a_run, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin(DISCOVER_SCRIPT,
                      scripts_write(folder, "hosts.sh",
                                    "tail -f /dev/null & echo $! >second; mkfifo gate; echo $$ "
                                    ">first; cat gate"),
                      NULL));
    discover_ask(heard.discoverer);
    CHECK(t, scripts_wait_line(heard.base, scripts_path(folder, "first")));
    free_it();
    CHECK(t, scripts_no_children());
    CHECK(t, scripts_gone(scripts_path(folder, "first")));
    CHECK(t, scripts_gone(scripts_path(folder, "second")));
    CHECK_INT(t, heard.calls, ==, 0);
}

TEST(a_callback_may_free_the_discovery)
{
    CHECK_OK(t, begin(DISCOVER_LIST, "a,b", NULL));
    heard.free_at_once = true;
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\nb:3\n");
    end();
    CHECK_OK(t, begin(DISCOVER_SCRIPT, scripts_write(test_dir(t), "hosts.sh", "exit 1"), NULL));
    heard.free_at_once = true;
    CHECK(t, ask());
    CHECK_HAS(t, heard.why, "exit code 1");
}

/* A watch that prints what the test writes into the pipe "say". It holds the pipe open, because a
 * pipe whose last reader ends loses what was written into it meanwhile. */
#define WATCH_FIFO "exec 3<>say; echo $$ >first; cat <&3"

static int begin_watch(const char *folder, const char *body)
{
    char text[512];

    snprintf(text, sizeof(text), "[ -p say ] || mkfifo say; echo x >>runs; %s", body);
    return begin(DISCOVER_WATCH, scripts_write(folder, "watch.sh", text), NULL);
}

/* A watch prints blocks piece by piece; each block that ends with an empty line is an answer, and
 * the last one is repeated on request. */
TEST_FLAGS(a_watch_tells_block_after_block, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);
    const char *fifo;

    CHECK_OK(t, begin_watch(folder, WATCH_FIFO));
    discover_ask(heard.discoverer);
    CHECK(t, scripts_wait_line(heard.base, scripts_path(folder, "first")));
    fifo = scripts_path(folder, "say");
    scripts_say(fifo, "a:2\nb:1\n\n");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "a:2\nb:1\n");
    scripts_say(fifo, "\n \n# none\n\r\n");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "");
    scripts_say(fifo, "old\n\nc");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "old:3\n");
    scripts_say(fifo, "\nd:1\n\n");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "c:3\nd:1\n");
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "c:3\nd:1\n");
    CHECK_INT(t, heard.failures, ==, 0);
    free_it();
    CHECK(t, scripts_no_children());
    CHECK(t, scripts_gone(scripts_path(folder, "first")));
}

TEST_FLAGS(a_block_that_is_none_is_a_failure_and_the_watch_goes_on, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);
    const char *fifo;

    CHECK_OK(t, begin_watch(folder, WATCH_FIFO));
    discover_ask(heard.discoverer);
    CHECK(t, scripts_wait_line(heard.base, scripts_path(folder, "first")));
    fifo = scripts_path(folder, "say");
    scripts_say(fifo, "<html>\n\n");
    CHECK(t, next());
    CHECK_HAS(t, heard.why, "watch.sh: line 1: \"<html>\"");
    CHECK(t, ask());
    CHECK_INT(t, heard.failures, ==, 2);
    scripts_say(fifo, "a\n\n");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "a:3\n");
    CHECK_TEXT(t, scripts_read(scripts_path(folder, "runs")), "x\n");
}

TEST_FLAGS(a_watch_that_ends_is_started_again, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin_watch(folder, "wc -l <runs | tr -d ' ' | tr 12 ab; echo hm >&2"));
    CHECK(t, ask());
    CHECK_TEXT(t, heard.hosts, "a:3\n");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "b:3\n");
    CHECK_INT(t, heard.failures, ==, 0);
    CHECK_HAS(t, heard.log,
              "watch.sh: the discovery program has ended; it is started again in 1s\n");
    CHECK_HAS(t, heard.log,
              "watch.sh: the discovery program has ended; it is started again in 2s\n");
    CHECK_INT(t, logged("on standard error: hm\n"), ==, 1);
}

TEST_FLAGS(a_watch_that_fails_says_so_and_tries_again, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin_watch(folder, "echo a; echo why >&2; [ -e good ] || exit 3; echo; cat say"));
    CHECK(t, ask());
    CHECK_HAS(t, heard.why,
              "watch.sh: exit code 3; run the program by hand to see why (standard error: why)");
    CHECK(t, ask());
    CHECK_INT(t, heard.failures, ==, 2);
    CHECK(t, !strstr(heard.log, "it is started again in"));
    scripts_put(scripts_path(folder, "good"), "", 0600);
    do /* on a busy machine the next run may have begun before, and then fails, too */
        CHECK(t, next());
    while (!*heard.hosts);
    CHECK_TEXT(t, heard.hosts, "a:3\n");
    CHECK_HAS(t, heard.log, "watch.sh: the discovery program is started again now\n");
}

TEST_FLAGS(a_watch_that_never_ends_a_block_is_stopped, TEST_NO_TORTURE)
{
    const char *folder = test_dir(t);

    CHECK_OK(t, begin_watch(folder, "echo $$ >first; yes a"));
    CHECK(t, ask());
    CHECK_HAS(
        t, heard.why,
        "watch.sh: printed more than 1048576 bytes, and was killed; end each block with a blank "
        "line");
    CHECK(t, scripts_no_children());
    CHECK(t, scripts_gone(scripts_path(folder, "first")));
}

TEST_FLAGS(a_silent_watch_keeps_no_caller_waiting, TEST_NO_TORTURE)
{
    static const struct discover_ops ops = { on_hosts, on_failed };
    const char *folder = test_dir(t);
    struct discover_config config = { .kind = DISCOVER_WATCH,
                                      .slots_per_host = 1,
                                      .limit_us = 300 * TIME_MS };

    CHECK_OK(t, begin(DISCOVER_LIST, "a", NULL));
    free_it();
    config.value =
        scripts_write(folder, "watch.sh", "mkfifo say; echo $$ >first; cat say; cat say");
    CHECK_OK(t, discover_create(heard.base, &config, &ops, NULL, &heard.discoverer, NULL));
    CHECK(t, ask());
    CHECK_HAS(t, heard.why,
              "watch.sh: the program has printed no hosts within 300ms; end each block with a "
              "blank line");
    CHECK(t, scripts_wait_line(heard.base, scripts_path(folder, "first")));
    scripts_say(scripts_path(folder, "say"), "a\n\n");
    CHECK(t, next());
    CHECK_TEXT(t, heard.hosts, "a:1\n");
}

/* A watch closes its output but goes on: after the limit it is killed, and the reason names it. */
TEST_FLAGS(a_watch_that_closes_its_output_is_ended, TEST_NO_TORTURE)
{
    static const struct discover_ops ops = { on_hosts, on_failed };
    const char *folder = test_dir(t);
    struct discover_config config = { .kind = DISCOVER_WATCH,
                                      .slots_per_host = 1,
                                      .limit_us = 300 * TIME_MS };

    CHECK_OK(t, begin(DISCOVER_LIST, "a", NULL));
    free_it();
    config.value = scripts_write(folder, "watch.sh",
                                 "mkfifo say; echo $$ >first; echo a; echo; exec >&-; cat say >&2");
    CHECK_OK(t, discover_create(heard.base, &config, &ops, NULL, &heard.discoverer, NULL));
    CHECK(t, ask());
    if (!heard.failures) /* on a busy machine the first block may come too late */
        CHECK(t, next());
    while (!strstr(heard.why, "the end of its output"))
        CHECK(t, next());
    CHECK_HAS(t, heard.why,
              "watch.sh: still ran 300ms after the end of its output, and was killed; run the "
              "program by hand to see why");
    CHECK(t, scripts_gone(scripts_path(folder, "first")));
}
