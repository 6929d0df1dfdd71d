#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_STACK */
#include "tests/sim/fiber.h"

#include "common/base/assert.h"
#include "common/base/list.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES ((size_t)1024 * 1024) /* touched pages only cost */

/* Lives at the top of its own stack's mapping, apart from the pools: a killed
 * process's memory goes, its stacks are used again. */
struct sim_fiber {
    struct toc_link link; /* among the unused */
    char *stack;
    ucontext_t context;
    sim_fiber_fn *fn;
    void *arg;
    bool ended;
    void *fake_stack; /* the address sanitizer's */
};

static struct sim_fiber *running;
static ucontext_t main_context;
static void *main_fake_stack;
static const void *main_stack;
static size_t main_stack_bytes;
static struct toc_link unused = {&unused, &unused};

/* ---- what the address sanitizer wants to know ------------------------ */

static void
leaving(void **fake_stack, const void *to_stack, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(fake_stack, to_stack, bytes);
#else
    (void)fake_stack;
    (void)to_stack;
    (void)bytes;
#endif
}

static void
arrived(void *fake_stack, const void **from_stack, size_t *bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack, from_stack, bytes);
#else
    (void)fake_stack;
    (void)from_stack;
    (void)bytes;
#endif
}

static void
forget_frames(const struct sim_fiber *fiber)
{
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(fiber->stack, STACK_BYTES);
#else
    (void)fiber;
#endif
}

/* ---- life ------------------------------------------------------------ */

static struct sim_fiber *
map_fiber(void)
{
    size_t bytes = STACK_BYTES + sizeof(struct sim_fiber);
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    struct sim_fiber *fiber;

    TOC_ASSERT(at != MAP_FAILED);
    fiber = (void *)(at + STACK_BYTES);
    fiber->stack = at;
    toc_list_init(&fiber->link);
    return fiber;
}

/* makecontext passes ints only; the fiber is the running one. */
static void
enter(void)
{
    struct sim_fiber *fiber = running;

    arrived(NULL, &main_stack, &main_stack_bytes);
    fiber->fn(fiber->arg);
    fiber->ended = true;
    leaving(NULL, main_stack, main_stack_bytes); /* its frames are gone */
    TOC_ASSERT(setcontext(&main_context) == 0);
}

/* Apart, because getcontext may return twice in the compiler's eyes. */
static void
make_context(struct sim_fiber *fiber)
{
    TOC_ASSERT(getcontext(&fiber->context) == 0);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, enter, 0);
}

struct sim_fiber *
sim_fiber_new(sim_fiber_fn *fn, void *arg)
{
    struct toc_link *link = toc_list_pop(&unused);
    struct sim_fiber *fiber =
        link != NULL ? toc_container_of(link, struct sim_fiber, link)
                     : map_fiber();

    fiber->fn = fn;
    fiber->arg = arg;
    fiber->ended = false;
    fiber->fake_stack = NULL;
    forget_frames(fiber);
    make_context(fiber);
    return fiber;
}

void
sim_fiber_resume(struct sim_fiber *fiber)
{
    TOC_ASSERT(running == NULL && !fiber->ended);
    running = fiber;
    leaving(&main_fake_stack, fiber->stack, STACK_BYTES);
    TOC_ASSERT(swapcontext(&main_context, &fiber->context) == 0);
    arrived(main_fake_stack, NULL, NULL);
    running = NULL;
}

void
sim_fiber_yield(void)
{
    struct sim_fiber *fiber = running;

    TOC_ASSERT(fiber != NULL);
    leaving(&fiber->fake_stack, main_stack, main_stack_bytes);
    TOC_ASSERT(swapcontext(&fiber->context, &main_context) == 0);
    arrived(fiber->fake_stack, &main_stack, &main_stack_bytes);
}

void
sim_fiber_drop(struct sim_fiber *fiber)
{
    if (fiber == NULL)
        return;
    TOC_ASSERT(fiber != running);
    toc_list_push(&unused, &fiber->link);
}

void
sim_fiber_trim(void)
{
    struct toc_link *link;

    while ((link = toc_list_pop(&unused)) != NULL) {
        struct sim_fiber *fiber =
            toc_container_of(link, struct sim_fiber, link);
        forget_frames(fiber);
        TOC_ASSERT(
            munmap(fiber->stack, STACK_BYTES + sizeof(struct sim_fiber)) == 0);
    }
}
