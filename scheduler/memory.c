#include "scheduler/memory.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/model/limits.h"

#include <string.h>

/* Room per entry, on average: the bound of bytes. */
#define BYTES_PER_ENTRY 1024
#define FRESH_PERCENT 80
#define SLOT_PAST_MS 2000
#define REMEMBER_MS 5000

struct name {
    struct toc_task_id id;
    uint32_t version;
};

void
sched_memory_init(struct sched_memory *memory,
                  const struct sched_memory_options *opt)
{
    memset(memory, 0, sizeof *memory);
    memory->opt = *opt;
    TOC_ASSERT(pthread_mutex_init(&memory->lock, NULL) == 0);
    sched_wheel_init(&memory->wheel, opt->now_ms);
    toc_list_init(&memory->taken_list);
    memory->wake_ms = INT64_MAX;
}

static struct sched_entry *
entry_of(struct toc_hnode *node)
{
    return toc_container_of(node, struct sched_entry, node);
}

static struct sched_entry *
entry_of_link(struct toc_link *link)
{
    return toc_container_of(link, struct sched_entry, wheel.link);
}

static size_t
text_bytes(const struct sched_entry *entry)
{
    return (size_t)entry->biz_type_len + entry->biz_id_len + entry->name_len +
           entry->spec_len + entry->payload_len;
}

static size_t
entry_bytes(const struct sched_entry *entry)
{
    return sizeof *entry + text_bytes(entry);
}

static void
free_entry(struct sched_entry *entry)
{
    toc_free(entry->bytes);
    toc_free(entry);
}

void
sched_memory_done(struct sched_memory *memory)
{
    struct toc_hnode *next;

    for (struct toc_hnode *node = toc_hmap_first(&memory->map); node != NULL;
         node = next) {
        next = toc_hmap_next(&memory->map, node);
        if (entry_of(node)->state == SCHED_ENTRY_WAITING)
            sched_wheel_remove(&memory->wheel, &entry_of(node)->wheel);
        toc_hmap_remove(&memory->map, node);
        free_entry(entry_of(node));
    }
    toc_hmap_done(&memory->map);
    sched_wheel_done(&memory->wheel);
    pthread_mutex_destroy(&memory->lock);
}

static uint64_t
hash_of(const struct name *name)
{
    uint64_t words[2];

    memcpy(words, name->id.b, sizeof words);
    return toc_hash64_mix(words[0] ^ toc_hash64_mix(words[1] + name->version));
}

static bool
is_named(const struct toc_hnode *node, const void *key)
{
    const struct sched_entry *entry =
        (const void *)((const char *)node - offsetof(struct sched_entry, node));
    const struct name *name = key;

    return entry->version == name->version &&
           toc_task_id_cmp(entry->id, name->id) == 0;
}

static struct sched_entry *
find(struct sched_memory *memory, const struct name *name)
{
    struct toc_hnode *node =
        toc_hmap_find(&memory->map, hash_of(name), is_named, name);

    return node == NULL ? NULL : entry_of(node);
}

