/*
 * etcd_server.c: starts the servers of etcd_server.h, each on ports of its own at loopback_own().
 */
#include "tests/lib/etcd_server.h"

#include "tests/lib/loopback.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    char folder[400];
    char address[32];
    char option[128];
    char url[256];
    char cluster[256];
    unsigned count;
    pid_t pids[ETCD_SERVERS_MAX];
} servers;

bool etcd_server_found(void)
{
    const char *path = getenv("PATH");
    char file[400];

    while (path && *path) {
        size_t length = strcspn(path, ":");

        snprintf(file, sizeof(file), "%.*s/etcd", (int)length, path);
        if (!access(file, X_OK))
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static unsigned etcd_port(unsigned number, unsigned kind)
{
    return 2379 + 10 * number + kind;
}

/* Becomes the server; its output goes to a file beside its data. */
static void etcd_become(unsigned number)
{
    char name[8], data[420], log[420], client[64], peer[64];
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(name, sizeof(name), "e%u", number);
    snprintf(data, sizeof(data), "%s/%s", servers.folder, name);
    snprintf(log, sizeof(log), "%s/%s.log", servers.folder, name);
    snprintf(client, sizeof(client), "http://%s:%u", servers.address, etcd_port(number, 0));
    snprintf(peer, sizeof(peer), "http://%s:%u", servers.address, etcd_port(number, 1));
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execlp("etcd", "etcd", "--name", name, "--data-dir", data, "--listen-client-urls", client,
           "--advertise-client-urls", client, "--listen-peer-urls", peer,
           "--initial-advertise-peer-urls", peer, "--initial-cluster", servers.cluster,
           *servers.option ? servers.option : (char *)NULL, (char *)NULL);
    _exit(127);
}

bool etcd_server_again(unsigned number)
{
    pid_t pid = fork();

    if (!pid)
        etcd_become(number);
    servers.pids[number] = pid;
    return pid > 0;
}

bool etcd_server_start(const char *folder, unsigned count, const char *option)
{
    bool started = true;

    memset(&servers, 0, sizeof(servers));
    snprintf(servers.folder, sizeof(servers.folder), "%s", folder);
    snprintf(servers.address, sizeof(servers.address), "%s", loopback_own());
    snprintf(servers.option, sizeof(servers.option), "%s", option ? option : "");
    snprintf(servers.url, sizeof(servers.url), "etcd://");
    servers.count = count;
    for (unsigned i = 0; i < count; i++) {
        size_t at = strlen(servers.cluster), url = strlen(servers.url);

        snprintf(servers.cluster + at, sizeof(servers.cluster) - at, "%se%u=http://%s:%u",
                 i ? "," : "", i, servers.address, etcd_port(i, 1));
        snprintf(servers.url + url, sizeof(servers.url) - url, "%s%s:%u", i ? "," : "",
                 servers.address, etcd_port(i, 0));
    }
    strncat(servers.url, "/tests", sizeof(servers.url) - strlen(servers.url) - 1);
    for (unsigned i = 0; i < count && started; i++)
        started = etcd_server_again(i);
    return started;
}

void etcd_server_signal(unsigned number, int signal)
{
    if (servers.pids[number] <= 0)
        return;
    kill(servers.pids[number], signal);
    if (signal == SIGKILL) {
        waitpid(servers.pids[number], NULL, 0);
        servers.pids[number] = 0;
    }
    /* A stop reaches the threads of the server one after the other; the parent hears of it when the
     * last one has stopped. */
    if (signal == SIGSTOP)
        waitpid(servers.pids[number], NULL, WUNTRACED);
}

void etcd_server_stop(void)
{
    for (unsigned i = 0; i < servers.count; i++)
        etcd_server_signal(i, SIGKILL);
    servers.count = 0;
}

const char *etcd_server_url(void)
{
    return servers.url;
}
