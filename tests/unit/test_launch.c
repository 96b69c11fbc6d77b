/*
 * test_launch.c: agents are started locally, by ssh and by the command of --launcher: what is on
 * the command line and what must not be there, and a start that fails or hangs. Scripts stand in
 * for ssh and for rsh.
 */
#include "driver/launch/launch.h"

#include "base/buf.h"
#include "base/time.h"
#include "tests/lib/fixture.h"
#include "tests/lib/scripts.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY "key = 00112233445566778899aabbccddeeff\n"

static struct {
    struct event_base *base;
    struct launcher *launcher;
    struct launch_config config;
    const char *folder;
    bool free_at_once;
    const char *start_next; /* this host is started in the callback of another host */
    unsigned calls;
    unsigned started;
    char said[8192]; /* results in order, such as "+a -b +c " (+: started) */
    char why[ERR_TEXT_MAX];
} heard;

/* Notes a callback; starts heard.start_next or frees the launcher in it, when a test asks for
 * this. */
static void note(char sign, const char *host)
{
    size_t used = strlen(heard.said);
    const char *next = heard.start_next;

    snprintf(heard.said + used, sizeof(heard.said) - used, "%c%s ", sign, host);
    heard.calls++;
    heard.start_next = NULL;
    if (next && launch_start(heard.launcher, next, false, KEY, NULL))
        heard.calls++; /* no memory: no callback will follow */
    if (heard.free_at_once) {
        launch_free(heard.launcher);
        heard.launcher = NULL;
    }
}

static void on_started(void *arg, const char *host)
{
    (void)arg;
    heard.started++;
    note('+', host);
}

static void on_failed(void *arg, const char *host, const char *why)
{
    (void)arg;
    snprintf(heard.why, sizeof(heard.why), "%s", why);
    note('-', host);
}

/* The script that stands in for ssh: $host and $remote are its last two arguments; the test writes
 * the rest with play. */
static const char fake_ssh[] = "printf '<%s>' ssh \"$@\" >>argv; echo >>argv; env >>environment\n"
                               "for word; do host=$remote; remote=$word; done\n"
                               ". ./play";

static const char *const by_rsh[] = { "rsh", "-K", NULL };
static const char fake_rsh[] = "printf '<%s>' rsh \"$@\" >>argv; echo >>argv; env >>environment\n"
                               "host=$2 remote=$3\n"
                               ". ./play";

static void play(const char *text)
{
    scripts_put(scripts_path(heard.folder, "play"), text, 0600);
}

static int create(struct hvd_err *err)
{
    static const struct launch_ops ops = { on_started, on_failed };

    return launch_create(heard.base, &heard.config, &ops, NULL, &heard.launcher, err);
}

static bool wait_for(unsigned calls)
{
    while (heard.calls < calls)
        if (!scripts_wait(heard.base, &heard.calls, heard.calls))
            return false;
    return true;
}

static int start(const char *host)
{
    return launch_start(heard.launcher, host, false, KEY, NULL);
}

/* Returns the content of the file in the test's folder. */
static const char *content(const char *name)
{
    return scripts_read(scripts_path(heard.folder, name));
}

static struct buf input;

static void begin_case(struct test *t)
{
    char path[600];

    memset(&heard, 0, sizeof(heard));
    signal(SIGPIPE, SIG_IGN);
    heard.folder = test_dir(t);
    heard.base = event_base_new();
    if (!heard.base)
        abort();
    scripts_write(heard.folder, "ssh", fake_ssh);
    scripts_write(heard.folder, "rsh", fake_rsh);
    play("cat >input.$host");
    snprintf(path, sizeof(path), "%s:/usr/local/bin:/usr/bin:/bin", heard.folder);
    setenv("PATH", path, 1);
    heard.config = (struct launch_config){ .local_path = "/no/such/hvd-agent",
                                           .limit_us = 60 * TIME_S,
                                           .parallel = 4 };
}

static void end_case(struct test *t)
{
    (void)t;
    buf_release(&input);
    launch_free(heard.launcher);
    heard.launcher = NULL;
    if (heard.base)
        event_base_free(heard.base);
    heard.base = NULL;
}
FIXTURE(begin_case, end_case)

