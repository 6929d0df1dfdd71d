/* Topics and the logs of their partitions. */
#include "common/bus/mem/mem_internal.h"

#include "common/base/alloc.h"

#include <string.h>

struct mem_bytes *
toc_bus_mem_bytes_new(struct toc_str from)
{
    struct mem_bytes *bytes = toc_alloc(sizeof *bytes + from.len + 1);

    bytes->refs = 1;
    bytes->len = from.len;
    if (from.len > 0)
        memcpy(bytes->data, from.ptr, from.len);
    return bytes;
}

void
toc_bus_mem_bytes_unref(struct mem_bytes *bytes)
{
    if (--bytes->refs == 0)
        toc_free(bytes);
}

struct mem_topic *
toc_bus_mem_topic_find(struct toc_bus_mem_world *world, const char *name)
{
    struct toc_link *link;

    for (link = world->topics.next; link != &world->topics; link = link->next) {
        struct mem_topic *topic =
            toc_container_of(link, struct mem_topic, link);
        if (strcmp(topic->name, name) == 0)
            return topic;
    }
    return NULL;
}

struct mem_part *
toc_bus_mem_part_find(struct toc_bus_mem_world *world, const char *topic,
                      int32_t partition)
{
    struct mem_topic *found = toc_bus_mem_topic_find(world, topic);

    if (found == NULL || partition < 0 || partition >= found->n)
        return NULL;
    return &found->parts[partition];
}

/* Sorted by name: assignment follows this order. */
struct mem_topic *
toc_bus_mem_topic_make(struct toc_bus_mem_world *world, const char *name,
                       int32_t partitions)
{
    struct mem_topic *topic = TOC_NEW(struct mem_topic);
    struct toc_link *at = world->topics.next;

    while (at != &world->topics &&
           strcmp(toc_container_of(at, struct mem_topic, link)->name, name) < 0)
        at = at->next;
    topic->name = toc_strdup(name);
    topic->n = partitions;
    topic->parts = TOC_NEW_ARRAY(struct mem_part, (size_t)partitions);
    toc_list_insert_before(at, &topic->link);
    return topic;
}

void
toc_bus_mem_topic_drop(struct mem_topic *topic)
{
    toc_list_remove(&topic->link);
    for (int32_t i = 0; i < topic->n; i++) {
        toc_bus_mem_part_clear(&topic->parts[i]);
        toc_free(topic->parts[i].log);
    }
    toc_free(topic->parts);
    toc_free(topic->name);
    toc_free(topic);
}

int64_t
toc_bus_mem_part_end(const struct mem_part *part)
{
    return part->start + (int64_t)part->n;
}

static void
drop_oldest(struct mem_part *part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        toc_bus_mem_bytes_unref(part->log[i]);
    part->n -= n;
    part->start += (int64_t)n;
    memmove(part->log, part->log + n, part->n * sizeof *part->log);
}

/* A log that is full drops its older half, whoever has not read it. */
int64_t
toc_bus_mem_part_append(struct toc_bus_mem_world *world, struct mem_part *part,
                        struct mem_bytes *bytes)
{
    if (part->n >= world->log_max)
        drop_oldest(part, part->n - world->log_max / 2);
    if (part->n == part->cap) {
        part->cap = part->cap == 0 ? 64 : part->cap * 2;
        part->log = toc_realloc(part->log, part->cap * sizeof *part->log);
    }
    part->log[part->n++] = bytes;
    return toc_bus_mem_part_end(part) - 1;
}

void
toc_bus_mem_part_clear(struct mem_part *part)
{
    for (size_t i = 0; i < part->n; i++)
        toc_bus_mem_bytes_unref(part->log[i]);
    part->n = 0;
    part->start = 0;
}
