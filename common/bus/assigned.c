#include "common/bus/assigned.h"

#include "common/base/alloc.h"

#include <string.h>

static int
compare(const struct toc_bus_part *part, int16_t topic, int32_t partition)
{
    if (part->topic != topic)
        return part->topic < topic ? -1 : 1;
    return (part->partition > partition) - (part->partition < partition);
}

/* Where it stands, or would stand. */
static size_t
place_of(const struct toc_bus_assigned *assigned, int16_t topic,
         int32_t partition)
{
    size_t low = 0, high = assigned->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare(&assigned->parts[mid], topic, partition) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct toc_bus_part *
toc_bus_assigned_find(const struct toc_bus_assigned *assigned, int16_t topic,
                      int32_t partition)
{
    size_t at = place_of(assigned, topic, partition);
    if (at == assigned->n ||
        compare(&assigned->parts[at], topic, partition) != 0)
        return NULL;
    return &assigned->parts[at];
}

void
toc_bus_assigned_done(struct toc_bus_assigned *assigned)
{
    toc_free(assigned->parts);
    *assigned = (struct toc_bus_assigned){0};
}

static void
make_room(struct toc_bus_assigned *assigned)
{
    if (assigned->n < assigned->cap)
        return;
    assigned->cap = assigned->cap == 0 ? 32 : assigned->cap * 2;
    assigned->parts =
        toc_realloc(assigned->parts, assigned->cap * sizeof *assigned->parts);
}

void
toc_bus_assigned_add(struct toc_bus_assigned *assigned, int16_t topic,
                     int32_t partition)
{
    toc_bus_assigned_remove(assigned, topic, partition);
    make_room(assigned);
    size_t at = place_of(assigned, topic, partition);
    struct toc_bus_part *part = &assigned->parts[at];
    memmove(part + 1, part, (assigned->n - at) * sizeof *part);
    *part = (struct toc_bus_part){
        .topic = topic, .partition = partition, .first = -1, .marked = -1};
    assigned->n++;
}

void
toc_bus_assigned_remove(struct toc_bus_assigned *assigned, int16_t topic,
                        int32_t partition)
{
    struct toc_bus_part *part =
        toc_bus_assigned_find(assigned, topic, partition);
    if (part == NULL)
        return;
    size_t behind = assigned->n - (size_t)(part - assigned->parts) - 1;
    memmove(part, part + 1, behind * sizeof *part);
    assigned->n--;
}

enum toc_bus_take
toc_bus_assigned_take(struct toc_bus_assigned *assigned, int16_t topic,
                      int32_t partition, int64_t offset)
{
    struct toc_bus_part *part =
        toc_bus_assigned_find(assigned, topic, partition);
    if (part == NULL)
        return TOC_BUS_NOT_OURS;
    bool back = part->first >= 0 && offset < part->next;
    if (back && offset > 0)
        return TOC_BUS_OURS; /* again: what is marked stays marked */
    if (back || part->first < 0) {
        /* from 0 on, the topic was made again: old marks mean nothing there */
        part->first = offset;
        part->marked = -1;
    }
    part->next = offset + 1;
    return back ? TOC_BUS_ANEW : TOC_BUS_OURS;
}

bool
toc_bus_assigned_mark(struct toc_bus_assigned *assigned, int16_t topic,
                      int32_t partition, int64_t next_offset)
{
    struct toc_bus_part *part =
        toc_bus_assigned_find(assigned, topic, partition);
    if (part == NULL || part->first < 0 || next_offset <= part->first ||
        next_offset > part->next || next_offset <= part->marked)
        return false;
    part->marked = next_offset;
    return true;
}
