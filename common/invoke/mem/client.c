/* The executors' side: a call from its start to its end. */
#include "common/invoke/mem/mem_internal.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/invoke/target.h"

/* ---- ending ----------------------------------------------------------------
 */

/* When it has something to do next. */
static int64_t
next_of(const struct mem_op *op)
{
    bool waits = op->state == MEM_SERVED || op->state == MEM_LOST;
    bool held = op->invoke->cut && op->state != MEM_TRAVELLING;

    if (op->cancelled)
        return INT64_MIN;
    if (waits || held || op->at_ns > op->deadline_ns)
        return op->deadline_ns;
    return op->at_ns;
}

void
toc_invoke_mem_op_schedule(struct mem_op *op)
{
    op->next_ns = next_of(op);
    toc_heap_update(&op->invoke->world->ops, &op->node);
}

static void
set_all(struct toc_call *call, enum toc_answer_kind kind, const char *why)
{
    for (size_t i = 0; i < call->n; i++) {
        struct toc_answer *answer = &call->fires[i].answer;
        *answer = (struct toc_answer){.kind = kind};
        toc_copy(answer->error, sizeof answer->error, toc_str_of(why));
    }
}

/* Its answer is here, not only on its way. */
static bool
has_answer(const struct mem_op *op)
{
    return op->state == MEM_ANSWERED && !op->invoke->cut &&
           op->at_ns <= toc_clock_mono(op->invoke->world->clock).ns;
}

static void
set_answers(struct mem_op *op)
{
    struct toc_call *call = op->call;

    if (has_answer(op)) {
        for (size_t i = 0; i < call->n; i++)
            call->fires[i].answer = op->answers[i];
    } else if (op->cancelled) {
        set_all(call, TOC_ANSWER_UNKNOWN, "cancelled");
    } else if (op->next_ns >= op->deadline_ns) {
        set_all(call, TOC_ANSWER_UNKNOWN, "deadline exceeded");
    } else if (op->state == MEM_TRAVELLING) {
        set_all(call, TOC_ANSWER_UNREACHABLE, "nobody answers there");
    } else {
        set_all(call, TOC_ANSWER_UNKNOWN, "the connection broke");
    }
}

static void
free_op(struct mem_op *op)
{
    toc_heap_remove(&op->invoke->world->ops, &op->node);
    toc_list_remove(&op->link);
    if (op->request != NULL)
        op->request->op = NULL;
    toc_free(op->answers);
    toc_free(op->address);
    toc_free(op->method);
    toc_free(op);
}

void
toc_invoke_mem_op_end(struct mem_op *op)
{
    struct toc_invoke_mem *invoke = op->invoke;
    struct toc_invoke_mem_world *world = invoke->world;
    struct toc_call *call = op->call;

    set_answers(op);
    call->backend = NULL;
    free_op(op);
    invoke->telling++;
    pthread_mutex_unlock(&world->lock);
    call->done(call);
    pthread_mutex_lock(&world->lock);
    invoke->telling--;
    pthread_cond_broadcast(&world->idle);
}

/* ---- operations
 * -------------------------------------------------------------- */

static char *
text_of(struct toc_str text)
{
    return toc_strndup(text.len > 0 ? text.ptr : "", text.len);
}

static struct mem_op *
new_op(struct toc_invoke_mem *invoke, struct toc_call *call,
       const struct toc_invoke_target *target)
{
    struct toc_invoke_mem_world *world = invoke->world;
    struct mem_op *op = TOC_NEW(struct mem_op);

    toc_list_init(&op->link);
    op->invoke = invoke;
    op->call = call;
    op->address = text_of(target->address);
    op->method = text_of(target->method);
    if (world->fate != NULL)
        op->fate = world->fate(world->fate_arg, call);
    op->at_ns =
        toc_clock_mono(world->clock).ns + op->fate.delay_ms * TOC_NS_PER_MS;
    /* its own process's clock may run differently */
    op->deadline_ns = toc_clock_mono(world->clock).ns + call->deadline_ns -
                      toc_clock_mono(invoke->clock).ns;
    op->next_ns = next_of(op);
    return op;
}