TEST(a_local_agent_reads_its_input)
{
    heard.config.local_path =
        scripts_write(heard.folder, "hvd-agent", "echo \"$@\" >argv; cat >input; echo pid 77");
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, launch_start(heard.launcher, "127.0.0.2", true, KEY, NULL));
    CHECK_INT(t, heard.calls, ==, 0);
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+127.0.0.2 ");
    CHECK_TEXT(t, content("argv"), "--stdin\n");
    CHECK_TEXT(t, content("input"), KEY);
    CHECK(t, scripts_no_children());
}

TEST(ssh_is_told_all_but_the_key)
{
    static const char *const args[] = { "-o", "ConnectTimeout=3", NULL };

    heard.config.ssh_port = 2222;
    heard.config.ssh_identity_file = "/dev/null";
    heard.config.ssh_host_keys = "accept-new";
    heard.config.ssh_args = args;
    heard.config.agent_path = "/opt/it's/hvd agent";
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n7"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+n7 ");
    CHECK_TEXT(t, content("argv"),
               "<ssh><-T><-o><BatchMode=yes><-p><2222><-i></dev/null>"
               "<-o><StrictHostKeyChecking=accept-new><-o><ConnectTimeout=3>"
               "<-o><IdentitiesOnly=yes><-o><ConnectTimeout=10><-o><ServerAliveInterval=5>"
               "<-o><ServerAliveCountMax=3><--><n7><exec '/opt/it'\\''s/hvd agent' --stdin>\n");
    CHECK(t, !strstr(content("environment"), "00112233"));
    CHECK_TEXT(t, content("input.n7"), KEY);
}

TEST(another_command_gets_the_host_and_the_command_line)
{
    heard.config.launcher = by_rsh;
    heard.config.agent_path = "/opt/hvd-agent";
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n7"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+n7 ");
    CHECK_TEXT(t, content("argv"), "<rsh><-K><n7><exec '/opt/hvd-agent' --stdin>\n");
    CHECK(t, !strstr(content("environment"), "00112233"));
    CHECK_TEXT(t, content("input.n7"), KEY);
}

TEST(an_address_is_a_host_too)
{
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("fe80::1%eth0"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+fe80::1%eth0 ");
    CHECK_HAS(t, content("argv"), "<--><fe80::1%eth0><exec sh -c");
}

/* Runs the command that ssh got, as the shell of the other host would. */
#define OVER_THERE "exec sh -c \"$remote\""

TEST(the_other_host_runs_the_agent_of_the_same_path)
{
    char path[600];

    scripts_write(heard.folder, "hvd-agent", "echo \"path $1\" >who; cat >input");
    scripts_write(heard.folder, "it's my agent", "echo \"same $1\" >who; cat >input");
    snprintf(path, sizeof(path), "%s/it's my agent", heard.folder);
    heard.config.local_path = path;
    play(OVER_THERE);
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, content("who"), "same --stdin\n");
    unlink(path);
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(2));
    CHECK_TEXT(t, content("who"), "path --stdin\n");
    CHECK_TEXT(t, content("input"), KEY);
    CHECK_TEXT(t, heard.said, "+n1 +n1 ");
}

TEST(the_path_over_there_can_be_given)
{
    char path[600];

    scripts_write(heard.folder, "$HOME 'x' agent", "echo \"given $1\" >who; cat >input");
    snprintf(path, sizeof(path), "%s/$HOME 'x' agent", heard.folder);
    heard.config.agent_path = path;
    play(OVER_THERE);
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+n1 ");
    CHECK_TEXT(t, content("who"), "given --stdin\n");
}

static const struct failure {
    const char *play;
    const char *why;
} failures[] = {
    {"echo 'Warning: Permanently added n1 to known hosts.' >&2; echo 'u@n1: Permission denied "
      "(publickey).' >&2; exit 255",                                                         "ssh to n1: u@n1: Permission denied (publickey). (255); let this user log in"},
    { "printf '@@@\\n@ CHANGED @\\nHost key verification failed.\\r\\n' >&2; exit 255",
     "ssh to n1: Host key verification failed. (255); log in to this host by hand once"                                                                                        },
    { "echo 'ssh: Could not resolve hostname n1: x' >&2; exit 255",
     "ssh to n1: ssh: Could not resolve hostname n1: x (255); check the host's name"                                                                                           },
    { "echo 'ssh: connect: Connection refused' >&2; echo 'debug1: Exit status -1' >&2; exit 255",
     "ssh to n1: ssh: connect: Connection refused (255); start sshd on this host"                                                                                              },
    { "exit 255",
     "ssh to n1: the program printed no reason (255); try to log in to this host by hand"                                                                                      },
    { "cat >input; echo 'sh: exec: hvd-agent: not found' >&2; exit 127",
     "hvd-agent on n1: sh: exec: hvd-agent: not found (exit code 127); install hvd-agent on this "
      "host, or give its path with --agent-path"                                                                                                                               },
    { "echo 'hvd-agent: key: wrong' >&2; echo 'Connection to n1 closed.' >&2; exit 2",
     "hvd-agent on n1: hvd-agent: key: wrong (exit code 2)"                                                                                                                    },
    { "exit 4",                                                                                   "hvd-agent on n1: the program printed no reason (exit code 4)"               },
    { "echo last >&2; kill -SEGV $$",                                                             "ssh to n1: ended by signal 11 (SIGSEGV) (last line: last)"                  },
    { "kill -KILL $$",                                                                            "ssh to n1: ended by signal 9 (SIGKILL)"                                     },
    { "yes | head -c 3000000 >&2; echo full >&2; exit 9",                                         "hvd-agent on n1: full (exit code 9)"                                        },
};

