#include "scheduler/access/names.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/base/hmap.h"
#include "common/base/list.h"
#include "common/base/log.h"

#include <pthread.h>

#define NAMES_MAX 20000
#define AGAIN_NS (INT64_C(5000) * TOC_NS_PER_MS)

struct name {
    struct toc_hnode node;
    uint32_t id;
    char *text;
};

struct sched_names {
    struct toc_store *store;
    const struct toc_clock *clk;
    pthread_mutex_t lock; /* guards what follows */
    struct toc_hmap map;
    int64_t again_ns; /* not before this */
};

struct sched_names *
sched_names_new(struct toc_store *store, const struct toc_clock *clk)
{
    struct sched_names *names = TOC_NEW(struct sched_names);

    names->store = store;
    names->clk = clk;
    TOC_ASSERT(pthread_mutex_init(&names->lock, NULL) == 0);
    return names;
}

void
sched_names_free(struct sched_names *names)
{
    struct toc_hnode *node;

    if (names == NULL)
        return;
    while ((node = toc_hmap_first(&names->map)) != NULL) {
        struct name *name = toc_container_of(node, struct name, node);
        toc_hmap_remove(&names->map, node);
        toc_free(name->text);
        toc_free(name);
    }
    toc_hmap_done(&names->map);
    pthread_mutex_destroy(&names->lock);
    toc_free(names);
}

static bool
has_id(const struct toc_hnode *node, const void *key)
{
    const struct name *name =
        (const void *)((const char *)node - offsetof(struct name, node));

    return name->id == *(const uint32_t *)key;
}

static const char *
find_locked(struct sched_names *names, uint32_t id)
{
    struct toc_hnode *node =
        toc_hmap_find(&names->map, toc_hash64_mix(id), has_id, &id);

    return node == NULL ? NULL
                        : toc_container_of(node, struct name, node)->text;
}

static const char *
find_name(void *arg, uint32_t node_id)
{
    struct sched_names *names = arg;
    const char *text;

    pthread_mutex_lock(&names->lock);
    text = find_locked(names, node_id);
    pthread_mutex_unlock(&names->lock);
    return text;
}

static void
add_all(struct sched_names *names, const struct toc_node_row *rows, size_t n)
{
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < n && names->map.len < NAMES_MAX; i++) {
        struct name *name;
        if (find_locked(names, rows[i].id) != NULL)
            continue;
        name = TOC_NEW(struct name);
        name->id = rows[i].id;
        name->text = toc_strndup(rows[i].name.ptr, rows[i].name.len);
        toc_hmap_insert(&names->map, &name->node, toc_hash64_mix(name->id));
    }
    pthread_mutex_unlock(&names->lock);
}

static bool
must_learn(struct sched_names *names, const struct toc_task *task)
{
    int64_t now_ns = toc_clock_mono(names->clk).ns;
    bool missing;

    pthread_mutex_lock(&names->lock);
    missing =
        (task->sched_node != 0 &&
         find_locked(names, task->sched_node) == NULL) ||
        (task->exec_node != 0 && find_locked(names, task->exec_node) == NULL);
    missing = missing && now_ns >= names->again_ns;
    if (missing)
        names->again_ns = now_ns + AGAIN_NS;
    pthread_mutex_unlock(&names->lock);
    return missing;
}

void
sched_names_learn(struct sched_names *names, const struct toc_task *task)
{
    struct toc_arena arena = {0};
    struct toc_error err = {0};
    struct toc_node_row *rows;
    size_t n;

    if (!must_learn(names, task))
        return;
    if (toc_store_list_nodes(names->store, &arena, &rows, &n, &err) == TOC_OK)
        add_all(names, rows, n);
    else
        TOC_LOG(DEBUG, "names.unknown",
                F_MSG("cannot read the names of nodes, showing numbers"),
                F_ERR(&err));
    toc_arena_done(&arena);
}

struct toc_api_names
sched_names_view(struct sched_names *names)
{
    return (struct toc_api_names){.fn = find_name, .arg = names};
}
