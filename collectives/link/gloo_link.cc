/*
 * gloo_link.cc: a link over Gloo's TCP pairs, with nothing of Gloo's above them: Gloo's collectives
 * wait on buffers that no caller can reach, and so cannot be stopped. Here every wait is on a
 * buffer in a list, and a cancel wakes all waits.
 * This file is a module of its own, libhvd-gloo.so, which gloo_module.c loads when it is asked for.
 *
 * Gloo throws; nothing is thrown out of this file. A message longer than its memory ends the
 * process on Gloo's own thread, where no caller can catch it; the algorithms never send one
 * (lane/open.c).
 */
extern "C" {
#include "base/limits.h"
#include "base/list.h"
#include "collectives/link/gloo_module.h"
#include "collectives/link/reaper.h"
#include "os/clock.h"
#include "os/thread.h"
}

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include <errno.h>
#include <signal.h>
#include <time.h>

namespace
{

/* A wait of Gloo's has a timeout, and closes the pairs when the timeout is over. Our waits end by a
 * cancel. */
constexpr std::chrono::milliseconds FOREVER = std::chrono::hours(24 * 365);
/* A pair gives up connecting after five times this. */
constexpr std::chrono::milliseconds LONGER_THAN_ANY_CONNECT = std::chrono::hours(24);

constexpr std::chrono::milliseconds AT_ONCE = std::chrono::milliseconds(1);
constexpr int64_t CLOSE_AGAIN_US = 5000;

struct gloo_peer {
    struct gloo_link *link;
    uint32_t rank;
    gloo::transport::Pair *pair;
    std::vector<char>
        own; /* address: that of the pair changes when it connects, and with it which side dials */
    std::vector<char> told;
    pthread_t thread;
    bool started, done; /* `done` and the fields after it: under the link's mutex */
    int code;
    struct hvd_err why;
};

struct gloo_link {
    struct link base;
    struct reaper *reaper;
    struct reaper_task closing;
    std::shared_ptr<gloo::transport::Context> context;
    std::vector<gloo_peer> peers;
    bool pipe_blocked; /* true: link_enter has blocked SIGPIPE, which was not blocked before */

    pthread_mutex_t mutex; /* protects the fields below it */
    pthread_cond_t changed;
    bool cancelled;
    struct list in_flight;
};

struct gloo_request : list { /* in the link's list */
    bool receives;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
};

class Locked
{
  public:
    explicit Locked(pthread_mutex_t &mutex) : mutex_(mutex)
    {
        pthread_mutex_lock(&mutex_);
    }
    ~Locked()
    {
        pthread_mutex_unlock(&mutex_);
    }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

  private:
    pthread_mutex_t &mutex_;
};

gloo_link *of(struct link *link)
{
    return reinterpret_cast<gloo_link *>(link);
}

gloo_request *of(struct link_request *request)
{
    return reinterpret_cast<gloo_request *>(request);
}

/* Runs what may throw, and returns the code of its outcome. */
template <typename Work> int guarded(struct hvd_err *err, const char *what, Work work)
{
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return err_set(err, HVD_E_NOMEM, "out of memory; free memory on this host");
    } catch (const std::exception &fault) {
        return err_set(err, HVD_E_LOST, "%s: %s", what, fault.what());
    } catch (...) {
        return err_set(
            err, HVD_E_INTERNAL,
            "%s: Gloo has thrown an exception of an unknown kind; set --cpu-operations tcp", what);
    }
}

gloo_peer *find(gloo_link *link, uint32_t rank)
{
    auto at = std::find_if(link->peers.begin(), link->peers.end(),
                           [rank](const gloo_peer &peer) { return peer.rank == rank; });

    return at == link->peers.end() ? nullptr : &*at;
}

bool is_cancelled(gloo_link *link)
{
    Locked locked(link->mutex);

    return link->cancelled;
}

int link_address(struct link *base, uint32_t rank, uint8_t *ret_bytes, size_t *ret_length,
                 struct hvd_err *err)
{
    const std::vector<char> &own = find(of(base), rank)->own;

    if (own.size() > LINK_ADDRESS_MAX)
        return err_set(
            err, HVD_E_LIMIT,
            "an address of this version of Gloo has %zu bytes, at most %d are possible; set "
            "--cpu-operations tcp",
            own.size(), LINK_ADDRESS_MAX);
    std::copy(own.begin(), own.end(), ret_bytes);
    *ret_length = own.size();
    return 0;
}

/* Connecting a pair waits for the other side: each pair has a thread for that long. */
void *connect_pair(void *arg)
{
    auto peer = static_cast<gloo_peer *>(arg);
    int code = guarded(&peer->why, "connecting", [&] {
        peer->pair->connect(peer->told);
        return 0;
    });
    Locked locked(peer->link->mutex);

    peer->code = code;
    peer->done = true;
    pthread_cond_broadcast(&peer->link->changed);
    return nullptr;
}