/* Each start fails, says why, and leaves no child. */
static void check_failures(struct test *t, const struct failure *rows, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        play(rows[i].play);
        CHECK_OK(t, start("n1"));
        CHECK(t, wait_for(i + 1));
        CHECK_HAS(t, heard.why, rows[i].why);
        CHECK(t, scripts_no_children());
    }
    CHECK_INT(t, heard.started, ==, 0);
}

TEST_FLAGS(a_start_that_fails_says_why, TEST_NO_TORTURE)
{
    CHECK_OK(t, create(NULL));
    check_failures(t, failures, ARRAY_SIZE(failures));
}

/* clang-format off */
static const struct failure rsh_failures[] = {
    { "echo 'Permission denied' >&2; exit 1",
      "rsh to n1: Permission denied (exit code 1); run the command of --launcher by hand" },
    { "echo 'no pod n1' >&2; exit 255", "rsh to n1: no pod n1 (exit code 255); run the command" },
    { "exit 4", "rsh to n1: the program printed no reason (exit code 4); run the command" },
    { "echo 'hvd-agent: key: wrong' >&2; echo 'command terminated with exit code 2' >&2; exit 2",
      "hvd-agent on n1: hvd-agent: key: wrong (exit code 2)" },
    { "echo 'sh: exec: hvd-agent: not found' >&2; exit 127",
      "hvd-agent on n1: sh: exec: hvd-agent: not found (exit code 127); install hvd-agent on this" },
    { "echo last >&2; kill -SEGV $$",
      "rsh to n1: ended by signal 11 (SIGSEGV) (last line: last)" },
    { "yes | head -c 3000000 >&2; echo full >&2; exit 9", "rsh to n1: full (exit code 9); run" },
};
/* clang-format on */

TEST_FLAGS(another_command_that_fails_says_why, TEST_NO_TORTURE)
{
    heard.config.launcher = by_rsh;
    CHECK_OK(t, create(NULL));
    check_failures(t, rsh_failures, ARRAY_SIZE(rsh_failures));
    setenv("PATH", heard.folder, 1);
    unlink(scripts_path(heard.folder, "rsh"));
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(ARRAY_SIZE(rsh_failures) + 1));
    CHECK_HAS(t, heard.why, "rsh to n1: rsh: no folder of the PATH has this program");
}

TEST_FLAGS(a_local_agent_that_fails_says_why, TEST_NO_TORTURE)
{
    heard.config.local_path =
        scripts_write(heard.folder, "hvd-agent", "echo no socket >&2; exit 255");
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, launch_start(heard.launcher, "localhost", true, KEY, NULL));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.why, "hvd-agent on localhost: no socket (exit code 255)");
    unlink(heard.config.local_path);
    CHECK_OK(t, launch_start(heard.launcher, "localhost", true, KEY, NULL));
    CHECK(t, wait_for(2));
    CHECK_HAS(t, heard.why, "hvd-agent on localhost: ");
    CHECK_HAS(t, heard.why, "hvd-agent: no such program; check the path");
}

TEST_FLAGS(no_ssh_is_a_failure, TEST_NO_TORTURE)
{
    setenv("PATH", heard.folder, 1);
    unlink(scripts_path(heard.folder, "ssh"));
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(1));
    CHECK_HAS(t, heard.why, "ssh to n1: ssh: no folder of the PATH has this program");
}

