#define _GNU_SOURCE /* getrandom */
#include "common/base/rng.h"

#include "common/base/assert.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#define POOL_SIZE 256 /* getrandom gives this much without interruption */

struct pool {
    unsigned char bytes[POOL_SIZE];
    size_t left;
    unsigned fork_count;
};

static _Thread_local struct pool pool;

/* A child of fork must not hand out what its parent will hand out too. */
static _Atomic unsigned fork_count = 1;
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

static void
count_fork(void)
{
    atomic_fetch_add(&fork_count, 1);
}

static void
watch_forks(void)
{
    TOC_ASSERT(pthread_atfork(NULL, NULL, count_fork) == 0);
}

static void
ask_kernel(unsigned char *out, size_t len)
{
    while (len > 0) {
        ssize_t got = getrandom(out, len, 0);
        if (got < 0) {
            TOC_ASSERT(errno == EINTR);
            continue;
        }
        out += (size_t)got;
        len -= (size_t)got;
    }
}

static void
fill(void)
{
    pthread_once(&atfork_once, watch_forks);
    pool.fork_count = atomic_load(&fork_count);
    ask_kernel(pool.bytes, sizeof pool.bytes);
    pool.left = sizeof pool.bytes;
}

static struct toc_rng *seeded; /* NULL: the kernel */

void
toc_rng_use(struct toc_rng *rng)
{
    seeded = rng;
}

static void
ask_seeded(unsigned char *out, size_t len)
{
    while (len > 0) {
        uint64_t value = toc_rng_next(seeded);
        size_t n = len < sizeof value ? len : sizeof value;

        memcpy(out, &value, n);
        out += n;
        len -= n;
    }
}

void
toc_rng_bytes(void *out, size_t len)
{
    unsigned char *from;

    if (seeded != NULL) {
        ask_seeded(out, len);
        return;
    }
    if (len > POOL_SIZE / 2) {
        ask_kernel(out, len);
        return;
    }
    if (pool.left < len || pool.fork_count != atomic_load(&fork_count))
        fill();
    from = pool.bytes + (sizeof pool.bytes - pool.left);
    memcpy(out, from, len);
    memset(from, 0, len); /* handed out once, kept nowhere */
    pool.left -= len;
}

uint64_t
toc_rng_u64(void)
{
    uint64_t value;

    toc_rng_bytes(&value, sizeof value);
    return value;
}

static uint64_t
rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* splitmix64 (Vigna, public domain), which xoshiro's authors seed it with. */
void
toc_rng_seed(struct toc_rng *rng, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        rng->s[i] = z ^ (z >> 31);
    }
}

uint64_t
toc_rng_next(struct toc_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t
toc_rng_below(struct toc_rng *rng, uint64_t bound)
{
    uint64_t value, uneven;

    TOC_ASSERT(bound > 0);
    /* 2^64 mod bound: the numbers below it would come up once too often. */
    uneven = (UINT64_C(0) - bound) % bound;
    do {
        value = toc_rng_next(rng);
    } while (value < uneven);
    return value % bound;
}