static void
op_start(void *self, struct toc_call *call)
{
    struct toc_invoke_mem *invoke = self;
    struct toc_invoke_mem_world *world = invoke->world;
    struct toc_invoke_target target;
    const char *wrong = toc_invoke_target_parse(call->target, &target);
    struct mem_op *op;

    call->backend = NULL;
    for (size_t i = 0; i < call->n; i++)
        call->fires[i].answer = (struct toc_answer){0};
    if (wrong == NULL && call->batch && target.method.len > 0)
        wrong = "a target with a method of its own takes no batches";
    if (wrong != NULL) {
        set_all(call, TOC_ANSWER_BAD_TARGET, wrong);
        call->done(call);
        return;
    }
    op = new_op(invoke, call, &target);
    pthread_mutex_lock(&world->lock);
    op->seq = ++world->last_seq;
    call->backend = op;
    toc_list_push(&invoke->ops, &op->link);
    toc_heap_insert(&world->ops, &op->node);
    pthread_mutex_unlock(&world->lock);
    if (world->threads)
        toc_bell_ring(&world->bell);
}

static void
op_cancel(void *self, struct toc_call *call)
{
    struct toc_invoke_mem *invoke = self;
    struct mem_op *op;

    pthread_mutex_lock(&invoke->world->lock);
    op = call->backend;
    if (op != NULL) {
        op->cancelled = true;
        toc_invoke_mem_op_schedule(op);
    }
    pthread_mutex_unlock(&invoke->world->lock);
    if (invoke->world->threads)
        toc_bell_ring(&invoke->world->bell);
}

static void
op_cancel_all(void *self)
{
    struct toc_invoke_mem *invoke = self;
    struct toc_link *link;

    pthread_mutex_lock(&invoke->world->lock);
    for (link = invoke->ops.next; link != &invoke->ops; link = link->next) {
        struct mem_op *op = toc_container_of(link, struct mem_op, link);
        op->cancelled = true;
        toc_invoke_mem_op_schedule(op);
    }
    pthread_mutex_unlock(&invoke->world->lock);
    if (invoke->world->threads)
        toc_bell_ring(&invoke->world->bell);
}

static const struct toc_invoke_ops ops = {
    .name = "mem",
    .start = op_start,
    .cancel = op_cancel,
    .cancel_all = op_cancel_all,
};

/* ---- life
 * --------------------------------------------------------------------- */

struct toc_invoke_mem *
toc_invoke_mem_new(struct toc_invoke_mem_world *world,
                   const struct toc_clock *clock)
{
    struct toc_invoke_mem *invoke = TOC_NEW(struct toc_invoke_mem);

    invoke->port = (struct toc_invoke){&ops, invoke};
    invoke->world = world;
    invoke->clock = clock != NULL ? clock : world->clock;
    toc_list_init(&invoke->ops);
    return invoke;
}

void
toc_invoke_mem_free(struct toc_invoke_mem *invoke)
{
    struct toc_invoke_mem_world *world;

    if (invoke == NULL)
        return;
    world = invoke->world;
    pthread_mutex_lock(&world->lock);
    while (!toc_list_empty(&invoke->ops)) {
        struct mem_op *op =
            toc_container_of(invoke->ops.next, struct mem_op, link);
        op->cancelled = true;
        toc_invoke_mem_op_end(op);
    }
    while (invoke->telling > 0)
        pthread_cond_wait(&world->idle, &world->lock);
    pthread_mutex_unlock(&world->lock);
    toc_free(invoke);
}

void
toc_invoke_mem_kill(struct toc_invoke_mem *invoke)
{
    struct toc_invoke_mem_world *world;

    if (invoke == NULL)
        return;
    world = invoke->world;
    pthread_mutex_lock(&world->lock);
    TOC_ASSERT(invoke->telling == 0 || world->threads);
    while (!toc_list_empty(&invoke->ops))
        free_op(toc_container_of(invoke->ops.next, struct mem_op, link));
    while (invoke->telling > 0)
        pthread_cond_wait(&world->idle, &world->lock);
    pthread_mutex_unlock(&world->lock);
    toc_free(invoke);
}

void
toc_invoke_mem_cut(struct toc_invoke_mem *invoke, bool cut)
{
    struct toc_link *link;

    pthread_mutex_lock(&invoke->world->lock);
    invoke->cut = cut;
    for (link = invoke->ops.next; link != &invoke->ops; link = link->next)
        toc_invoke_mem_op_schedule(toc_container_of(link, struct mem_op, link));
    pthread_mutex_unlock(&invoke->world->lock);
    if (invoke->world->threads)
        toc_bell_ring(&invoke->world->bell);
}

struct toc_invoke *
toc_invoke_mem_port(struct toc_invoke_mem *invoke)
{
    return &invoke->port;
}