/* A cancelled link is not connected: the reaper has closed the pairs by then, and waits for the
 * threads that connect. */
int link_connect(struct link *base, uint32_t rank, const uint8_t *bytes, size_t length,
                 struct hvd_err *err)
{
    gloo_link *link = of(base);
    gloo_peer *peer = find(link, rank);

    return guarded(err, "connecting", [&] {
        Locked locked(link->mutex);

        if (link->cancelled)
            return static_cast<int>(HVD_E_REVOKED);
        peer->told.assign(bytes, bytes + length);
        if (thread_start(&peer->thread, 0, connect_pair, peer))
            return err_set(err, HVD_E_NOMEM,
                           "no thread can be started for a connection; raise the limit of "
                           "processes (ulimit -u)");
        peer->started = true;
        return 0;
    });
}

int link_connected(struct link *base, int64_t deadline_us, uint32_t *ret_rank, struct hvd_err *err)
{
    gloo_link *link = of(base);
    bool late = false;
    Locked locked(link->mutex);

    for (gloo_peer &peer : link->peers) {
        while (peer.started && !peer.done && !link->cancelled && !late)
            late = thread_cond_wait(&link->changed, &link->mutex, deadline_us);
        if (link->cancelled)
            return HVD_E_REVOKED;
        if (peer.started && peer.done && !peer.code)
            continue;
        *ret_rank = peer.rank;
        return peer.done
                   ? err_set(err, HVD_E_LOST, "rank %u: the connection to this rank broke: %s",
                             peer.rank, peer.why.text)
                   : err_set(err, HVD_E_TIMEOUT,
                             "rank %u: the connection to this rank was not made in time; look for "
                             "a firewall between the hosts",
                             peer.rank);
    }
    return 0;
}

sigset_t only_pipe()
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

/* Gloo writes without MSG_NOSIGNAL: from here to link_leave this thread takes no SIGPIPE. */
void link_enter(struct link *base)
{
    const sigset_t pipe = only_pipe();
    sigset_t before;

    (void)pthread_sigmask(SIG_BLOCK, &pipe, &before);
    of(base)->pipe_blocked = !sigismember(&before, SIGPIPE);
}

/* Takes away a SIGPIPE that came while the signal was blocked: Gloo caused it, because this thread
 * has done nothing else. The thread gets back the signal mask that it had at link_enter. */
void link_leave(struct link *base)
{
    const struct timespec at_once = { 0, 0 };
    const sigset_t pipe = only_pipe();

    if (!of(base)->pipe_blocked)
        return;
    while (sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

/* The memory is ours again once drop has returned: Gloo waits until its thread no longer uses the
 * memory. */
void drop(gloo_link *link, gloo_request *request)
{
    {
        Locked locked(link->mutex);
        list_remove(request);
    }
    delete request;
}

int post(gloo_link *link, bool receives, uint32_t rank, uint64_t tag, void *bytes, size_t length,
         struct link_request **ret_request)
{
    gloo_request *request = nullptr;
    int rc = guarded(nullptr, "posting", [&] {
        request = new gloo_request;
        list_init(request);
        request->receives = receives;
        request->buffer = link->context->createUnboundBuffer(bytes, length);
        {
            Locked locked(link->mutex);
            if (link->cancelled)
                return static_cast<int>(HVD_E_REVOKED);
            list_append(&link->in_flight, request);
        }
        if (receives)
            request->buffer->recv(static_cast<int>(rank), tag, 0, length);
        else
            request->buffer->send(static_cast<int>(rank), tag, 0, length);
        return 0;
    });

    if (rc) {
        if (request)
            drop(link, request);
        return rc == HVD_E_LOST && is_cancelled(link) ? static_cast<int>(HVD_E_REVOKED) : rc;
    }
    *ret_request = reinterpret_cast<struct link_request *>(request);
    return 0;
}

int link_send(struct link *base, uint32_t rank, uint64_t tag, const void *bytes, size_t length,
              struct link_request **ret_request)
{
    return post(of(base), false, rank, tag, const_cast<void *>(bytes), length, ret_request);
}

int link_receive(struct link *base, uint32_t rank, uint64_t tag, void *bytes, size_t length,
                 struct link_request **ret_request)
{
    return post(of(base), true, rank, tag, bytes, length, ret_request);
}

/* A cancel between the check and the wait is not missed: the buffer remembers it. */
int link_wait(struct link *base, struct link_request *awaited)
{
    gloo_link *link = of(base);
    gloo_request *request = of(awaited);
    int rc = HVD_E_REVOKED;

    if (!is_cancelled(link)) {
        rc = guarded(nullptr, "waiting", [&] {
            bool done = request->receives ? request->buffer->waitRecv(FOREVER)
                                          : request->buffer->waitSend(FOREVER);

            return done ? 0 : static_cast<int>(HVD_E_REVOKED);
        });
    }
    drop(link, request);
    return is_cancelled(link) ? static_cast<int>(HVD_E_REVOKED) : rc;
}

void link_drop(struct link *base, struct link_request *request)
{
    drop(of(base), of(request));
}

bool some_pair_connects(gloo_link *link)
{
    return std::any_of(link->peers.begin(), link->peers.end(),
                       [](const gloo_peer &peer) { return peer.started && !peer.done; });
}

/* Closes all connections, so that peers see their end and Gloo's thread polls no connection any
 * more. Takes up to 10 ms for each connection, because Gloo's loop may sleep for so long.
 *
 * The pairs are not closed directly: that would reset the connections, and a Gloo that finds a
 * reset connection which it has just accepted ends its process. A wait whose timeout is over closes
 * them without a reset. A thread that only begins to connect may miss the timeout, so the wait is
 * repeated. */
void close_pairs(void *arg)
{
    auto link = static_cast<gloo_link *>(arg);
    bool again = true;

    while (again) {
        (void)guarded(nullptr, "closing", [&] {
            char nothing = 0;

            (void)link->context->createUnboundBuffer(&nothing, 1)->waitRecv(AT_ONCE);
            return 0;
        });
        Locked locked(link->mutex);
        if (some_pair_connects(link))
            (void)thread_cond_wait(&link->changed, &link->mutex, clock_now_us() + CLOSE_AGAIN_US);
        again = some_pair_connects(link);
    }
}

void link_cancel(struct link *base)
{
    gloo_link *link = of(base);
    Locked locked(link->mutex);

    if (link->cancelled)
        return;
    link->cancelled = true;
    LIST_EACH (it, &link->in_flight) {
        auto request = static_cast<gloo_request *>(it);

        if (request->receives)
            request->buffer->abortWaitRecv();
        else
            request->buffer->abortWaitSend();
    }
    pthread_cond_broadcast(&link->changed);
    reaper_add(link->reaper, &link->closing);
}

/* Without a cancel the connections close in the ordinary way: what was sent still arrives. */
void link_free(struct link *base)
{
    gloo_link *link = of(base);

    for (gloo_peer &peer : link->peers) {
        if (peer.started)
            pthread_join(peer.thread, nullptr);
    }
    (void)guarded(nullptr, "freeing", [&] {
        link->context.reset();
        return 0;
    });
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->mutex);
    delete link;
}

const struct link_ops operations = {
    link_address, link_connect, link_connected, link_enter, link_leave,  link_send,
    link_receive, link_wait,    link_drop,      nullptr,    link_cancel, link_free,
};

} // namespace

