#include "bench/plain_gloo.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <vector>

/* Its keys are "rank_I", the name of a machine, and "I", the addresses of its pairs. */
namespace
{
constexpr size_t VALUE_MAX = 16384;
constexpr size_t MACHINE = 0, ADDRESSES = 1;

struct entry {
    uint32_t round; /* 0: nothing is here; atomic */
    uint32_t length;
    char bytes[VALUE_MAX];
};
} // namespace

struct plain_gloo_store {
    entry entries[PLAIN_GLOO_MAX][2];
};

struct plain_gloo_device {
    std::shared_ptr<gloo::transport::Device> device;
};

struct plain_gloo {
    std::shared_ptr<gloo::rendezvous::Context> context;
};

namespace
{
[[noreturn]] void fail(const char *what)
{
    (void)fprintf(stderr, "bench: Gloo: %s\n", what);
    exit(1);
}

/* Gloo throws; a benchmark has nothing to do then. */
template <typename Work> auto guarded(Work work) -> decltype(work())
{
    try {
        return work();
    } catch (const std::exception &fault) {
        fail(fault.what());
    }
}

class SharedStore : public gloo::rendezvous::Store
{
  public:
    SharedStore(plain_gloo_store *shared, uint32_t round) : shared_(shared), round_(round)
    {
    }

    void set(const std::string &key, const std::vector<char> &data) override
    {
        entry *at = find(key);

        if (data.size() > VALUE_MAX)
            fail("its addresses have grown");
        std::copy(data.begin(), data.end(), at->bytes);
        at->length = static_cast<uint32_t>(data.size());
        __atomic_store_n(&at->round, round_, __ATOMIC_RELEASE);
    }

    std::vector<char> get(const std::string &key) override
    {
        const entry *at = find(key);

        while (__atomic_load_n(&at->round, __ATOMIC_ACQUIRE) != round_)
            (void)sched_yield();
        return std::vector<char>(at->bytes, at->bytes + at->length);
    }

    void wait(const std::vector<std::string> &keys) override
    {
        for (const std::string &key : keys)
            (void)get(key);
    }

    void wait(const std::vector<std::string> &keys, const std::chrono::milliseconds &) override
    {
        wait(keys);
    }

  private:
    entry *find(const std::string &key)
    {
        bool machine = key.compare(0, 5, "rank_") == 0;
        unsigned long rank = strtoul(key.c_str() + (machine ? 5 : 0), nullptr, 10);

        if (rank >= PLAIN_GLOO_MAX)
            fail("a key that is not known");
        return &shared_->entries[rank][machine ? MACHINE : ADDRESSES];
    }

    plain_gloo_store *shared_;
    uint32_t round_;
};
} // namespace

extern "C" plain_gloo_store *plain_gloo_store_create(void)
{
    void *memory = mmap(nullptr, sizeof(plain_gloo_store), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        fail("no memory for its store");
    return static_cast<plain_gloo_store *>(memory);
}

extern "C" void plain_gloo_store_free(plain_gloo_store *store)
{
    (void)munmap(store, sizeof(*store));
}

extern "C" plain_gloo_device *plain_gloo_device_open(void)
{
    return guarded([] {
        gloo::transport::tcp::attr attr;

        attr.hostname = "127.0.0.1";
        return new plain_gloo_device{ gloo::transport::tcp::CreateDevice(attr) };
    });
}

extern "C" void plain_gloo_device_close(plain_gloo_device *device)
{
    delete device;
}

extern "C" plain_gloo *plain_gloo_connect(plain_gloo_device *device, plain_gloo_store *store,
                                          uint32_t round, uint32_t rank, uint32_t size)
{
    return guarded([&] {
        SharedStore keys(store, round);
        auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(rank),
                                                                   static_cast<int>(size));

        context->connectFullMesh(keys, device->device);
        return new plain_gloo{ context };
    });
}

extern "C" void plain_gloo_free(plain_gloo *gloo)
{
    guarded([&] { gloo->context->closeConnections(); });
    delete gloo;
}

extern "C" void plain_gloo_allreduce(plain_gloo *gloo, bool bcube, float *numbers, size_t count)
{
    using Options = gloo::AllreduceOptions;

    guarded([&] {
        Options options(gloo->context);

        options.setAlgorithm(bcube ? Options::Algorithm::BCUBE : Options::Algorithm::RING);
        options.setOutput(numbers, count);
        options.setReduceFunction(
            static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
        gloo::allreduce(options);
    });
}
