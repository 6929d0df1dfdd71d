#include "common/rpc/client_channel.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/base/hmap.h"
#include "common/base/list.h"

#include <pthread.h>

/*
 * Default servers take more than one ping in 5 minutes without data for an
 * attack, and close the connection ("too many pings"). A vanished peer is found
 * out sooner than that: with keepalive on, unanswered data ends the connection
 * after the keepalive timeout (TCP_USER_TIMEOUT).
 */
#define KEEPALIVE_MS 310000
#define KEEPALIVE_TIMEOUT_MS 10000
/* A restarted peer must be found again soon. */
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 2000
#define CONNECT_MIN_MS 3000
#define RESOLVE_LEAST_MS 2000
#define METADATA_BYTES (64 * 1024)

struct channel {
    struct toc_hnode node;
    struct toc_link used; /* in the list, longest unused first */
    grpc_channel *grpc;
    struct toc_str address;
};

struct rpc_channels {
    pthread_mutex_t lock;
    size_t max;
    int reply_bytes_max;
    struct toc_hmap map;
    struct toc_link used;
};

static bool
same_address(const struct toc_hnode *node, const void *key)
{
    const struct channel *channel =
        toc_container_of(node, struct channel, node);

    return toc_str_eq(channel->address, *(const struct toc_str *)key);
}

/* "dns:" for numbers too: it reads them without asking anybody. */
static grpc_channel *
create(const char *address, int reply_bytes_max)
{
    grpc_arg args[] = {
        rpc_arg(GRPC_ARG_ENABLE_RETRIES, 0),    /* TOC decides about those */
        rpc_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0), /* peers are in the house */
        rpc_arg(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        rpc_arg(GRPC_ARG_ENABLE_CHANNELZ, 0),
        rpc_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        rpc_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, reply_bytes_max),
        rpc_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
        rpc_arg(GRPC_ARG_MAX_METADATA_SIZE, METADATA_BYTES),
        rpc_arg(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
        rpc_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
        rpc_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0),
        rpc_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_FIRST_MS),
        rpc_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MAX_MS),
        rpc_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_MIN_MS),
        rpc_arg(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, RESOLVE_LEAST_MS),
    };
    grpc_channel_args all = {sizeof args / sizeof args[0], args};
    grpc_channel_credentials *open = grpc_insecure_credentials_create();
    struct toc_buf target = {0};
    grpc_channel *channel;

    toc_buf_printf(&target, "dns:///%s", address);
    channel = grpc_channel_create(target.data, open, &all);
    TOC_ASSERT(channel != NULL);
    grpc_channel_credentials_release(open);
    toc_buf_done(&target);
    return channel;
}

static void
drop(struct rpc_channels *channels, struct channel *channel)
{
    toc_hmap_remove(&channels->map, &channel->node);
    toc_list_remove(&channel->used);
    grpc_channel_destroy(channel->grpc);
    toc_free((char *)channel->address.ptr);
    toc_free(channel);
}

static struct channel *
add(struct rpc_channels *channels, const char *address, uint64_t hash)
{
    struct channel *channel = TOC_NEW(struct channel);

    if (channels->map.len >= channels->max)
        drop(channels,
             toc_container_of(channels->used.next, struct channel, used));
    channel->grpc = create(address, channels->reply_bytes_max);
    channel->address = toc_str_of(toc_strdup(address));
    toc_list_init(&channel->used);
    toc_hmap_insert(&channels->map, &channel->node, hash);
    return channel;
}

static struct channel *
find_or_add(struct rpc_channels *channels, const char *address)
{
    struct toc_str key = toc_str_of(address);
    uint64_t hash = toc_hash64(key.ptr, key.len);
    struct toc_hnode *node =
        toc_hmap_find(&channels->map, hash, same_address, &key);
    struct channel *channel = node != NULL
                                  ? toc_container_of(node, struct channel, node)
                                  : add(channels, address, hash);

    toc_list_remove(&channel->used);
    toc_list_push(&channels->used, &channel->used);
    return channel;
}

/* Under the lock, so that the channel is not closed by another thread before
 * the call holds it. */
grpc_call *
rpc_channels_call(struct rpc_channels *channels, grpc_completion_queue *queue,
                  const char *address, const char *method,
                  gpr_timespec deadline)
{
    grpc_slice path = grpc_slice_from_copied_string(method);
    struct channel *channel;
    grpc_call *call;

    pthread_mutex_lock(&channels->lock);
    channel = find_or_add(channels, address);
    call =
        grpc_channel_create_call(channel->grpc, NULL, GRPC_PROPAGATE_DEFAULTS,
                                 queue, path, NULL, deadline, NULL);
    pthread_mutex_unlock(&channels->lock);
    TOC_ASSERT(call != NULL);
    grpc_slice_unref(path);
    return call;
}

grpc_call *
rpc_channels_lame_call(grpc_completion_queue *queue, const char *text,
                       bool cancelled)
{
    grpc_channel *lame = grpc_lame_client_channel_create(
        "toc-none",
        cancelled ? GRPC_STATUS_CANCELLED : GRPC_STATUS_INVALID_ARGUMENT, text);
    grpc_call *call =
        grpc_channel_create_call(lame, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
                                 grpc_slice_from_static_string("/"), NULL,
                                 gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

    TOC_ASSERT(call != NULL);
    grpc_channel_destroy(lame);
    return call;
}

struct rpc_channels *
rpc_channels_new(size_t max, int reply_bytes_max)
{
    struct rpc_channels *channels = TOC_NEW(struct rpc_channels);

    TOC_ASSERT(max > 0);
    channels->max = max;
    channels->reply_bytes_max = reply_bytes_max;
    pthread_mutex_init(&channels->lock, NULL);
    toc_list_init(&channels->used);
    return channels;
}

void
rpc_channels_free(struct rpc_channels *channels)
{
    if (channels == NULL)
        return;
    while (!toc_list_empty(&channels->used))
        drop(channels,
             toc_container_of(channels->used.next, struct channel, used));
    toc_hmap_done(&channels->map);
    pthread_mutex_destroy(&channels->lock);
    toc_free(channels);
}