struct gloo_device {
    std::shared_ptr<gloo::transport::Device> device;
};

namespace
{

int device_open(const char *host, struct gloo_device **ret_device, struct hvd_err *err)
{
    sigset_t all, before;
    int rc;

    /* Gloo's thread takes no signal: none of the program, and no SIGPIPE of a peer that is gone. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = guarded(err, "Gloo cannot use the address of this worker", [&] {
        std::unique_ptr<gloo_device> opened(new gloo_device);
        struct gloo::transport::tcp::attr attr(host);

        opened->device = gloo::transport::tcp::CreateDevice(attr);
        *ret_device = opened.release();
        return 0;
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return rc;
}

void device_close(struct gloo_device *device)
{
    (void)guarded(nullptr, "closing", [&] {
        delete device;
        return 0;
    });
}

int link_create(struct gloo_device *device, const struct link_spec *spec, struct link **ret_link,
                struct hvd_err *err)
{
    return guarded(err, "Gloo cannot make connections", [&] {
        std::unique_ptr<gloo_link> link(new gloo_link());

        link->base.ops = &operations;
        link->reaper = spec->reaper;
        link->closing.run = close_pairs;
        link->closing.arg = link.get();
        list_init(&link->in_flight);
        link->context = device->device->createContext(static_cast<int>(spec->rank),
                                                      static_cast<int>(spec->size));
        link->context->setTimeout(LONGER_THAN_ANY_CONNECT);
        link->peers.resize(spec->peer_count);
        for (size_t i = 0; i < spec->peer_count; i++) {
            link->peers[i].link = link.get();
            link->peers[i].rank = spec->peers[i];
            link->peers[i].pair = link->context->createPair(static_cast<int>(spec->peers[i])).get();
            link->peers[i].own = link->peers[i].pair->address().bytes();
        }
        pthread_mutex_init(&link->mutex, nullptr);
        if (thread_cond_init(&link->changed)) {
            pthread_mutex_destroy(&link->mutex);
            return err_set(err, HVD_E_NOMEM, "out of memory; free memory on this host");
        }
        *ret_link = &link.release()->base;
        return 0;
    });
}

} // namespace

extern "C" HVD_API const struct gloo_module *hvd_gloo_module(void)
{
    static const struct gloo_module module = { HVD_VERSION_TEXT, device_open, device_close,
                                               link_create };

    return &module;
}
