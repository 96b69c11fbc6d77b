extern "C" {
#include "collectives/link/gloo_link.h"
#include "base/limits.h"
#include "base/list.h"
#include "collectives/link/quiet.h"
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

#include <signal.h>

/*
 * Gloo's TCP pairs with nothing of Gloo's above them: its collectives wait on buffers that nobody
 * else can reach, and so cannot be stopped. Here every wait is on a buffer that stands in a list,
 * and stopping is waking them all.
 *
 * Gloo throws; nothing is thrown out of this file. What it takes for a mistake of its user ends the
 * process on its own thread, where nobody can catch it: a message longer than the memory it is
 * for. The algorithms see to it that there is none (lane/open.c).
 */

namespace
{

/* Its waits have a timeout, and one that runs out closes the pairs. Ours end otherwise. */
constexpr std::chrono::milliseconds FOREVER = std::chrono::hours(24 * 365);
/* A pair gives up connecting after five times this. */
constexpr std::chrono::milliseconds LONGER_THAN_ANY_CONNECT = std::chrono::hours(24);

constexpr std::chrono::milliseconds AT_ONCE = std::chrono::milliseconds(1);
constexpr int64_t CLOSE_AGAIN_US = 5000;

struct gloo_peer {
    struct gloo_link *link;
    uint32_t rank;
    gloo::transport::Pair *pair;
    std::vector<char> own; /* address: the pair's changes when it connects, and with it whose turn
                              it is to dial */
    std::vector<char> told;
    pthread_t thread;
    bool started, done; /* done and what follows: under the link's mutex */
    int code;
    struct hvd_err why;
};

struct gloo_link {
    struct link base;
    struct reaper *reaper;
    struct reaper_job closing;
    std::shared_ptr<gloo::transport::Context> context;
    std::vector<gloo_peer> peers;
    struct quiet_pipe pipe;

    pthread_mutex_t mutex; /* of what follows */
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

/* What Gloo starts in here takes no signal: neither those of the program, nor the SIGPIPE of a peer
 * that is gone. */
class Silent
{
  public:
    Silent()
    {
        sigset_t all;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~Silent()
    {
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    Silent(const Silent &) = delete;
    Silent &operator=(const Silent &) = delete;

  private:
    sigset_t before_;
};

gloo_link *of(struct link *link)
{
    return reinterpret_cast<gloo_link *>(link);
}

gloo_request *of(struct link_request *request)
{
    return reinterpret_cast<gloo_request *>(request);
}

/* Runs what may throw, and gives what it comes to. */
template <typename Work> int guarded(struct hvd_err *err, const char *what, Work work)
{
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return err_set(err, HVD_E_NOMEM, "out of memory");
    } catch (const std::exception &fault) {
        return err_set(err, HVD_E_LOST, "%s: %s", what, fault.what());
    } catch (...) {
        return err_set(err, HVD_E_INTERNAL, "%s: of no known kind", what);
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

/* ---- connecting ---- */

int link_address(struct link *base, uint32_t rank, uint8_t *ret_bytes, size_t *ret_length,
                 struct hvd_err *err)
{
    const std::vector<char> &own = find(of(base), rank)->own;

    if (own.size() > LINK_ADDRESS_MAX)
        return err_set(err, HVD_E_LIMIT, "Gloo's addresses have grown to %zu bytes", own.size());
    std::copy(own.begin(), own.end(), ret_bytes);
    *ret_length = own.size();
    return 0;
}

/* Connecting a pair waits for the other side: each has a thread for that long. */
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

/* Not once it is cancelled: the reaper has closed the pairs by then, and waits for who connects. */
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
                           "cannot start a thread; raise the limit of processes (ulimit -u)");
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
        return peer.done ? err_set(err, HVD_E_LOST, "its connection broke: %s", peer.why.text)
                         : err_set(err, HVD_E_TIMEOUT, "its connection was not made in time");
    }
    return 0;
}

/* ---- messages ---- */

void link_enter(struct link *base)
{
    quiet_pipe_begin(&of(base)->pipe);
}

void link_leave(struct link *base)
{
    quiet_pipe_end(&of(base)->pipe);
}

/* The memory is not touched by anybody once this has returned: Gloo waits until its thread has let
 * go of it. */
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

/* A cancel between the look and the wait is not missed: the buffer remembers it. */
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

/* ---- the end ---- */

bool anybody_connects(gloo_link *link)
{
    return std::any_of(link->peers.begin(), link->peers.end(),
                       [](const gloo_peer &peer) { return peer.started && !peer.done; });
}

/* Peers see an end, and Gloo's thread has no connection left to look at. Takes up to 10 ms for
 * each: that long Gloo's loop may sleep before it lets go of one.
 *
 * Not by closing the pairs: that resets them, and a Gloo that finds a connection reset which it has
 * just accepted ends its process. A wait whose time runs out closes them as a process that ends
 * does. A thread that was only about to connect may miss it: again. */
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
        if (anybody_connects(link))
            (void)thread_cond_wait(&link->changed, &link->mutex, clock_now_us() + CLOSE_AGAIN_US);
        again = anybody_connects(link);
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

/* Who has not been cancelled closes softly: what was sent still arrives. */
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
    link_address, link_connect, link_connected, link_enter,  link_leave, link_send,
    link_receive, link_wait,    link_drop,      link_cancel, link_free,
};

} // namespace

struct gloo_device {
    std::shared_ptr<gloo::transport::Device> device;
};

int gloo_device_open(const char *host, struct gloo_device **ret_device, struct hvd_err *err)
{
    return guarded(err, "Gloo cannot use that address", [&] {
        std::unique_ptr<gloo_device> opened(new gloo_device);
        struct gloo::transport::tcp::attr attr(host);

        {
            Silent silent;
            opened->device = gloo::transport::tcp::CreateDevice(attr);
        }
        *ret_device = opened.release();
        return 0;
    });
}

void gloo_device_close(struct gloo_device *device)
{
    (void)guarded(nullptr, "closing", [&] {
        delete device;
        return 0;
    });
}

int gloo_link_create(struct gloo_device *device, struct reaper *reaper, uint32_t rank,
                     uint32_t size, const uint32_t *peers, size_t peer_count,
                     struct link **ret_link, struct hvd_err *err)
{
    return guarded(err, "Gloo cannot make connections", [&] {
        std::unique_ptr<gloo_link> link(new gloo_link());

        link->base.ops = &operations;
        link->reaper = reaper;
        link->closing.run = close_pairs;
        link->closing.arg = link.get();
        list_init(&link->in_flight);
        link->context =
            device->device->createContext(static_cast<int>(rank), static_cast<int>(size));
        link->context->setTimeout(LONGER_THAN_ANY_CONNECT);
        link->peers.resize(peer_count);
        for (size_t i = 0; i < peer_count; i++) {
            link->peers[i].link = link.get();
            link->peers[i].rank = peers[i];
            link->peers[i].pair = link->context->createPair(static_cast<int>(peers[i])).get();
            link->peers[i].own = link->peers[i].pair->address().bytes();
        }
        pthread_mutex_init(&link->mutex, nullptr);
        if (thread_cond_init(&link->changed)) {
            pthread_mutex_destroy(&link->mutex);
            return err_set(err, HVD_E_NOMEM, "out of memory");
        }
        *ret_link = &link.release()->base;
        return 0;
    });
}
