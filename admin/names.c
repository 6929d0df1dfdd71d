#include "admin/names.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdlib.h>

#define REFRESH_MS_MIN 1000

struct admin_names {
    struct toc_store *store;
    const struct toc_clock *clk;
    pthread_mutex_t lock; /* for what follows */
    struct toc_arena arena;
    struct toc_node_row *rows; /* by id */
    size_t n;
    int64_t refresh_at_ns; /* monotonic; not before */
};

struct admin_names *
admin_names_new(struct toc_store *store, const struct toc_clock *clk)
{
    struct admin_names *names = TOC_NEW(struct admin_names);

    names->store = store;
    names->clk = clk;
    names->refresh_at_ns = INT64_MIN;
    pthread_mutex_init(&names->lock, NULL);
    return names;
}

void
admin_names_free(struct admin_names *names)
{
    if (names == NULL)
        return;
    pthread_mutex_destroy(&names->lock);
    toc_arena_done(&names->arena);
    toc_free(names);
}

static int
cmp_row(const void *a, const void *b)
{
    uint32_t x = ((const struct toc_node_row *)a)->id;
    uint32_t y = ((const struct toc_node_row *)b)->id;

    return x < y ? -1 : x > y;
}

/* True: found, in the user's arena. */
static bool
look(struct admin_names_user *user, uint32_t node_id, const char **ret_name)
{
    struct admin_names *names = user->names;
    const struct toc_node_row key = {.id = node_id};
    const struct toc_node_row *row = NULL;

    pthread_mutex_lock(&names->lock);
    if (names->n > 0)
        row = bsearch(&key, names->rows, names->n, sizeof key, cmp_row);
    if (row != NULL)
        *ret_name = toc_arena_text(user->arena, row->name);
    pthread_mutex_unlock(&names->lock);
    return row != NULL;
}

/* One of those who miss a name reads for all. */
static bool
may_refresh(struct admin_names *names)
{
    int64_t now_ns = toc_clock_mono(names->clk).ns;
    bool may;

    pthread_mutex_lock(&names->lock);
    may = now_ns >= names->refresh_at_ns;
    if (may)
        names->refresh_at_ns = now_ns + REFRESH_MS_MIN * TOC_NS_PER_MS;
    pthread_mutex_unlock(&names->lock);
    return may;
}

static void
refresh(struct admin_names *names)
{
    struct toc_arena fresh = {0}, old;
    struct toc_node_row *rows;
    size_t n;

    /* Without names a number is shown; the call itself goes on. */
    if (toc_store_list_nodes(names->store, &fresh, &rows, &n, NULL) != TOC_OK) {
        toc_arena_done(&fresh);
        return;
    }
    if (n > 0)
        qsort(rows, n, sizeof *rows, cmp_row);
    pthread_mutex_lock(&names->lock);
    old = names->arena;
    names->arena = fresh;
    names->rows = rows;
    names->n = n;
    pthread_mutex_unlock(&names->lock);
    toc_arena_done(&old);
}

static const char *
name_of(void *arg, uint32_t node_id)
{
    struct admin_names_user *user = arg;
    const char *name = NULL;

    if (look(user, node_id, &name) || !may_refresh(user->names))
        return name;
    refresh(user->names);
    (void)look(user, node_id, &name);
    return name;
}

struct toc_api_names
admin_names_of(struct admin_names_user *user)
{
    return (struct toc_api_names){name_of, user};
}
