/*
 * greeting.c: the handshake with the agent: HELLO_WORKER, WELCOME_WORKER, and the page that comes
 * with the welcome, the shared memory by which the agent sees that this worker lives.
 *
 * Called by session_thread.c when its thread begins. Invariant: the thread that has said hello
 * holds the page's futex (life.h), and takes it only after the page has proved to be this worker's.
 */
#include "worker/io/greeting.h"

#include "base/limits.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "worker/io/life.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Waits until the agent's socket or wake_fd (-1: none) needs attention, or until the deadline.
 * Without a deadline (TIME_NEVER) the wait ends after an hour, and the caller waits again. */
void greeting_wait(const struct agent_link *link, int wake_fd, int64_t deadline_us)
{
    struct pollfd fds[] = {
        {.fd = wake_fd,   .events = POLLIN                 },
        { .fd = link->fd, .events = agent_link_events(link)},
    };
    int64_t rest_us = deadline_us - clock_now_us();
    struct timespec rest = { .tv_sec = 3600 };

    if (deadline_us != TIME_NEVER) {
        rest_us = rest_us > 0 ? rest_us : 0;
        rest = (struct timespec){ rest_us / TIME_S, (rest_us % TIME_S) * 1000 };
    }
    (void)ppoll(fds, ARRAY_SIZE(fds), &rest, NULL);
}

/* Maps the page (memory that worker and agent share), whose descriptor `fd` came with the welcome;
 * checks that it is the page of this incarnation, and takes its futex for this thread (life.h). fd
 * below 0: no descriptor came. */
static int hold_page(int fd, uint64_t incarnation, struct page **ret_page, struct hvd_err *err)
{
    struct page *page;
    struct stat file;
    int rc;

    if (fd < 0)
        return agent_link_no_fd(fd, "the agent shares a page with its worker", err);
    if (fstat(fd, &file) || file.st_size < PAGE_BYTES_MIN)
        return err_set(err, HVD_E_PROTO,
                       "the page that the agent shares with its worker is too small; install the "
                       "same release of the agent and of libhvd");
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return err_set(err, HVD_E_NOMEM,
                       "the page that the agent shares with its worker cannot be mapped: %s; raise "
                       "the limit of memory (ulimit -v), or free memory on this host",
                       strerror(errno));
    if (page->magic != PAGE_MAGIC || page->version != PAGE_VERSION)
        rc = err_set(err, HVD_E_PROTO,
                     "the page that the agent shares with its worker has another version; install "
                     "the same release of the agent and of libhvd");
    else if (page->incarnation != incarnation)
        rc = err_set(err, HVD_E_PROTO,
                     "the agent has sent the page of another worker, which is a bug of "
                     "hvd-elastic; please report it");
    else
        rc = life_hold(page);
    if (rc == HVD_E_BUSY)
        err_set(err, rc,
                "another process of this worker has called hvd_init already; call hvd_init in one "
                "process only");
    else if (rc == HVD_E_UNSUPPORTED)
        err_set(err, rc,
                "this kernel has no robust futexes; use a kernel that is built with CONFIG_FUTEX");
    if (rc) {
        munmap(page, PAGE_BYTES);
        return rc;
    }
    *ret_page = page;
    return 0;
}

/* Sends HELLO_WORKER and waits for the agent's answer. With WELCOME_WORKER comes the descriptor of
 * the page; this thread then holds the page's futex. Every other answer is an error. */
int greeting_exchange(struct agent_link *link, uint64_t incarnation, struct msg *ret_welcome,
                      struct page **ret_page, struct hvd_err *err)
{
    struct msg hello = { .type = MSG_HELLO_WORKER, .incarnation = incarnation };
    struct msg welcome = { 0 };
    int64_t deadline_us = clock_now_us() + LIMIT_GREETING_US;
    int rc;
    int fd;

    hello.u.hello_worker =
        (struct msg_hello_worker){ PROTO_MINOR, HVD_VERSION_TEXT, (uint64_t)getpid() };
    rc = agent_link_send(link, &hello, err);
    while (!rc && (rc = agent_link_receive(link, &welcome, err)) == 0) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT,
                           "the agent of this host has not answered for %d s; if hvd-agent is "
                           "stopped or hangs, kill it",
                           (int)(LIMIT_GREETING_US / TIME_S));
        greeting_wait(link, -1, deadline_us); /* -1: no other thread can wake this wait */
        rc = agent_link_flush(link, err);
    }
    if (rc < 0)
        return rc;
    fd = agent_link_take_fd(link);
    if (welcome.type == MSG_REFUSED)
        rc = err_set(err, welcome.u.refused.code < 0 ? welcome.u.refused.code : HVD_E_DENIED,
                     "the agent of this host refuses this process: %s", welcome.u.refused.text);
    else if (welcome.type == MSG_BYE)
        rc = err_set(err, HVD_E_LOST,
                     "the agent of this host is ending (%s), so this process must end too",
                     welcome.u.bye.reason);
    else if (welcome.type != MSG_WELCOME_WORKER)
        rc = err_set(err, HVD_E_PROTO,
                     "the agent has answered HELLO_WORKER with a wrong message; install the same "
                     "release of the agent and of libhvd");
    else
        rc = hold_page(fd, incarnation, ret_page, err);
    if (fd >= 0)
        close(fd);
    if (rc) {
        msg_release(&welcome);
        return rc;
    }
    *ret_welcome = welcome;
    return 0;
}

void greeting_unmap(struct page *page)
{
    if (page)
        munmap(page, PAGE_BYTES);
}