TEST_FLAGS(another_command_that_hangs_is_ended, TEST_NO_TORTURE)
{
    play("echo $$ >first; echo 'waits for n1' >&2; mkfifo gate; echo x >ready; cat gate");
    scripts_make_fifo(scripts_path(heard.folder, "ready"));
    heard.config.launcher = by_rsh;
    heard.config.limit_us = TIME_S;
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    event_base_loop(heard.base, EVLOOP_NONBLOCK); /* the script is started */
    scripts_hear(scripts_path(heard.folder, "ready"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.why,
               "rsh to n1: did not end within 1s, and was killed (last line: waits for n1)");
    CHECK(t, scripts_gone(scripts_path(heard.folder, "first")));
}

TEST_FLAGS(a_start_that_hangs_is_ended_with_all_it_started, TEST_NO_TORTURE)
{
    play("echo $$ >first; tail -f /dev/null & echo $! >second; echo 'banner of n1' >&2; mkfifo "
         "gate; echo x >ready; cat gate");
    scripts_make_fifo(scripts_path(heard.folder, "ready"));
    heard.config.limit_us = TIME_S;
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    event_base_loop(heard.base, EVLOOP_NONBLOCK); /* the script is started */
    scripts_hear(scripts_path(heard.folder, "ready"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.why,
               "ssh to n1: did not end within 1s, and was killed (last line: banner of n1)");
    CHECK(t, scripts_no_children());
    CHECK(t, scripts_gone(scripts_path(heard.folder, "first")));
    CHECK(t, scripts_gone(scripts_path(heard.folder, "second")));
}

/* Two starts run at a time. n1 keeps one place, so the other hosts follow one another in the second
 * place. */
TEST_FLAGS(a_bounded_number_runs_first_come_first_served, TEST_NO_TORTURE)
{
    static const char *const hosts[] = { "n1", "n2", "n3", "n4", "n5" };

    play("cat >input\n"
         "[ $host = n1 ] || { echo in $host >>order; echo out $host >>order; exit 0; }\n"
         "mkfifo gate; echo x >ready; cat gate >>order");
    heard.config.parallel = 2;
    CHECK_OK(t, create(NULL));
    for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
        CHECK_OK(t, start(hosts[i]));
    CHECK(t, wait_for(4));
    CHECK_TEXT(t, heard.said, "+n2 +n3 +n4 +n5 ");
    CHECK_TEXT(t, content("order"), "in n2\nout n2\nin n3\nout n3\nin n4\nout n4\nin n5\nout n5\n");
    CHECK(t, scripts_wait_line(heard.base, scripts_path(heard.folder, "ready")));
    scripts_say(scripts_path(heard.folder, "gate"), "n1\n");
    CHECK(t, wait_for(5));
    CHECK_HAS(t, heard.said, "+n5 +n1 ");
}

TEST_FLAGS(a_host_is_started_once_at_a_time, TEST_NO_TORTURE)
{
    play("cat >>inputs; echo in >>order; [ -p gate ] || { mkfifo gate; echo x >ready; cat gate "
         ">>order; }; echo out >>order");
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, launch_start(heard.launcher, "n1", false, "one\n", NULL));
    CHECK(t, scripts_wait_line(heard.base, scripts_path(heard.folder, "ready")));
    CHECK_OK(t, launch_start(heard.launcher, "n1", false, "two\n", NULL));
    CHECK_OK(t, launch_start(heard.launcher, "n1", false, "three\n", NULL));
    CHECK_OK(t, start("n2"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+n2 ");
    scripts_say(scripts_path(heard.folder, "gate"), "go\n");
    CHECK(t, wait_for(3));
    CHECK_TEXT(t, heard.said, "+n2 +n1 +n1 ");
    CHECK_TEXT(t, content("inputs"), "one\n" KEY "three\n");
    CHECK_TEXT(t, content("order"), "in\nin\nout\ngo\nout\nin\nout\n");
}

TEST(unread_input_causes_no_harm)
{
    buf_init(&input, 1000000);
    CHECK_OK(t, buf_reserve(&input, 500000));
    memset(input.data, 'k', 500000);
    input.length = 500000;
    input.data[input.length] = '\0';
    play("exit 0");
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, launch_start(heard.launcher, "n1", false, input.data, NULL));
    CHECK(t, wait_for(1));
    play("cat | wc -c | tr -d ' ' >size");
    CHECK_OK(t, launch_start(heard.launcher, "n1", false, input.data, NULL));
    CHECK(t, wait_for(2));
    CHECK_TEXT(t, heard.said, "+n1 +n1 ");
    CHECK_TEXT(t, content("size"), "500000\n");
}

TEST_FLAGS(an_agent_that_keeps_the_pipe_causes_no_delay, TEST_NO_TORTURE)
{
    play("cat >input; mkfifo gate; setsid sh -c 'echo $$ >pid; read x <gate' & while [ ! -s pid ]; "
         "do :; done; exit 0");
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(1));
    CHECK_TEXT(t, heard.said, "+n1 ");
    scripts_say(scripts_path(heard.folder, "gate"), "x\n"); /* the reader of the pipe is there */
    CHECK(t, scripts_gone(scripts_path(heard.folder, "pid")));
}

TEST_FLAGS(the_end_may_come_in_the_middle_of_a_start, TEST_NO_TORTURE)
{
    play("echo $$ >pid.$host; mkfifo gate.$host; cat gate.$host");
    heard.config.parallel = 2;
    CHECK_OK(t, create(NULL));
    CHECK_OK(t, start("n1"));
    CHECK_OK(t, start("n2"));
    CHECK_OK(t, start("n3"));
    CHECK(t, scripts_wait_line(heard.base, scripts_path(heard.folder, "pid.n1")));
    CHECK(t, scripts_wait_line(heard.base, scripts_path(heard.folder, "pid.n2")));
    launch_free(heard.launcher);
    heard.launcher = NULL;
    CHECK(t, scripts_no_children());
    CHECK(t, scripts_gone(scripts_path(heard.folder, "pid.n1")));
    CHECK(t, scripts_gone(scripts_path(heard.folder, "pid.n2")));
    CHECK_INT(t, heard.calls, ==, 0);
}

TEST(a_callback_may_use_and_free_the_launcher)
{
    CHECK_OK(t, create(NULL));
    heard.start_next = "n2";
    CHECK_OK(t, start("n1"));
    CHECK(t, wait_for(1));
    heard.free_at_once = true;
    CHECK(t, wait_for(2));
    CHECK_TEXT(t, heard.said, "+n1 +n2 ");
}

TEST(an_impossible_launch_is_refused)
{
    static const char *const ssh_args[] = { "-v", NULL };
    static const struct {
        const char *word;
        const char *const *ssh_args;
        int code;
        const char *says;
    } refused[] = {
        {NULL,                NULL,     HVD_E_INVAL,       "--launcher: has only blanks; name ssh, or a command"  },
        { "no-such-way",      NULL,     HVD_E_NOTFOUND,
         "--launcher: \"no-such-way\" is no program of the PATH; name ssh, or a command"                          },
        { "/proc/none",       NULL,     HVD_E_NOTFOUND,    "--launcher: \"/proc/none\" is no program"             },
        { "/proc",            NULL,     HVD_E_NOTFOUND,    "--launcher: \"/proc\" is no program"                  },
        { "srun",             NULL,     HVD_E_UNSUPPORTED, "--launcher: srun may end an agent"                    },
        { "/lsf/bin/blaunch", NULL,     HVD_E_UNSUPPORTED, "--launcher: blaunch may end an agent"                 },
        { "rsh",              ssh_args, HVD_E_INVAL,       "--launcher: \"rsh\" gets no options of ssh; leave out"},
    };
    struct hvd_err err;

    heard.config.ssh_port = 65536;
    CHECK_CODE(t, create(&err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "--ssh-port: ");
    heard.config.ssh_port = 0;
    heard.config.ssh_identity_file = "/no/such/key";
    CHECK_CODE(t, create(&err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "/no/such/key: No such file or directory");
    heard.config.ssh_identity_file = NULL;
    heard.config.agent_path = "";
    CHECK_CODE(t, create(&err), HVD_E_INVAL);
    heard.config.agent_path = NULL;
    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++) {
        heard.config.launcher = (const char *const[]){ refused[i].word, NULL };
        heard.config.ssh_args = refused[i].ssh_args;
        CHECK_CODE(t, create(&err), refused[i].code);
        CHECK_HAS(t, err.text, refused[i].says);
    }
    heard.config.launcher = NULL;
    heard.config.ssh_args = NULL;
    CHECK_OK(t, create(&err));
    CHECK_CODE(t, start("-oProxyCommand=touch x"), HVD_E_INVAL);
    CHECK_CODE(t, start("a b"), HVD_E_INVAL);
    CHECK_CODE(t, start(""), HVD_E_INVAL);
}
