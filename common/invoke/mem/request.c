/* The handlers' side. */
#include "common/invoke/mem/mem_internal.h"

#include "common/base/alloc.h"

#include <string.h>

static struct mem_request *
request_of(struct toc_invoke_mem_request *request)
{
    return toc_container_of(request, struct mem_request, public);
}

static void
copy_fire(const struct toc_fire *from, struct toc_arena *arena,
          struct toc_invoke_mem_fire *ret)
{
    const struct toc_task *task = from->task;

    *ret = (struct toc_invoke_mem_fire){
        .task = task->id,
        .fire = task->fire,
        .attempt = from->attempt,
        .due_ms = task->due_ms,
        .at_most_once = from->spec->at_most_once ||
                        (task->flags & TOC_FLAG_AT_MOST_ONCE) != 0,
        .biz_type = toc_arena_str(arena, task->biz_type),
        .biz_id = toc_arena_str(arena, task->biz_id),
        .name = toc_arena_str(arena, task->name),
        .payload = toc_arena_str(arena, task->payload)};
}

struct mem_request *
toc_invoke_mem_request_new(struct mem_op *op, struct mem_server *server)
{
    struct mem_request *request = TOC_NEW(struct mem_request);
    const struct toc_call *call = op->call;
    struct toc_invoke_mem_fire *fires =
        toc_arena_calloc(&request->arena, call->n, sizeof *fires);

    for (size_t i = 0; i < call->n; i++)
        copy_fire(&call->fires[i], &request->arena, &fires[i]);
    request->public = (struct toc_invoke_mem_request){
        .method = toc_arena_str(&request->arena, toc_str_of(op->method)),
        .batch = call->batch,
        .fires = fires,
        .n = call->n,
        .not_after_ms = call->not_after_ms};
    request->op = op;
    request->server = server;
    op->request = request;
    toc_list_push(&op->invoke->world->requests, &request->link);
    return request;
}

void
toc_invoke_mem_request_free(struct mem_request *request)
{
    toc_list_remove(&request->link);
    if (request->op != NULL)
        request->op->request = NULL;
    toc_arena_done(&request->arena);
    toc_free(request);
}

/* What a business that is not understood may have done. */
static struct toc_answer
unreadable(const struct toc_invoke_mem_fire *fire)
{
    struct toc_answer answer = {.kind = fire->at_most_once ? TOC_ANSWER_UNKNOWN
                                                           : TOC_ANSWER_FAILED};

    toc_copy(answer.error, sizeof answer.error,
             TOC_STR("the reply has no answer for this fire"));
    return answer;
}

static void
take_answers(struct mem_op *op, const struct mem_request *request,
             const struct toc_answer *answers, size_t n)
{
    op->answers = TOC_NEW_ARRAY(struct toc_answer, request->public.n);
    for (size_t i = 0; i < request->public.n; i++)
        op->answers[i] =
            i < n ? answers[i] : unreadable(&request->public.fires[i]);
    op->state = op->fate.lose_answer ? MEM_LOST
                : op->fate.break_off ? MEM_BROKEN
                                     : MEM_ANSWERED;
    op->at_ns = toc_clock_mono(op->invoke->world->clock).ns +
                op->fate.answer_delay_ms * TOC_NS_PER_MS;
    toc_invoke_mem_op_schedule(op);
}

void
toc_invoke_mem_answer(struct toc_invoke_mem_world *world,
                      struct toc_invoke_mem_request *request,
                      const struct toc_answer *answers, size_t n)
{
    struct mem_request *inner = request_of(request);

    pthread_mutex_lock(&world->lock);
    if (inner->op != NULL && inner->server != NULL)
        take_answers(inner->op, inner, answers, n);
    toc_invoke_mem_request_free(inner);
    pthread_mutex_unlock(&world->lock);
    if (world->threads)
        toc_bell_ring(&world->bell);
}

void
toc_invoke_mem_drop(struct toc_invoke_mem_world *world,
                    struct toc_invoke_mem_request *request)
{
    pthread_mutex_lock(&world->lock);
    toc_invoke_mem_request_free(request_of(request));
    pthread_mutex_unlock(&world->lock);
}

bool
toc_invoke_mem_gone(struct toc_invoke_mem_world *world,
                    struct toc_invoke_mem_request *request)
{
    bool gone;

    pthread_mutex_lock(&world->lock);
    gone = request_of(request)->op == NULL;
    pthread_mutex_unlock(&world->lock);
    return gone;
}

/* ---- who is there ----------------------------------------------------------
 */

/* Breaks off what the server has not answered. */
static void
remove_server(struct toc_invoke_mem_world *world, struct mem_server *server)
{
    struct toc_link *link;

    for (link = world->requests.next; link != &world->requests;
         link = link->next) {
        struct mem_request *request =
            toc_container_of(link, struct mem_request, link);
        if (request->server != server)
            continue;
        request->server = NULL;
        if (request->op == NULL)
            continue;
        request->op->request = NULL;
        request->op->state = MEM_BROKEN;
        request->op->at_ns = toc_clock_mono(world->clock).ns;
        toc_invoke_mem_op_schedule(request->op);
        request->op = NULL;
    }
    toc_list_remove(&server->link);
    toc_free(server->address);
    toc_free(server);
}

