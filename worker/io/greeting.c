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

void greeting_wait(const struct agent_link *link, int wake_fd, int64_t deadline_us)
{
    struct pollfd fds[] = {
        {.fd = wake_fd,   .events = POLLIN                 },
        { .fd = link->fd, .events = agent_link_events(link)},
    };
    int64_t left_us = deadline_us - clock_now_us();
    struct timespec left = { .tv_sec = 3600 };

    if (deadline_us != TIME_NEVER) {
        left_us = left_us > 0 ? left_us : 0;
        left = (struct timespec){ left_us / TIME_S, (left_us % TIME_S) * 1000 };
    }
    (void)ppoll(fds, ARRAY_SIZE(fds), &left, NULL);
}

static int hear_welcome(struct agent_link *link, struct msg *ret_welcome, struct hvd_err *err)
{
    int64_t deadline_us = clock_now_us() + LIMIT_GREETING_US;
    int rc;

    while ((rc = agent_link_receive(link, ret_welcome, err)) == 0) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT,
                           "the agent does not answer; is its machine stopped?");
        greeting_wait(link, -1, deadline_us);
        rc = agent_link_flush(link, err);
        if (rc)
            return rc;
    }
    return rc < 0 ? rc : 0;
}

static int judge(const struct msg *welcome, struct hvd_err *err)
{
    if (welcome->type == MSG_REFUSED)
        return err_set(err, welcome->u.refused.code < 0 ? welcome->u.refused.code : HVD_E_DENIED,
                       "the agent refuses this process: %s", welcome->u.refused.text);
    if (welcome->type == MSG_BYE)
        return err_set(err, HVD_E_LOST, "the agent is ending: %s", welcome->u.bye.reason);
    if (welcome->type != MSG_WELCOME_WORKER)
        return err_set(err, HVD_E_PROTO, "the agent answered a hello with something else");
    return 0;
}

static int hold_page(int fd, uint64_t incarnation, struct page **ret_page, struct hvd_err *err)
{
    struct page *page;
    struct stat file;
    int rc;

    if (fd < 0)
        return agent_link_no_fd(fd, "the agent shares a page with its worker", err);
    if (fstat(fd, &file) || file.st_size < PAGE_BYTES)
        return err_set(err, HVD_E_PROTO, "the page that is shared with the agent is none");
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return err_set(err, HVD_E_NOMEM, "the page that is shared with the agent: %s",
                       strerror(errno));
    if (page->magic != PAGE_MAGIC || page->version != PAGE_VERSION ||
        page->incarnation != incarnation)
        rc = err_set(err, HVD_E_PROTO, "the page that came is not that of this worker");
    else
        rc = life_hold(page);
    if (rc == HVD_E_BUSY)
        err_set(err, rc, "another process of this worker has said hello already; only one may");
    else if (rc == HVD_E_UNSUPPORTED)
        err_set(err, rc, "this kernel has no robust futexes");
    if (rc) {
        munmap(page, PAGE_BYTES);
        return rc;
    }
    *ret_page = page;
    return 0;
}

int greeting_exchange(struct agent_link *link, uint64_t incarnation, struct msg *ret_welcome,
                      struct page **ret_page, struct hvd_err *err)
{
    struct msg hello = { .type = MSG_HELLO_WORKER, .incarnation = incarnation };
    struct msg welcome = { 0 };
    int rc;
    int fd;

    hello.u.hello_worker =
        (struct msg_hello_worker){ PROTO_MINOR, HVD_VERSION_TEXT, (uint64_t)getpid() };
    rc = agent_link_send(link, &hello, err);
    if (!rc)
        rc = hear_welcome(link, &welcome, err);
    if (rc)
        return rc;
    fd = agent_link_take_fd(link);
    rc = judge(&welcome, err);
    if (!rc)
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

void greeting_undo(struct page *page)
{
    if (!page)
        return;
    life_release(page);
    munmap(page, PAGE_BYTES);
}
