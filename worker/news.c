/*
 * news.c: what hvd_news and hvd_news_fd tell of the running round.
 *
 * Called by ticket.c and rounds.c when a field has changed from which the news follow: `open`,
 * `failed`, `news`, `round` or `cancelled` of struct rounds, or `coming` of struct news. Invariant:
 * the eventfd is readable exactly while hvd_news is not 0, and there are no news while train does
 * not run.
 */
#include "worker/news.h"

#include "worker/rounds_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void news_init(struct news *news)
{
    *news = (struct news){ .fd = -1 };
}

void news_release(struct news *news)
{
    if (news->fd >= 0)
        close(news->fd);
}

/* Makes the eventfd readable, or not readable any more. The result of the call does not matter: the
 * number in the eventfd is 0 or 1, so the call fails only if the program has read or closed the
 * descriptor, which hvd.h forbids. */
static void news_show(const struct news *news, bool readable)
{
    uint64_t one = 1;
    ssize_t moved =
        readable ? write(news->fd, &one, sizeof(one)) : read(news->fd, &one, sizeof(one));

    (void)moved;
}

/* Computes what hvd_news returns from the fields of struct rounds, and makes the eventfd readable
 * if that is not 0. Called with the lock held, after each change of such a field. */
void news_update(struct rounds *rounds)
{
    struct news *news = &rounds->about;
    int before = atomic_load_explicit(&news->now, memory_order_relaxed);
    int now = 0;

    if (rounds->open && (rounds->failed || rounds->round <= rounds->cancelled))
        now = HVD_E_REVOKED;
    else if (rounds->open && (rounds->news > 0 || news->coming))
        now = HVD_HOSTS_UPDATED;
    if (now == before)
        return;
    atomic_store_explicit(&news->now, now, memory_order_relaxed);
    if (news->fd >= 0 && !now != !before)
        news_show(news, now != 0);
}

/* Returns the eventfd, which the first call makes. The caller holds the lock. */
int news_open(struct news *news, struct hvd_err *err)
{
    if (news->fd >= 0)
        return news->fd;
    news->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (news->fd < 0)
        return err_set(err, HVD_E_LIMIT,
                       "hvd_news_fd: the kernel gives no file descriptor (%s); raise the limit of "
                       "open files (ulimit -n)",
                       strerror(errno));
    if (news->now)
        news_show(news, true /* readable */);
    return news->fd;
}