static char *
put(char *at, struct toc_str s)
{
    if (s.len > 0)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

static struct sched_entry *
copy_task(const struct toc_task *task, uint32_t gen)
{
    struct sched_entry *entry = TOC_NEW(struct sched_entry);
    char *at;

    entry->id = task->id;
    entry->version = task->version;
    entry->gen = gen;
    entry->slot_ms = task->slot_ms;
    entry->due_ms = task->due_ms;
    entry->created_ms = task->created_ms;
    entry->fire = task->fire;
    entry->target_id = task->target_id;
    entry->line_id = task->line_id;
    entry->slice = task->slice;
    entry->attempt = task->attempt;
    entry->claims = task->claims;
    entry->flags = task->flags;
    entry->biz_type_len = (uint8_t)task->biz_type.len;
    entry->biz_id_len = (uint8_t)task->biz_id.len;
    entry->name_len = (uint8_t)task->name.len;
    entry->spec_len = (uint16_t)task->spec.len;
    entry->has_payload =
        task->payload.len == 0 || (task->payload.ptr != NULL &&
                                   task->payload.len <= TOC_HINT_PAYLOAD_MAX);
    entry->payload_len = entry->has_payload ? (uint32_t)task->payload.len : 0;
    entry->bytes = at = toc_alloc(text_bytes(entry) + 1);
    at = put(put(put(put(at, task->biz_type), task->biz_id), task->name),
             task->spec);
    if (entry->has_payload)
        put(at, task->payload);
    return entry;
}

static bool
texts_fit(const struct toc_task *task)
{
    return task->biz_type.len <= TOC_BIZ_TYPE_MAX &&
           task->biz_id.len <= TOC_BIZ_ID_MAX &&
           task->name.len <= TOC_NAME_MAX && task->spec.len <= TOC_SPEC_MAX;
}

static bool
full(const struct sched_memory *memory, enum sched_road road)
{
    size_t percent = road == SCHED_ROAD_FRESH ? FRESH_PERCENT : 100;
    size_t max = memory->opt.entries_max;

    return memory->waiting >= max * percent / 100 ||
           memory->bytes >= max * BYTES_PER_ENTRY / 100 * percent;
}

/* Out of everything, but for a publisher's list. */
static void
unlink_entry(struct sched_memory *memory, struct sched_entry *entry)
{
    switch ((enum sched_entry_state)entry->state) {
    case SCHED_ENTRY_WAITING:
        sched_wheel_remove(&memory->wheel, &entry->wheel);
        break;
    case SCHED_ENTRY_TAKEN:
        toc_list_remove(&entry->wheel.link);
        memory->taken--;
        toc_hmap_remove(&memory->map, &entry->node);
        return;
    case SCHED_ENTRY_QUEUED:
    case SCHED_ENTRY_SENT:
        break;
    }
    memory->waiting--;
    memory->bytes -= entry_bytes(entry);
    toc_hmap_remove(&memory->map, &entry->node);
}

/* Known under the shard's present generation? What is left of an older one
 * goes, unless the publisher has it in its hands. */
static bool
known(struct sched_memory *memory, const struct name *name, uint32_t gen)
{
    struct sched_entry *entry = find(memory, name);

    if (entry == NULL)
        return false;
    if (entry->gen == gen || entry->state == SCHED_ENTRY_SENT ||
        entry->state == SCHED_ENTRY_QUEUED)
        return true;
    unlink_entry(memory, entry);
    free_entry(entry);
    return false;
}

static enum sched_offer
offer_locked(struct sched_memory *memory, const struct toc_task *task,
             uint32_t gen, enum sched_road road, bool *ret_ring)
{
    const struct name name = {task->id, task->version};
    struct sched_entry *entry;

    if (known(memory, &name, gen))
        return SCHED_OFFER_KNOWN;
    if (full(memory, road))
        return SCHED_OFFER_FULL;
    entry = copy_task(task, gen);
    toc_hmap_insert(&memory->map, &entry->node, hash_of(&name));
    sched_wheel_insert(&memory->wheel, &entry->wheel, entry->due_ms);
    memory->waiting++;
    memory->bytes += entry_bytes(entry);
    atomic_fetch_add(&memory->offered[toc_slice_shard(entry->slice)], 1);
    *ret_ring = entry->due_ms < memory->wake_ms;
    if (*ret_ring)
        memory->wake_ms = entry->due_ms; /* rung for it once */
    return SCHED_OFFER_TAKEN;
}

enum sched_offer
sched_memory_offer(struct sched_memory *memory, const struct toc_task *task,
                   enum sched_road road)
{
    uint32_t gen =
        sched_shards_gen(memory->opt.shards, toc_slice_shard(task->slice));
    enum sched_offer outcome;
    bool ring = false;

    if (gen == 0 || !texts_fit(task))
        return SCHED_OFFER_NOT_OURS;
    pthread_mutex_lock(&memory->lock);
    outcome = offer_locked(memory, task, gen, road, &ring);
    pthread_mutex_unlock(&memory->lock);
    if (ring)
        toc_bell_ring(memory->opt.bell);
    return outcome;
}

bool
sched_memory_knows(struct sched_memory *memory, struct toc_task_id id,
                   uint32_t version)
{
    const struct name name = {id, version};
    bool found;

    pthread_mutex_lock(&memory->lock);
    found = find(memory, &name) != NULL;
    pthread_mutex_unlock(&memory->lock);
    return found;
}

static bool
is_handed(struct sched_memory *memory, const struct sched_entry *entry)
{
    return atomic_load(
        &memory->opt.shards->handing[toc_slice_shard(entry->slice)]);
}

void
sched_memory_hasten(struct sched_memory *memory, int64_t until_ms)
{
    pthread_mutex_lock(&memory->lock);
    for (struct toc_hnode *node = toc_hmap_first(&memory->map); node != NULL;
         node = toc_hmap_next(&memory->map, node)) {
        struct sched_entry *entry = entry_of(node);
        if (entry->state != SCHED_ENTRY_WAITING || entry->due_ms > until_ms ||
            !is_handed(memory, entry))
            continue;
        sched_wheel_remove(&memory->wheel, &entry->wheel);
        sched_wheel_insert(&memory->wheel, &entry->wheel, INT64_MIN);
    }
    pthread_mutex_unlock(&memory->lock);
    toc_bell_ring(memory->opt.bell);
}

bool
sched_memory_unsent(struct sched_memory *memory, int64_t until_ms)
{
    bool found = false;

    pthread_mutex_lock(&memory->lock);
    for (struct toc_hnode *node = toc_hmap_first(&memory->map);
         node != NULL && !found; node = toc_hmap_next(&memory->map, node)) {
        struct sched_entry *entry = entry_of(node);
        found = entry->state != SCHED_ENTRY_TAKEN &&
                entry->due_ms <= until_ms && is_handed(memory, entry);
    }
    pthread_mutex_unlock(&memory->lock);
    return found;
}

size_t
sched_memory_len(struct sched_memory *memory)
{
    size_t n;

    pthread_mutex_lock(&memory->lock);
    n = memory->waiting;
    pthread_mutex_unlock(&memory->lock);
    return n;
}

double
sched_memory_share(struct sched_memory *memory)
{
    double max = (double)memory->opt.entries_max * FRESH_PERCENT / 100;
    double entries, bytes;

    pthread_mutex_lock(&memory->lock);
    entries = (double)memory->waiting / max;
    bytes = (double)memory->bytes / (max * BYTES_PER_ENTRY);
    pthread_mutex_unlock(&memory->lock);
    if (bytes > entries)
        entries = bytes;
    return entries < 1 ? entries : 1;
}

bool
sched_memory_current(struct sched_memory *memory,
                     const struct sched_entry *entry)
{
    return sched_shards_gen(memory->opt.shards,
                            toc_slice_shard(entry->slice)) == entry->gen;
}

size_t
sched_memory_due(struct sched_memory *memory, int64_t now_ms, int64_t until_ms,
                 struct sched_entry **ret, size_t max)
{
    struct sched_wheel_node *node;
    size_t n = 0;

    pthread_mutex_lock(&memory->lock);
    sched_wheel_rewind(&memory->wheel, now_ms);
    while (n < max &&
           (node = sched_wheel_pop(&memory->wheel, until_ms)) != NULL) {
        struct sched_entry *entry =
            toc_container_of(node, struct sched_entry, wheel);
        entry->state = SCHED_ENTRY_QUEUED;
        if (sched_memory_current(memory, entry)) {
            ret[n++] = entry;
        } else {
            unlink_entry(memory, entry);
            free_entry(entry);
        }
    }
    pthread_mutex_unlock(&memory->lock);
    return n;
}

int64_t
sched_memory_next(struct sched_memory *memory)
{
    int64_t next;

    pthread_mutex_lock(&memory->lock);
    next = sched_wheel_next(&memory->wheel);
    pthread_mutex_unlock(&memory->lock);
    return next;
}

void
sched_memory_sleep(struct sched_memory *memory, int64_t wake_ms)
{
    bool ring;

    pthread_mutex_lock(&memory->lock);
    memory->wake_ms = wake_ms;
    ring = sched_wheel_next(&memory->wheel) < wake_ms;
    pthread_mutex_unlock(&memory->lock);
    if (ring)
        toc_bell_ring(memory->opt.bell);
}

static void
set_state(struct sched_memory *memory, struct sched_entry **entries, size_t n,
          enum sched_entry_state state)
{
    pthread_mutex_lock(&memory->lock);
    for (size_t i = 0; i < n; i++)
        entries[i]->state = (uint8_t)state;
    pthread_mutex_unlock(&memory->lock);
}

void
sched_memory_sent(struct sched_memory *memory, struct sched_entry **entries,
                  size_t n)
{
    set_state(memory, entries, n, SCHED_ENTRY_SENT);
}

void
sched_memory_queued(struct sched_memory *memory, struct sched_entry **entries,
                    size_t n)
{
    set_state(memory, entries, n, SCHED_ENTRY_QUEUED);
}

static void
forget_oldest(struct sched_memory *memory)
{
    struct sched_entry *entry = entry_of_link(memory->taken_list.next);

    unlink_entry(memory, entry);
    free_entry(entry);
}

static void
remember(struct sched_memory *memory, struct sched_entry *entry, int64_t now_ms)
{
    int64_t until = entry->slot_ms + SLOT_PAST_MS;

    memory->waiting--;
    memory->bytes -= entry_bytes(entry);
    toc_free(entry->bytes);
    entry->bytes = NULL;
    entry->state = SCHED_ENTRY_TAKEN;
    entry->created_ms =
        until > now_ms + REMEMBER_MS ? until : now_ms + REMEMBER_MS;
    toc_list_push(&memory->taken_list, &entry->wheel.link);
    if (++memory->taken > memory->opt.entries_max)
        forget_oldest(memory);
}

void
sched_memory_taken(struct sched_memory *memory, struct sched_entry **entries,
                   size_t n, int64_t now_ms)
{
    pthread_mutex_lock(&memory->lock);
    for (size_t i = 0; i < n; i++)
        remember(memory, entries[i], now_ms);
    pthread_mutex_unlock(&memory->lock);
}

void
sched_memory_drop(struct sched_memory *memory, struct sched_entry *entry)
{
    pthread_mutex_lock(&memory->lock);
    unlink_entry(memory, entry);
    pthread_mutex_unlock(&memory->lock);
    free_entry(entry);
}

void
sched_memory_forget(struct sched_memory *memory, int64_t now_ms)
{
    pthread_mutex_lock(&memory->lock);
    while (!toc_list_empty(&memory->taken_list)) {
        struct sched_entry *entry = entry_of_link(memory->taken_list.next);
        /* A clock that was set back must not keep them for hours. */
        if (entry->created_ms > now_ms &&
            entry->created_ms < now_ms + 10 * REMEMBER_MS)
            break;
        forget_oldest(memory);
    }
    pthread_mutex_unlock(&memory->lock);
}

struct toc_hint
sched_entry_hint(const struct sched_entry *entry)
{
    struct toc_hint hint = {.has_payload = entry->has_payload};
    struct toc_task *task = &hint.task;
    const char *at = entry->bytes;

    task->slice = entry->slice;
    task->slot_ms = entry->slot_ms;
    task->id = entry->id;
    task->version = entry->version;
    task->due_ms = entry->due_ms;
    task->created_ms = entry->created_ms;
    task->fire = entry->fire;
    task->attempt = entry->attempt;
    task->claims = entry->claims;
    task->flags = entry->flags;
    task->target_id = entry->target_id;
    task->line_id = entry->line_id;
    task->biz_type = (struct toc_str){at, entry->biz_type_len};
    at += entry->biz_type_len;
    task->biz_id = (struct toc_str){at, entry->biz_id_len};
    at += entry->biz_id_len;
    task->name = (struct toc_str){at, entry->name_len};
    at += entry->name_len;
    task->spec = (struct toc_str){at, entry->spec_len};
    at += entry->spec_len;
    task->payload = (struct toc_str){at, entry->payload_len};
    return hint;
}
