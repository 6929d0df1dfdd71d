#include "common/app/deadline.h"

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/os_time.h"

#include <stdlib.h>
#include <unistd.h>

#define THREADS_TEXT_MAX 600
#define EXIT_CODE 1

/* Says what can be told from here: the stage of the stop, and which threads
 * there still are. */
static void
end_the_process(struct toc_app_deadline *deadline)
{
    struct toc_buf threads = {0};

    toc_thread_names(&threads, THREADS_TEXT_MAX);
    TOC_LOG(ERROR, "app.stop_forced",
            F_MSG("the stop takes too long, ending without it"),
            F_STR("waiting_for", atomic_load(&deadline->stage)),
            F_SPAN("threads", toc_buf_view(&threads)),
            F_STR("hint", "what was under way is taken up by others when its "
                          "locks and leases expire; nothing is lost"));
    _exit(EXIT_CODE);
}

static int64_t
after_begin(const struct toc_app_deadline *deadline, int64_t ms)
{
    return atomic_load(&deadline->begun_ns) + ms * TOC_NS_PER_MS;
}

/* Calls what is due; returns when the next one is. */
static int64_t
call_late(struct toc_app_deadline *deadline, int64_t now_ns)
{
    int64_t next_ns = after_begin(deadline, atomic_load(&deadline->last_ms));

    pthread_mutex_lock(&deadline->lock);
    for (size_t i = 0; i < deadline->n_late; i++) {
        struct toc_app_late *late = &deadline->late[i];
        int64_t at_ns = after_begin(deadline, late->ms);
        toc_app_stop_fn *fn = late->fn;

        if (fn == NULL)
            continue;
        if (at_ns <= now_ns) {
            late->fn = NULL;
            fn(late->arg);
        } else if (at_ns < next_ns) {
            next_ns = at_ns;
        }
    }
    pthread_mutex_unlock(&deadline->lock);
    return next_ns;
}

static void
watch(void *arg)
{
    struct toc_app_deadline *deadline = arg;
    int64_t next_ns = TOC_BELL_FOREVER;

    for (;;) {
        int64_t now_ns;

        (void)toc_bell_wait(&deadline->bell, next_ns);
        if (atomic_load(&deadline->over))
            return;
        if (atomic_load(&deadline->begun_ns) == 0)
            continue;
        now_ns = toc_os_mono_ns();
        next_ns = call_late(deadline, now_ns);
        if (now_ns >= after_begin(deadline, atomic_load(&deadline->last_ms)))
            end_the_process(deadline);
    }
}

void
toc_app_deadline_init(struct toc_app_deadline *deadline)
{
    atomic_init(&deadline->stage, "the start");
    atomic_init(&deadline->begun_ns, 0);
    atomic_init(&deadline->last_ms, TOC_APP_STOP_MS);
    atomic_init(&deadline->over, false);
    TOC_ASSERT(pthread_mutex_init(&deadline->lock, NULL) == 0);
    toc_bell_init(&deadline->bell);
    toc_thread_start(&deadline->thread, "deadline", watch, deadline);
}

void
toc_app_deadline_done(struct toc_app_deadline *deadline)
{
    atomic_store(&deadline->over, true);
    toc_bell_ring(&deadline->bell);
    toc_thread_join(&deadline->thread);
    toc_bell_done(&deadline->bell);
    pthread_mutex_destroy(&deadline->lock);
}

void
toc_app_deadline_begin(struct toc_app_deadline *deadline)
{
    atomic_store(&deadline->begun_ns, toc_os_mono_ns());
    toc_bell_ring(&deadline->bell);
}
