/*
 * test_agent_socket.c: agent/processes/agent_socket: one agent of a job has the host, the next one
 * finds it, and no name can be foreseen.
 */
#include "agent/processes/agent_socket.h"

#include "base/limits.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct agent_socket first, second;
static struct hvd_err err;
static char path[400];
static char state[300]; /* the user's state directory */

static void begin(struct test *t)
{
    first = second = (struct agent_socket){ .fd = -1 };
    snprintf(state, sizeof(state), "%s", test_dir(t));
    setenv("XDG_STATE_HOME", state, 1);
    snprintf(path, sizeof(path), "%s/hvd-elastic/job/host.agent", state);
}

static void end(struct test *t)
{
    (void)t;
    agent_socket_release(&first);
    agent_socket_release(&second);
}
FIXTURE(begin, end)

TEST(a_second_agent_finds_the_first)
{
    struct stat st;

    CHECK_OK(t, agent_socket_take("job", "host", &first, &err));
    CHECK(t, !strncmp(first.name, "@hvd-agent/job/host/", 20));
    CHECK_INT(t, strlen(first.name), ==, 20 + 32);
    CHECK_TEXT(t, first.path, path);
    CHECK(t, !stat(path, &st) && (st.st_mode & 07777) == 0600);
    CHECK_CODE(t, agent_socket_take("job", "host", &second, &err), HVD_E_BUSY);
    CHECK_TEXT(t, second.name, first.name);
    agent_socket_release(&second); /* not taken: the first agent keeps its file */
    CHECK(t, files_exist(path));
    CHECK_OK(t, agent_socket_take("job", "other", &second, &err));
    CHECK(t, strcmp(second.name, first.name) != 0);
}

TEST(each_agent_has_a_name_of_its_own)
{
    char before[AGENT_SOCKET_MAX];

    CHECK_OK(t, agent_socket_take("job", "host", &first, &err));
    memcpy(before, first.name, sizeof(before));
    agent_socket_release(&first);
    CHECK(t, !files_exist(path));
    CHECK_OK(t, agent_socket_take("job", "host", &first, &err));
    CHECK(t, strcmp(first.name, before) != 0);
    /* the file of a killed agent stays, without its lock */
    close(first.fd);
    first.fd = -1;
    CHECK(t, files_exist(path));
    CHECK_OK(t, agent_socket_take("job", "host", &second, &err));
    CHECK(t, strcmp(second.name, first.name) != 0);
}

TEST(a_file_of_another_agent_in_the_making_is_waited_for)
{
    CHECK_OK(t, agent_socket_take("job", "host", &first, &err));
    CHECK(t, !truncate(path, 0)); /* the lock is taken, and the name is not written yet */
    CHECK_CODE(t, agent_socket_take("job", "host", &second, &err), HVD_E_LOST);
    CHECK(t, !truncate(path, 52)); /* zeros are no name */
    CHECK_CODE(t, agent_socket_take("job", "host", &second, &err), HVD_E_LOST);
}

/* A full disk keeps no agent from its host, and still only one agent has it. */
TEST_FLAGS(a_name_that_cannot_be_written_keeps_the_lock, TEST_NO_TORTURE)
{
    struct rlimit before, none;
    int rc;

    CHECK(t, !getrlimit(RLIMIT_FSIZE, &before));
    none = before;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(t, !setrlimit(RLIMIT_FSIZE, &none));
    rc = agent_socket_take("job", "host", &first, &err);
    CHECK(t, !setrlimit(RLIMIT_FSIZE, &before));
    CHECK_OK(t, rc);
    CHECK_INT(t, strlen(first.name), ==, 20 + 32);
    CHECK_CODE(t, agent_socket_take("job", "host", &second, &err), HVD_E_LOST);
    CHECK_HAS(t, err.text, "holds the lock");
}

TEST(a_planted_file_is_refused)
{
    CHECK_OK(t, agent_socket_take("job", "host", &first, &err));
    agent_socket_release(&first);
    snprintf(path, sizeof(path), "%s/hvd-elastic/job", state);
    CHECK(t, !mkdir(path, 0700));
    snprintf(path, sizeof(path), "%s/hvd-elastic/job/host.agent", state);
    CHECK(t, !symlink("/etc/passwd", path));
    CHECK_CODE(t, agent_socket_take("job", "host", &first, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "host.agent: is a symbolic link or not a regular file");
}

/* Where others may write to the state directory, the file is below /tmp. */
TEST(an_unsafe_state_directory_is_not_used)
{
    char job[40];

    snprintf(job, sizeof(job), "test-%d", (int)getpid());
    snprintf(path, sizeof(path), "%s/hvd-elastic", state);
    CHECK(t, !mkdir(path, 0700) && !chmod(path, 0777));
    CHECK_OK(t, agent_socket_take(job, "host", &first, &err));
    snprintf(path, sizeof(path), "/tmp/hvd-agent-%u/%s/host.agent", (unsigned)geteuid(), job);
    CHECK_TEXT(t, first.path, path);
    CHECK_CODE(t, agent_socket_take(job, "host", &second, &err), HVD_E_BUSY);
}

TEST(a_long_name_is_digested)
{
    char host[LIMIT_HOST_NAME_BYTES + 1], one[AGENT_SOCKET_MAX], two[AGENT_SOCKET_MAX];

    CHECK_TEXT(t, agent_socket_prefix("job", "host", one), "@hvd-agent/job/host/");
    memset(host, 'a', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    agent_socket_prefix("job", host, one);
    CHECK_INT(t, strlen(one), ==, strlen("@hvd-agent/") + 33);
    CHECK_OK(t, agent_socket_take("job", host, &first, &err));
    CHECK_INT(t, strlen(first.name), ==, strlen(one) + 32);
    host[200] = 'b';
    CHECK(t, strcmp(one, agent_socket_prefix("job", host, two)) != 0);
    CHECK_OK(t, agent_socket_take("job", host, &second, &err));
}
