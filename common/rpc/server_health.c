/*
 * grpc.health.v1: Check, and Watch, which tells each change until the client
 * goes or the server stops. All services of a server share one state.
 *
 * Locks: its own, over the state, the list of watches and each watch; only
 * starting a batch is done under it.
 */
#include "common/rpc/server_internal.h"

#include "common/base/alloc.h"
#include "common/base/list.h"

#include "grpc/health/v1/health.pb-c.h"

#define HEALTH(name) \
    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

enum { METHOD_CHECK, METHOD_WATCH };

struct rpc_health {
    struct toc_rpc_server *server;
    pthread_mutex_t lock;
    bool serving, stopping;
    struct toc_link watches;
};

/* In its call's arena. */
struct watch {
    struct toc_link link;
    struct rpc_health *health;
    struct toc_rpc_call *call;
    struct rpc_tag sent;
    bool known; /* is it a service of this server? */
    bool told;  /* has status been sent once? */
    Grpc__Health__V1__HealthCheckResponse__ServingStatus status;
    bool sending, closed, answered;
};

static const ProtobufCServiceDescriptor *service =
    &grpc__health__v1__health__descriptor;

static bool
known(const struct rpc_health *health, const char *name)
{
    return name[0] == '\0' || rpc_server_has(health->server, toc_str_of(name));
}

/* ---- Check ---------------------------------------------------------- */

static void
on_check(void *self, unsigned method, const ProtobufCMessage *message,
         struct toc_rpc_call *call)
{
    struct rpc_health *health = self;
    const Grpc__Health__V1__HealthCheckRequest *request =
        (const Grpc__Health__V1__HealthCheckRequest *)message;
    Grpc__Health__V1__HealthCheckResponse reply =
        GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    (void)method;
    if (!known(health, request->service)) {
        toc_rpc_fail_text(call, TOC_NOT_FOUND, "no such service here");
        return;
    }
    pthread_mutex_lock(&health->lock);
    reply.status = health->serving ? HEALTH(SERVING) : HEALTH(NOT_SERVING);
    pthread_mutex_unlock(&health->lock);
    toc_rpc_reply(call, &reply.base);
}

/* ---- Watch ---------------------------------------------------------- */

static Grpc__Health__V1__HealthCheckResponse__ServingStatus
status_now(const struct watch *watch)
{
    if (!watch->known)
        return HEALTH(SERVICE_UNKNOWN);
    return watch->health->serving ? HEALTH(SERVING) : HEALTH(NOT_SERVING);
}

static void
tell(struct watch *watch)
{
    Grpc__Health__V1__HealthCheckResponse reply =
        GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    watch->status = status_now(watch);
    watch->told = true;
    watch->sending = true;
    reply.status = watch->status;
    rpc_stream_send(watch->call, &reply.base, &watch->sent);
}

/* What is to be done next with a watch, when anything has changed. Locks: the
 * health's. */
static void
step(struct watch *watch)
{
    struct toc_rpc_call *call = watch->call;

    if (watch->answered || watch->sending)
        return;
    if (!watch->closed &&
        (!watch->told || watch->status != status_now(watch))) {
        tell(watch);
        return;
    }
    if (!watch->closed && !watch->health->stopping)
        return;
    watch->answered = true;
    toc_list_remove(&watch->link);
    if (watch->closed)
        toc_rpc_fail_text(call, TOC_CANCELLED, "the client has gone");
    else
        toc_rpc_fail_text(call, TOC_UNAVAILABLE, "the server stops");
}

static void
on_sent(void *object, bool ok)
{
    struct watch *watch = object;
    struct rpc_health *health = watch->health;

    pthread_mutex_lock(&health->lock);
    watch->sending = false;
    if (!ok)
        watch->closed = true;
    step(watch);
    pthread_mutex_unlock(&health->lock);
}

static void
on_watch_closed(struct toc_rpc_call *call)
{
    struct watch *watch = call->stream;
    struct rpc_health *health = watch->health;

    pthread_mutex_lock(&health->lock);
    watch->closed = true;
    step(watch);
    pthread_mutex_unlock(&health->lock);
}

static void
begin_watch(struct toc_rpc_call *call)
{
    struct rpc_health *health = call->method->server->health;
    const Grpc__Health__V1__HealthCheckRequest *request = toc_rpc_unpack(
        &grpc__health__v1__health_check_request__descriptor,
        rpc_buffer_view(call->payload, &call->arena), &call->arena);
    struct watch *watch;

    if (request == NULL) {
        toc_rpc_fail_text(call, TOC_INVALID, "the request is malformed");
        return;
    }
    watch = toc_arena_calloc(&call->arena, 1, sizeof *watch);
    watch->health = health;
    watch->call = call;
    watch->known = known(health, request->service);
    rpc_tag_init(&watch->sent, on_sent, watch);
    call->stream = watch;
    call->on_closed = on_watch_closed;
    pthread_mutex_lock(&health->lock);
    toc_list_push(&health->watches, &watch->link);
    step(watch);
    pthread_mutex_unlock(&health->lock);
}

/* ---- the state ------------------------------------------------------ */

static void
step_all(struct rpc_health *health)
{
    struct toc_link *at = health->watches.next;

    while (at != &health->watches) {
        struct toc_link *next = at->next;
        step(toc_container_of(at, struct watch, link));
        at = next;
    }
}

void
rpc_health_set(struct rpc_health *health, bool serving)
{
    pthread_mutex_lock(&health->lock);
    health->serving = serving && !health->stopping;
    step_all(health);
    pthread_mutex_unlock(&health->lock);
}

void
rpc_health_stop(struct rpc_health *health)
{
    pthread_mutex_lock(&health->lock);
    health->stopping = true;
    health->serving = false;
    step_all(health);
    pthread_mutex_unlock(&health->lock);
}

struct rpc_health *
rpc_health_new(struct toc_rpc_server *server)
{
    struct rpc_health *health = TOC_NEW(struct rpc_health);

    health->server = server;
    pthread_mutex_init(&health->lock, NULL);
    toc_list_init(&health->watches);
    rpc_server_add_stream(server, service, METHOD_WATCH, true, begin_watch);
    toc_rpc_server_add(server, service, on_check, health);
    return health;
}

void
rpc_health_free(struct rpc_health *health)
{
    if (health == NULL)
        return;
    pthread_mutex_destroy(&health->lock);
    toc_free(health);
}
