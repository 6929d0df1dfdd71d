#include "admin/service.h"

#include "admin/service_internal.h"
#include "admin/workers_runner.h"
#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/log.h"

#include <stdatomic.h>
#include <string.h>

#define WORKERS_DEFAULT 8
#define QUEUE_DEFAULT 256
#define LIST_MS_DEFAULT 1000
#define RETRY_AFTER_MS 500

struct admin_service {
    struct admin_service_options options;
    struct admin_workers *workers;
    struct admin_names *names;
    struct toc_rpc_client *client;
    atomic_bool stopping;
};

struct job {
    struct admin_call call;
    admin_handler_fn *handler;
};

struct toc_store *
admin_call_store(const struct admin_call *call)
{
    return call->service->options.store;
}

struct toc_coord *
admin_call_coord(const struct admin_call *call)
{
    return call->service->options.coord;
}

const struct toc_clock *
admin_call_clock(const struct admin_call *call)
{
    return call->service->options.clk;
}

struct toc_rpc_client *
admin_call_client(const struct admin_call *call)
{
    return call->service->client;
}

int64_t
admin_call_list_ms_max(const struct admin_call *call)
{
    return call->service->options.list_ms_max;
}

void
admin_fail_error(struct admin_call *call, enum toc_status st,
                 const struct toc_error *error)
{
    if (st == TOC_NOT_FOUND || st == TOC_INVALID) {
        toc_rpc_fail_text(call->rpc, st, "%s", error->msg);
        return;
    }
    TOC_LOG(WARN, "admin.call_failed", F_MSG("answered with an error"),
            F_STR("status", toc_status_text(st)), F_ERR(error));
    /* A backend's own words may show statements and hosts: they are for the
     * log. */
    toc_rpc_fail_text(call->rpc, st,
                      toc_status_retryable(st)
                          ? "%s cannot be reached in time, try again"
                          : "%s failed; the admin's log says more",
                      error->source != NULL ? error->source : "the database");
}

static void
run_job(void *arg)
{
    struct job *job = arg;
    struct admin_call *call = &job->call;

    if (atomic_load(&call->service->stopping)) {
        toc_rpc_fail_text(call->rpc, TOC_UNAVAILABLE, "this admin is stopping");
        return;
    }
    if (toc_rpc_call_cancelled(call->rpc)) {
        toc_rpc_fail_text(call->rpc, TOC_CANCELLED, "nobody waits any more");
        return;
    }
    call->now_ms = toc_clock_wall(call->service->options.clk).ms;
    job->handler(call);
}

static admin_handler_fn *
handler_named(const char *name)
{
    static const struct {
        const char *name;
        admin_handler_fn *handler;
    } all[] = {
        {"ListTasks", admin_list_tasks},
        {"GetTimeline", admin_get_timeline},
        {"ListDead", admin_list_dead},
        {"RedriveDead", admin_redrive_dead},
        {"ListShards", admin_list_shards},
        {"ListNodes", admin_list_nodes},
        {"ListBuckets", admin_list_buckets},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].handler;
    return NULL;
}

static void
refuse_full(struct admin_service *service, struct toc_rpc_call *rpc)
{
    struct toc_rpc_failure failure;

    toc_rpc_failure_init(&failure, toc_rpc_call_arena(rpc));
    if (atomic_load(&service->stopping))
        toc_rpc_failure_set(&failure, TOC_UNAVAILABLE,
                            "this admin is stopping");
    else
        toc_rpc_failure_set(&failure, TOC_EXHAUSTED, "%zu calls wait already",
                            service->options.queue_max);
    failure.retry_after_ms = RETRY_AFTER_MS;
    toc_rpc_fail(rpc, &failure);
}

/* Thread: the server's. */
static void
handle(void *self, unsigned method, const ProtobufCMessage *request,
       struct toc_rpc_call *rpc)
{
    struct admin_service *service = self;
    struct toc_arena *arena = toc_rpc_call_arena(rpc);
    struct job *job = toc_arena_calloc(arena, 1, sizeof *job);

    job->handler =
        handler_named(toc__v1__admin_service__descriptor.methods[method].name);
    job->call = (struct admin_call){
        .service = service,
        .rpc = rpc,
        .arena = arena,
        .request = request,
        .names = {service->names, arena},
    };
    if (job->handler == NULL)
        toc_rpc_fail_text(rpc, TOC_UNIMPLEMENTED, "not served yet");
    else if (!admin_workers_push(service->workers, job))
        refuse_full(service, rpc);
}

struct admin_service *
admin_service_new(const struct admin_service_options *options)
{
    struct admin_service *service = TOC_NEW(struct admin_service);
    struct admin_service_options *own = &service->options;

    *own = *options;
    own->workers = own->workers > 0 ? own->workers : WORKERS_DEFAULT;
    own->queue_max = own->queue_max > 0 ? own->queue_max : QUEUE_DEFAULT;
    own->list_ms_max =
        own->list_ms_max > 0 ? own->list_ms_max : LIST_MS_DEFAULT;
    atomic_init(&service->stopping, false);
    service->names = admin_names_new(own->store, own->clk);
    service->client =
        toc_rpc_client_new(&(struct toc_rpc_client_options){.clock = own->clk});
    service->workers = admin_workers_new(own->workers, own->queue_max, run_job);
    return service;
}

void
admin_service_add(struct admin_service *service, struct toc_rpc_server *server)
{
    toc_rpc_server_add(server, &toc__v1__admin_service__descriptor, handle,
                       service);
}

void
admin_service_stop(struct admin_service *service)
{
    atomic_store(&service->stopping, true);
    toc_rpc_cancel_all(service->client);
    admin_workers_stop(service->workers);
}

void
admin_service_free(struct admin_service *service)
{
    if (service == NULL)
        return;
    admin_workers_free(service->workers);
    admin_names_free(service->names);
    toc_rpc_client_free(service->client);
    toc_free(service);
}