static struct mem_server *
find_server(struct toc_invoke_mem_world *world, const char *address)
{
    struct toc_link *link;

    for (link = world->servers.next; link != &world->servers;
         link = link->next) {
        struct mem_server *server =
            toc_container_of(link, struct mem_server, link);
        if (strcmp(server->address, address) == 0)
            return server;
    }
    return NULL;
}

void
toc_invoke_mem_unserve(struct toc_invoke_mem_world *world, const char *address)
{
    struct mem_server *server;

    pthread_mutex_lock(&world->lock);
    server = find_server(world, address);
    if (server != NULL)
        remove_server(world, server);
    pthread_mutex_unlock(&world->lock);
    if (world->threads)
        toc_bell_ring(&world->bell);
}

void
toc_invoke_mem_serve(struct toc_invoke_mem_world *world, const char *address,
                     toc_invoke_mem_handler_fn *fn, void *arg)
{
    struct mem_server *server = TOC_NEW(struct mem_server);

    toc_invoke_mem_unserve(world, address);
    *server = (struct mem_server){
        .address = toc_strdup(address), .fn = fn, .arg = arg};
    pthread_mutex_lock(&world->lock);
    toc_list_push(&world->servers, &server->link);
    pthread_mutex_unlock(&world->lock);
}

/* ---- arriving, and the world's time
 * ------------------------------------------
 */

/* The handler runs without the lock. */
static void
arrive(struct toc_invoke_mem_world *world, struct mem_op *op)
{
    struct mem_server *server = find_server(world, op->address);
    struct mem_request *request;
    toc_invoke_mem_handler_fn *fn;
    void *arg;

    if (op->fate.unreachable || op->invoke->cut ||
        (server == NULL && !op->fate.lose)) {
        toc_invoke_mem_op_end(op);
        return;
    }
    if (op->fate.lose) {
        op->state = MEM_LOST;
        toc_invoke_mem_op_schedule(op);
        return;
    }
    op->state = MEM_SERVED;
    request = toc_invoke_mem_request_new(op, server);
    toc_invoke_mem_op_schedule(op);
    fn = server->fn;
    arg = server->arg;
    pthread_mutex_unlock(&world->lock);
    fn(arg, &request->public);
    pthread_mutex_lock(&world->lock);
}

int64_t
toc_invoke_mem_pump(struct toc_invoke_mem_world *world)
{
    int64_t next_ns = INT64_MAX;

    pthread_mutex_lock(&world->lock);
    for (;;) {
        struct toc_heap_node *node = toc_heap_min(&world->ops);
        if (node == NULL)
            break;
        struct mem_op *op = toc_container_of(node, struct mem_op, node);
        int64_t now_ns = toc_clock_mono(world->clock).ns;
        next_ns = op->next_ns;
        if (next_ns > now_ns)
            break;
        next_ns = INT64_MAX;
        if (op->state == MEM_TRAVELLING && !op->cancelled &&
            op->at_ns <= now_ns && op->at_ns < op->deadline_ns)
            arrive(world, op);
        else
            toc_invoke_mem_op_end(op);
    }
    pthread_mutex_unlock(&world->lock);
    return next_ns;
}

static void
run(void *arg)
{
    struct toc_invoke_mem_world *world = arg;

    for (;;) {
        int64_t next_ns = toc_invoke_mem_pump(world);
        pthread_mutex_lock(&world->lock);
        bool stopping = world->stopping;
        pthread_mutex_unlock(&world->lock);
        if (stopping)
            return;
        (void)toc_bell_wait(&world->bell, next_ns);
    }
}

static bool
op_less(const struct toc_heap_node *a, const struct toc_heap_node *b)
{
    const struct mem_op *x = (const struct mem_op *)(const void *)a;
    const struct mem_op *y = (const struct mem_op *)(const void *)b;

    if (x->next_ns != y->next_ns)
        return x->next_ns < y->next_ns;
    return x->seq < y->seq;
}

struct toc_invoke_mem_world *
toc_invoke_mem_world_new(const struct toc_invoke_mem_options *options)
{
    struct toc_invoke_mem_world *world = TOC_NEW(struct toc_invoke_mem_world);

    world->clock = options->clock;
    world->threads = options->threads;
    world->fate = options->fate;
    world->fate_arg = options->fate_arg;
    pthread_mutex_init(&world->lock, NULL);
    pthread_cond_init(&world->idle, NULL);
    toc_heap_init(&world->ops, op_less);
    toc_list_init(&world->servers);
    toc_list_init(&world->requests);
    toc_bell_init(&world->bell);
    if (world->threads)
        toc_thread_start(&world->thread, "invoke-mem", run, world);
    return world;
}

void
toc_invoke_mem_world_free(struct toc_invoke_mem_world *world)
{
    if (world == NULL)
        return;
    pthread_mutex_lock(&world->lock);
    world->stopping = true;
    pthread_mutex_unlock(&world->lock);
    toc_bell_ring(&world->bell);
    toc_thread_join(&world->thread);
    while (!toc_list_empty(&world->servers))
        remove_server(world, toc_container_of(world->servers.next,
                                              struct mem_server, link));
    while (!toc_list_empty(&world->requests))
        toc_invoke_mem_request_free(
            toc_container_of(world->requests.next, struct mem_request, link));
    toc_heap_done(&world->ops);
    toc_bell_done(&world->bell);
    pthread_cond_destroy(&world->idle);
    pthread_mutex_destroy(&world->lock);
    toc_free(world);
}
